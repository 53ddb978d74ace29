"""Functions of one flat vector, and Newton's method by structure.

Reads graph, calculus, run.
"""
