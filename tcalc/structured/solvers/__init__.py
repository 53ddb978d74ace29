"""Solving with compressed tensors: one structure a file, and the choice among them.

Reads graph, structured.terms.
"""
