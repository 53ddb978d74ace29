"""What a person starts: the command line, the demo, explain and check.

Reads graph, accumulation, rules, plan.lowering, calculus, compression, languages.writing,
languages.matrix, languages.source, languages, run.
"""
