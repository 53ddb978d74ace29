"""Queries that load in one click."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode


class Example(NamedTuple):
    """A query by the parameters of its address."""

    title: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def link(self) -> str:
        return urlencode(self.parameters)


def _matrix(title: str, expression: str, wrt: str, order: int = 1, **more: str) -> Example:
    parameters = [("e", expression), ("d", wrt), ("o", str(order)), *more.items()]
    return Example(title, tuple(parameters))


def _index(title: str, expression: str, wrt: str) -> Example:
    parameters = (("e", expression), ("l", "index"), ("d", wrt), ("o", "2"), ("c", "1"))
    return Example(title, parameters)


def _declared(example: Example, *rows: tuple[str, str, str]) -> Example:
    more = [pair for n, s, p in rows for pair in (("vn", n), ("vs", s), ("vp", p))]
    return example._replace(parameters=(*example.parameters, *more))


EXAMPLES = (
    _matrix("Quadratic form", "x'*A*x", "x"),
    _matrix("Logistic regression, Hessian", "sum(log(1 + exp(-y .* (X*w))))", "w", 2),
    _matrix("Matrix factorisation, Hessian", "norm2(T - U*V')^2", "U", 2, c="1"),
    _declared(
        _matrix("Gaussian log likelihood", "logdet(S) + (x - m)'*inv(S)*(x - m)", "S"),
        ("S", "n, n", "positive_definite"), ("m", "n", ""),
    ),
    _declared(
        _matrix("Gaussian process", "logdet(K) + y'*inv(K)*y", "K"),
        ("K", "n, n", "positive_definite"),
    ),
    _matrix("Two-layer net", "norm2(tanh(X*V)*w - y)^2", "V"),
    _matrix("Rayleigh quotient", "x'*A*x / (x'*x)", "x"),
    _matrix("Cookbook: inverse", "tr(A*inv(X)*B)", "X"),
    _matrix("Cookbook: log determinant", "log(det(X'*X))", "X"),
    _matrix("Softmax cross entropy", "log(sum(exp(W*x))) - t'*W*x", "W"),
    _matrix("Kalman step", "logdet(H*P*H' + R) + v'*inv(H*P*H' + R)*v", "P"),
    _declared(
        _index("Convolution", "f = sum[i=0..n-1](sum[k=0..m-1](w[k]*x[i+k])^2)", "w"),
        ("w", "m", ""), ("x", "n+m-1", ""),
    ),
    _declared(
        _index("Bundle adjustment", "f = sum[i,a]((p[i,a] - t[a] - sum[b](R[a,b]*q[i,b]))^2)", "q"),
        ("p", "n, 3", ""), ("t", "3", ""), ("R", "3, 3", ""), ("q", "n, 3", ""),
    ),
    Example("Einsum: a trilinear form",
            (("e", "#('ijk,i,j,k->', T, x, x, x)"), ("l", "einsum"), ("d", "x"), ("o", "2"))),
)  # fmt: skip
