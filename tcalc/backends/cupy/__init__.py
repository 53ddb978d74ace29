"""Plans on CuPy: what a call enqueues on a device, and what it waits for.

Reads ops, ops.matrix, plan.kinds, plan, backends, backends.numpy, backends.c.
"""
