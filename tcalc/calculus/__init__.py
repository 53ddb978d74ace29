"""Derivatives: accumulation in three orders, batching, projection onto properties; the transforms
of expressions.

Reads graph, ops, rules, plan.lowering.
"""
