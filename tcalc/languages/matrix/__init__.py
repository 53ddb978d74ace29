"""The matrix language: syntax and precedence, types, dimensions by use; its printer.

Reads graph, ops, languages.reading, languages.writing, forms.
"""
