"""What a person starts: the command line, libraries, the demo, explain and check.

Reads graph, accumulation, partition, rules, plan.lowering, backends.c, calculus, compression,
languages.writing, languages.matrix, languages.source, languages, run.
"""
