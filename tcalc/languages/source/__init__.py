"""Programs that run without tcalc.

Reads integers, graph, contraction, ops, ops.matrix, rules, plan.lowering, calculus,
languages.index, languages.writing.
"""
