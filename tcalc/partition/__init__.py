"""Expressions over the rows of their data: what stays by rows, what is reduced over them and in
how many passes, and what no part of the rows gives.

Reads graph, ops.
"""
