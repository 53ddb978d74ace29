"""Steps in time and memory: which steps run tile by tile, buffers by lifetime, the predicted peak.

Reads graph, plan.kinds, plan.
"""
