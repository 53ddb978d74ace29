"""Expressions to functions of arrays: binding data to dimensions, compiling, traced functions,
structured results.

Reads graph, ops, rules, plan, plan.schedule, plan.lowering, backends, calculus, loops,
structured.terms, structured, compression.
"""
