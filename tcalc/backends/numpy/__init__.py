"""Plans on NumPy: one closure a step.

Reads ops, plan.kinds, plan, backends, backends.host.
"""
