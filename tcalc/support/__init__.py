"""What knows nothing of expressions: errors, byte counts, progress, the machine that plans are
for.

Reads nothing.
"""
