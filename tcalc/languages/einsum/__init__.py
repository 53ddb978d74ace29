"""The einsum language.

Reads graph, languages.writing.
"""
