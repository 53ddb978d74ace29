"""Linear algebra in the matrix language: what is printed is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.normal import bare

A, B, M = tc.var("A", ("n", "n")), tc.var("B", ("m", "n")), tc.var("M", (3, 3))
x, v = tc.var("x", "n"), tc.var("v", 6)
la = tc.linalg
PRINTED: list[Callable[[], tc.Expr | tuple[tc.Expr, ...]]] = [
    lambda: la.cholesky(A), lambda: la.tri_inverse(A), lambda: la.potri(A), lambda: la.adj(A),
    lambda: la.inv(A) @ x, lambda: la.det(A), lambda: la.logdet(A), lambda: la.slogdet(A),
    lambda: la.expm(A), lambda: la.sqrtm(A), lambda: la.logm(A), lambda: la.eigh(A),
    lambda: la.svd(B), lambda: la.lq(B), lambda: la.syevd(A), lambda: la.trmm(A, A),
    lambda: la.solve_triangular(A, x), lambda: la.norm(B), lambda: la.norm(B, 1),
    lambda: la.norm(x, np.inf), lambda: la.extractdiag(M, 1), lambda: la.extracttrian(M, -1),
    lambda: la.makediag(v, -2), lambda: la.maketrian(v), lambda: la.sumlogdiag(A),
    lambda: tc.cumsum(x), lambda: la.matrix_power(A, -2),
    lambda: la.svd(B)[0] * la.svd(B)[1], lambda: tc.grad(tc.sum(la.eigvalsh(A) ** 2), A),
    lambda: tc.grad(x @ la.solve(A, x) + la.logdet(A), A),
]  # fmt: skip


@pytest.mark.parametrize("build", PRINTED)
def test_printed_functions_are_read_again(build: Callable[[], Any]) -> None:
    found = build()
    for e in found if isinstance(found, tuple) else (found,):
        assert tc.parse(str(e), A=A, B=B, M=M, x=x, v=v) is bare(e)


def test_a_sum_of_scaled_columns_is_read_as_the_sum_of_a_product() -> None:
    e = tc.sum(la.svd(B)[0] * la.svd(B)[1])
    again = tc.parse(str(e), B=B)
    values = np.random.default_rng(0).normal(size=(4, 3))
    u, s, _ = np.linalg.svd(values, full_matrices=False)
    for found in (e, again):
        np.testing.assert_allclose(abs(found(B=values)), abs(np.sum(u * s)), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("svd(B)", r"`svd` has several results: write svd_u\(…\) and svd_s\(…\) and svd_vh"),
        ("qr(B)", "qr_q"),
        ("eigh(A)", "eigvecs"),
        ("eigvals(B)", "square"),
        ("pinv(x)", "it takes a matrix"),
        ("lstsq(B, x)", r"the rows of `B`.* must be equal"),
        ("lstsq(B, x')", "it takes a matrix, and a column or a matrix"),
        ("maketrian(diag(A))", "or n\\*\\(n\\+1\\)/2 entries, not n"),
        ("extractdiag(M, 7)", "offset 7 is outside"),
        ("extractdiag(M, 1.5)", "whole numbers or one of True, False, inf"),
        ("norm(x, n)", "whole numbers"),
        ("maketrian(x)", "a triangle has"),
        ("True + 1", "unknown name"),
    ],
)
def test_linear_algebra_that_does_not_fit(text: str, words: str) -> None:
    with pytest.raises(tc.Error, match=words):
        tc.parse(text, A=A, B=B, M=M, x=x, v=v)
