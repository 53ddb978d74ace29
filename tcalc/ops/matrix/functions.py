"""Exponential, square root and logarithm of general square matrices, with all their derivatives.

Their Fréchet derivatives f_k(A, E1, ..., Ek) are a family of rows, closed under differentiation and
smooth at equal eigenvalues. A kernel that finds all its matrices symmetric works in their
eigenvectors; others go through the algebra of nilpotent parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...graph.applications import apply
from ...graph.extents import Coef
from ...graph.nodes import Apply, Expr
from ...graph.normal import einsum, scale
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support.arrays import Array
from ..arithmetic import as_expr, public
from ..elementwise import exp, log, sqrt
from ..matrix_cores import of_square, refuse, square
from .directional_rows import (
    Build,
    filled_like,
    linear,
    member,
    once,
    pull_transposed,
    push,
    scaled_matrix,
    without_identity,
)
from .divided_differences import EPS, Scalar, X, spectral_derivative
from .inverse import inv
from .nilpotent import by_schur, exponential, logarithm, parts_of, root

__all__ = ["expm", "logm", "sqrtm"]


SCALARS = {"expm": exp, "sqrtm": sqrt, "logm": log}
RESULT = {"sqrtm": "square root", "logm": "logarithm"}


@cache
def _scalar(name: str, order: int) -> Scalar:
    return Scalar(SCALARS[name](X), order)


# --- kernels --------------------------------------------------------------------------------------


def _kernel(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, params: tuple[Any, ...], a: Any, *directions: Any) -> Any:
        if not a.size:
            return np.zeros_like(a)
        with np.errstate(all="ignore"):
            matrix, es = once(a, 2), [once(e, 2) for e in directions]
            problem = f"{name}: entries that are not finite"
            _refuse(problem, ~np.isfinite(matrix).all(axis=(-2, -1)))
            if np.array_equal(matrix, np.swapaxes(matrix, -1, -2)):
                return filled_like(_symmetric(name, matrix, es), a)
            return filled_like(_general(name, matrix, es), a)

    return kernel


def _symmetric(name: str, a: Array, es: list[Array]) -> Array:
    w, v = np.linalg.eigh(a)
    w = _in_domain(name, w, bool(es))
    return spectral_derivative(_scalar(name, len(es)), w, v, es)


def _general(name: str, a: Array, es: list[Array]) -> Array:
    import scipy.linalg

    if name == "expm":
        found: Array = exponential(parts_of(a, es))[-1] if es else scipy.linalg.expm(a)
        return found
    t, u = np.zeros(a.shape, complex), np.zeros(a.shape, complex)
    for at in np.ndindex(a.shape[:-2]):
        t[at], u[at] = scipy.linalg.schur(a[at], output="complex")
    diagonal = np.einsum("...ii->...i", t)
    diagonal[...] = _in_domain(name, diagonal, bool(es))
    if name == "logm":
        return by_schur(logarithm, t, u, es)
    double = (np.abs(diagonal) == 0).sum(axis=-1) > 1
    _refuse("sqrtm: zero is an eigenvalue more than once, and no square root is found", double)
    return by_schur(root, t, u, es)


def _refuse(problem: str, bad: Array) -> None:
    """A LinAlgError that names an item by the axes along which matrices differ."""
    refuse(problem, bad.squeeze())


def _in_domain(name: str, values: Array, derivative: bool) -> Array:
    """Eigenvalues of which the function is real; those within rounding of zero are zero."""
    if name == "expm":
        return values
    size = values.shape[-1] * EPS * np.abs(values).max(axis=-1, keepdims=True)
    zero = np.abs(values) <= size
    negative = ~zero & (values.real < 0) & (np.abs(values.imag) <= size)
    what = f"the principal {RESULT[name]} is not real"
    _refuse(f"{name}: an eigenvalue is negative, so {what}", negative.any(axis=-1))
    if name == "logm":
        _refuse("logm: the matrix is singular and has no logarithm", zero.any(axis=-1))
    elif derivative:
        problem = "sqrtm: the matrix is singular, where the square root has no derivative"
        _refuse(problem, zero.any(axis=-1))
    return np.where(zero, 0, values)


# --- rows -----------------------------------------------------------------------------------------


def _build(name: str, count: int) -> Build:
    return lambda operands: frechet(name, operands[0], *operands[1 : count + 1])


def _pushforward(k: int, tangent: Expr, node: Apply) -> Expr:
    name, order = node.op.family[1:]
    return push(node, k, 1, tangent, _build(name, order), _build(name, order + 1))


def _pullback(k: int, cotangent: Expr, node: Apply) -> Expr:
    name, order = node.op.family[1:]
    return pull_transposed(node, k, 1, cotangent, _build(name, order), _build(name, order + 1))


def frechet_row(name: str, order: int) -> Op:
    """The row of a function's derivative of this order."""
    number = str(order) if order > 1 else ""
    full = f"{name}_frechet{number}" if order else name
    return member(full, lambda: _row(full, name, order))


