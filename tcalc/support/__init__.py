"""What knows nothing of expressions: errors, byte counts, progress, the memory of this machine.

Reads nothing.
"""
