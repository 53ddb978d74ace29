"""The expression DAG: extents, the closed node kinds, the interning constructor, canonical labels,
the normal form of products and sums, the record of an operator.

Reads integers.
"""
