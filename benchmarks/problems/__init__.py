"""The problems by name, in the order they are run."""

from __future__ import annotations

from ..problem import Problem
from . import (
    affine_example,
    array_micro,
    bundle_adjustment,
    bundle_jacobian,
    choice,
    convolution_1d,
    convolution_2d,
    cosines,
    descents,
    elementwise_chain,
    factorisations,
    gmm,
    gp,
    hand_tracking,
    kalman,
    kmeans,
    linear_regression,
    logistic,
    matrix_factorisation,
    net,
    nnmf,
    population_glm,
    projections,
    ridge_logistic,
    rnn,
    runge_kutta,
    small_evals,
    sparse_gp,
    stacked_lstm,
    triangles,
)

#: Operators of linear algebra by themselves, forward and backward.
OPERATORS_ALONE = (*factorisations.FACTORISATIONS, *triangles.TRIANGLES)

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
        rnn.PROBLEM,
        runge_kutta.PROBLEM,
        stacked_lstm.PROBLEM,
        *descents.DESCENTS,
        gmm.PROBLEM,
        *kmeans.KMEANS,
        *small_evals.SMALL_EVALS,
        ridge_logistic.PROBLEM,
        choice.PROBLEM,
        population_glm.OWN,
        population_glm.SHARED,
        cosines.PROBLEM,
        *elementwise_chain.CHAINS,
        bundle_adjustment.PROBLEM,
        projections.PROBLEM,
        bundle_jacobian.PROBLEM,
        hand_tracking.PROBLEM,
        nnmf.PROBLEM,
        nnmf.PRODUCT,
        *convolution_1d.CONVOLUTIONS,
        *convolution_2d.CONVOLUTIONS,
        *affine_example.PROBLEMS,
        *array_micro.PROBLEMS,
        *OPERATORS_ALONE,
    )
}
