"""A plan as data: steps over slots, and the builder that collects them.

Reads graph, plan.kinds.
"""
