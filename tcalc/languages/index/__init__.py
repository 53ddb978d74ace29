"""The index language: grammar, integer subscripts and bounds, ranges, guards, values; its printer,
which solves sums for their bounds.

Reads integers, graph, ops, forms, languages.reading, languages.writing.
"""
