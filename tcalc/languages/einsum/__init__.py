"""The einsum language: syntax, shapes of undeclared names by use, rows by name; its printer.

Reads integers, graph, ops, forms, languages.reading, languages.writing.
"""