def _row(full: str, name: str, order: int) -> Op:
    fields = ", ".join([f"{{{k}}}" for k in range(order + 1)])
    return Op(
        full, (2,) * (order + 1),
        Meaning(
            (None,) * (order + 1), shape=of_square(full), transposes=True,
            pushforward=_pushforward, pullback=_pullback,
        ),
        Kernels(_kernel(name), host=True, flops=for_each_row(25.0 * 3**order)),
        Spelling(
            rf"\operatorname{{{{{name}}}}}({fields})" if not order
            else rf"\operatorname{{{{L}}}}_{{{{\mathrm{{{{{name}}}}}}}}}({fields})",
            source=f"{name}_frechet",
        ),
        family=(frechet_row, name, order),
    )  # fmt: skip


def frechet(name: str, a: Expr, *directions: Expr) -> Expr:
    """The derivative of a function at a along directions, in which it is linear and symmetric."""

    def build(fixed: list[Expr], rest: list[Expr]) -> Expr:
        found = _along_identity(name, fixed[0], rest)
        found = _along_itself(name, fixed[0], rest) if found is None else found
        return apply(frechet_row(name, len(rest)), *fixed, *rest) if found is None else found

    return linear([a], directions, build)


def _along_identity(name: str, a: Expr, directions: list[Expr]) -> Expr | None:
    """Along the identity the derivative is that of the scalar derivative, where it has a row."""
    rest = without_identity(directions)
    if rest is None:
        return None
    if name == "expm":
        return frechet(name, a, *rest)
    return None if rest else _scalar_derivative(name, a)


def _along_itself(name: str, a: Expr, directions: list[Expr]) -> Expr | None:
    """Along multiples of the matrix, which commute with it, the scalar derivative is multiplied."""
    if not directions or (len(directions) > 1 and name != "expm"):
        return None
    matrix = scaled_matrix(a)
    if matrix is None or any(scaled_matrix(e) != matrix for e in directions):
        return None
    batch, i, j = tuple(range(a.ndim - 2)), a.ndim - 2, a.ndim - 1
    found = _scalar_derivative(name, a)
    for e in directions:
        found = einsum([e, found], [(*batch, i, j + 1), (*batch, j + 1, j)], range(a.ndim))
    return found


def _scalar_derivative(name: str, a: Expr) -> Expr:
    """The function that is the derivative for numbers."""
    if name == "expm":
        return frechet(name, a)
    return inv(a) if name == "logm" else scale(inv(frechet(name, a)), Coef(0.5))


for _name in SCALARS:
    frechet_row(_name, 0)


@public
def expm(a: object) -> Expr:
    """The exponential of square matrices, the last two axes."""
    return frechet("expm", square("expm", as_expr(a)))


@public
def sqrtm(a: object) -> Expr:
    """The principal square root of square matrices; a LinAlgError where it is not real.

    A singular matrix has a root here if zero is a simple eigenvalue or the matrix is symmetric; it
    has no derivative (LinAlgError).
    """
    return frechet("sqrtm", square("sqrtm", as_expr(a)))


@public
def logm(a: object) -> Expr:
    """The principal logarithm of square matrices; a LinAlgError where it is not real."""
    return frechet("logm", square("logm", as_expr(a)))
