"""What runs a plan: the interface, and one folder a back end.

Reads plan.
"""
