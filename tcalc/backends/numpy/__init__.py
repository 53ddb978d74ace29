"""Plans on NumPy: one closure a step.

Reads ops, ops.matrix, plan.kinds, plan, backends, backends.host.
"""
