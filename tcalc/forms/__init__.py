"""Which of several equal forms is written: laws, a search among equal forms, a reader's cost.

Reads graph, accumulation, ops, ops.matrix, rules, languages.writing.
"""
