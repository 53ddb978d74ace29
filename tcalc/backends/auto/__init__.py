"""Plans on NumPy at first, and on C as soon as it is there.

Reads plan, backends, backends.numpy.
"""
