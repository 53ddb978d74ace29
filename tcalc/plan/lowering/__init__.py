"""Expressions to steps at concrete sizes: which of several equal forms, every node once.

Reads integers, graph, contraction, ops, ops.matrix, rules, plan, plan.products, plan.schedule.
"""
