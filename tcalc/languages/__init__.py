"""Text in, text out, source out: one folder a language that is read, one file a format.

Reads graph, languages.writing.
"""
