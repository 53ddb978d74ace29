"""`build` and `fold`: comprehensions and sequential loops, their derivatives and batches.

Reads integers, graph, accumulation, ops, rules, calculus.
"""
