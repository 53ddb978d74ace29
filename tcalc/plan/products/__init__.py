"""Contractions: their order, the kernel of each pair, and what is read at places instead of made.

Reads integers, graph, ops, plan.kinds, plan.
"""
