"""Passes over the parts of dask's arrays: graphs of tasks, each of which runs a plan.

Reads graph, partition, plan, plan.lowering, backends, backends.numpy, run.
"""
