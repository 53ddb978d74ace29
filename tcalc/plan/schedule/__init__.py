"""Steps in time and memory: tiles that stay in cache, buffers by lifetime, the predicted peak.

Reads graph, plan.kinds, plan.
"""
