"""The problems by name, in the order they are run."""

from __future__ import annotations

from ..problem import Problem
from . import (
    bundle_adjustment,
    choice,
    cosines,
    factorisations,
    gp,
    kalman,
    linear_regression,
    logistic,
    matrix_factorisation,
    net,
    population_glm,
    ridge_logistic,
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
        ridge_logistic.PROBLEM,
        choice.PROBLEM,
        population_glm.OWN,
        population_glm.SHARED,
        cosines.PROBLEM,
        bundle_adjustment.PROBLEM,
        *factorisations.FACTORISATIONS,
    )
}
