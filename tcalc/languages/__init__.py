"""Text in, text out, source out: one folder a language that is read, one file a format, one row of
a table each.

Reads graph, languages.writing, forms, languages.matrix, languages.index, languages.einsum.
"""
