"""Programs that run without tcalc.

Reads integers, graph, contraction, ops.matrix, calculus, languages.writing.
"""
