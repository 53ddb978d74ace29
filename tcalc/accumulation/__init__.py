"""Derivatives of expressions: the local rule of each node kind, and three orders of accumulation.

Reads graph.
"""
