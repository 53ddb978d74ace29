"""The index language: read and printed.

Reads integers, graph, ops, languages.reading, languages.writing.
"""
