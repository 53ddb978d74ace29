"""What languages of text share when they are read: tokens, precedence, the functions by name.

Reads graph, ops, ops.matrix.
"""
