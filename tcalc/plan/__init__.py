"""A plan as data: steps over slots (one array each), the builder that collects them, what a tile
sees of a slot, the words for a step that failed.

Reads graph, plan.kinds.
"""
