"""Plans as functions that the system's C compiler makes, on the BLAS that SciPy brings.

Reads graph, plan.kinds, plan, backends, backends.host, backends.numpy.
"""
