"""What runs a plan: one folder a back end.

Reads nothing.
"""
