"""The web form of tcalc: a page, a JSON interface, and the processes that keep them safe.

The process that talks to browsers (`application`) never evaluates what they send. It hands every
query to a fork server (`fork_server`), which has imported tcalc, is warm and single-threaded, and
forks one child a query; the child computes the answer (`queries`) under limits of its own
(`confinement`) and is killed when its time is up. `evaluator` is the link between the two, `gate`
says who may ask how often.
"""
