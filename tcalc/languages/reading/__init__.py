"""What languages of text share when they are read: tokens, the parser, the syntax tree,
declarations, the functions by name.

Reads integers, graph, ops, ops.matrix, rules, calculus.
"""
