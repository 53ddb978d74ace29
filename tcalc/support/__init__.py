"""What knows nothing of expressions, and all may read: errors, types of arrays, array namespaces,
the `Machine` (speeds, and the sizes from which plans use tiles and halves).

Reads nothing.
"""
