"""Cores and unit tensors read off expressions, and how they are shown.

Reads integers, graph, ops, ops.matrix, structured.terms, structured.solvers.
"""
