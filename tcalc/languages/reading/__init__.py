"""What languages of text share when they are read: tokens, the parser, the syntax tree,
declarations, loops, the functions by name.

Reads integers, graph, ops, ops.matrix, rules, calculus, loops.
"""
