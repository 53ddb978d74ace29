"""What printers share: notation, layout, the forms of products, sums, gathers and loops.

Reads integers, graph, ops.
"""
