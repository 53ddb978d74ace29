"""Expressions to functions of arrays: binding data to dimensions, compiling, traced Python
functions, structured results, the table of back ends.

Reads graph, ops, rules, plan, plan.schedule, plan.lowering, backends, calculus, loops,
structured.terms, structured.solvers, structured, compression.
"""
