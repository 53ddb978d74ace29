"""The problems by name, in the order they are run."""

from __future__ import annotations

from ..problem import Problem
from . import logistic, matrix_factorisation, net

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        logistic.PROBLEM,
        matrix_factorisation.UNWEIGHTED,
        matrix_factorisation.WEIGHTED,
        net.PROBLEM,
    )
}
