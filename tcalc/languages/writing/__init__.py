"""What printers share: notation, parentheses, layout, the forms of products, sums, gathers and
loops.

Reads integers, graph, ops.
"""
