"""Expressions to steps at concrete sizes: which of several equal forms, every node once.

Reads integers, graph, ops, ops.matrix, plan.kinds, plan, plan.products, plan.schedule.
"""
