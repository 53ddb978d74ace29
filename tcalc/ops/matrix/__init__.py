"""Rows of linear algebra: families of factorisations closed under differentiation.

Reads graph, accumulation, ops.
"""
