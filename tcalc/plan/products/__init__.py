"""Contractions: the kernel of each pair, and what is read at places instead of made.

Reads integers, contraction, ops, ops.matrix, plan.
"""
