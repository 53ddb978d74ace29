"""Exact integer systems: affine forms, Smith normal form, inequalities, the ranges that solve
them.

Reads nothing.
"""
