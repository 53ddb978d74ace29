"""The matrix language: syntax and precedence, types, dimensions by use; its printer.

Reads graph, languages.reading, languages.writing.
"""
