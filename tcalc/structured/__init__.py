"""Compressed numbers as users hold them: one tensor, or blocks over several variables.

Reads graph, structured.terms, structured.solvers.
"""
