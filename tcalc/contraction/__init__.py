"""Contraction paths: nested products as one, and the order in which its operands are multiplied.

Reads graph.
"""
