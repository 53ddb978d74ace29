"""Programs that run without tcalc.

Reads graph, ops, calculus, languages.writing.
"""
