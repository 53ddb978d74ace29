"""Cores and unit tensors read off expressions.

Reads integers, graph, ops, structured.terms.
"""
