"""What expressions are made with, under the names of NumPy: arithmetic, views, indexing and
slicing, joining, and one row an operator.

Reads integers, graph.
"""
