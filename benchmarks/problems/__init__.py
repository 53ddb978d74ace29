"""The problems by name, in the order they are run."""

from __future__ import annotations

from ..problem import Problem
from . import (
    factorisations,
    gp,
    kalman,
    linear_regression,
    logistic,
    matrix_factorisation,
    net,
    sparse_gp,
)

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        logistic.PROBLEM,
        matrix_factorisation.UNWEIGHTED,
        matrix_factorisation.WEIGHTED,
        net.PROBLEM,
        gp.PROBLEM,
        sparse_gp.PROBLEM,
        linear_regression.CHOLESKY,
        linear_regression.LQ,
        kalman.PROBLEM,
        *factorisations.FACTORISATIONS,
    )
}
