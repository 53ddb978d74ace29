"""Programs that run without tcalc.

Reads graph, contraction, ops, calculus, languages.writing.
"""
