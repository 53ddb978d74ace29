"""Expressions to functions of arrays: binding data to dimensions, compiling, traced functions,
structured results.

Reads graph, ops, rules, plan, plan.schedule, plan.lowering, backends, backends.numpy,
backends.functional, backends.c, calculus, loops, structured.terms, structured, compression.
"""
