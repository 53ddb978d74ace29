"""One compressed term: labels, arrays and tables, without expressions, and how terms are
contracted.

Reads graph, contraction.
"""
