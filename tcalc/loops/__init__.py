"""`build` and `fold`: comprehensions and sequential loops, their derivatives and batches.

Reads integers, graph, ops, rules, calculus.
"""
