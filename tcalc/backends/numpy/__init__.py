"""Plans on NumPy: one closure a step.

Reads graph, ops, plan, backends, backends.host.
"""
