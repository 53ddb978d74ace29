"""What a step of a plan may be: one row a kind, with its facts and a reference.

Reads graph, ops, ops.matrix.
"""
