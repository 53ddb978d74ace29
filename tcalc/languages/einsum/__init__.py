"""The einsum language: printed.

Reads graph, languages.writing.
"""
