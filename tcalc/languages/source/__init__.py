"""Programs that run without tcalc.

Reads integers, graph, ops.matrix, calculus, languages.writing.
"""
