"""Plans as pure functions of an array namespace: what other back ends are compared with.

Reads plan.kinds, plan, backends.
"""
