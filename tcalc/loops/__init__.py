"""`build` and `fold`: comprehensions and sequential loops (one node, whose operator holds the
body), their derivatives, their batches.

Reads integers, graph, accumulation, ops, rules, calculus.
"""
