"""Derivatives as users ask for them: the transforms, projection onto properties, batching.

Reads graph, accumulation, ops, rules, plan.lowering.
"""
