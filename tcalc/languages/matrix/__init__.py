"""The matrix language: read and printed.

Reads graph, languages.reading, languages.writing.
"""
