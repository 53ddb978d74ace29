"""Derivatives as users ask for them: the transforms, the choice among orders by predicted cost,
projection onto properties, a batch axis for every node, black boxes with stated rules,
derivatives of equal functions for plans.

Reads integers, graph, accumulation, ops, rules, plan.lowering.
"""
