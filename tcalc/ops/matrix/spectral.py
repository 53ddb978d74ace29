"""Functions V g(diag w) V' of symmetric matrices: smooth wherever g is, at equal eigenvalues too.

The rows have the matrix, its eigenvalues and its eigenvectors as operands: the derivative goes
through the matrix alone, as divided differences of g, and what is computed comes from the
eigenvectors, which all orders share. Everything is a function of (A + A') / 2, as in `eigh`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...graph.applications import apply, core_swap
from ...graph.extents import ONE, Coef, extent_coef, number
from ...graph.nodes import Apply, Expr
from ...graph.normal import add, einsum, scale, view
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.products import numeric_value, split_coef, zeros_node
from ...graph.spelling import Spelling
from ...support.errors import UnsupportedError
from ..arithmetic import as_expr, public
from ..matrix_cores import labels, of_square, square
from .directional_rows import Build, filled_like, linear, member, once, pull, push, without_identity
from .divided_differences import Scalar, X, spectral_derivative
from .eigh import eigh

__all__ = ["matrix_function"]


def _kernel(xp: Any, params: tuple[Any, ...], a: Any, w: Any, v: Any, *directions: Any) -> Any:
    with np.errstate(all="ignore"):
        es = [once(e, 2) for e in directions]
        es = [(e + np.swapaxes(e, -1, -2)) / 2 for e in es]
        return filled_like(spectral_derivative(params[0], once(w, 1), once(v, 2), es), a)


def _trace_kernel(xp: Any, params: tuple[Any, ...], a: Any, w: Any, v: Any) -> Any:
    with np.errstate(all="ignore"):
        values = params[0](0, xp.asarray(w, xp.float64), xp)
        return xp.asarray(values.sum(axis=-1), w.dtype)


def _build(g: Scalar) -> Build:
    def build(operands: Any) -> Expr:
        a, w, v, *directions = operands
        return spectral(g, a, w, v, *directions)

    return build


def _pushforward(k: int, tangent: Expr, node: Apply) -> Expr | None:
    g = node.params[0]
    return None if k in (1, 2) else push(node, k, 3, tangent, _build(g), _build(g.raised()))


def _pullback(k: int, cotangent: Expr, node: Apply) -> Expr | None:
    g = node.params[0]
    return None if k in (1, 2) else pull(node, k, 3, cotangent, _build(g), _build(g.raised()))


DERIVATIVE = r"\mathrm{{D}}"


def spectral_row(order: int) -> Op:
    """The row of the derivative of this order along symmetric directions."""
    count = str(order) if order > 1 else ""
    name = f"matrix_function_frechet{count}" if order else "matrix_function"
    return member(name, lambda: _row(name, order))


def _row(name: str, order: int) -> Op:
    shown = [f"{{{k}}}" for k in range(order + 1)]  # of the operands that are shown
    return Op(
        name, (2, 1, 2, *(2,) * order),
        Meaning(
            (None,) * (order + 3), shape=of_square(name), self_adjoint=True,
            pushforward=_pushforward, pullback=_pullback,
        ),
        Kernels(_kernel, host=True, flops=for_each_row(4.0 * 2**order if order else 2.0)),
        Spelling(
            rf"{DERIVATIVE * (order > 0)}({{function}})({', '.join(shown)})",
            shown=(0, *range(3, order + 3)), source="matrix_function",
        ),
        family=(spectral_row, order),
    )  # fmt: skip


def spectral(g: Scalar, a: Expr, w: Expr, v: Expr, *directions: Expr) -> Expr:
    """V g(diag w) V' for the eigenvalues and eigenvectors of a, or its derivative along directions.

    Polynomials of low degree, and directions that are the identity, need no eigenvectors.
    """

    coef, plain = split_coef(g.expr)
    if coef != ONE:
        return scale(spectral(Scalar(plain, g.order), a, w, v, *directions), coef)

    def build(fixed: list[Expr], rest: list[Expr]) -> Expr:
        fewer = without_identity(rest)
        if fewer is not None:
            return spectral(g.derived(), *fixed, *fewer)
        found = _polynomial(g, fixed[0], rest)
        if found is not None:
            return found
        return apply(spectral_row(len(rest)), *fixed, *rest, params=(g,))

    return linear([a, w, v], directions, build)


def _polynomial(g: Scalar, a: Expr, directions: list[Expr]) -> Expr | None:
    """The value where g is a polynomial whose last derivative is a number, or the identity."""
    slope = g.derivatives[-1]
    value = numeric_value(slope)
    if any(isinstance(node, Apply) for node in g.nodes[0]):
        return None  # a derivative can be zero everywhere but at a kink
    if value == 0:
        return zeros_node(a.shape)
    if len(directions) == 1 and value is not None:
        return scale(_symmetric_part(directions[0]), number(value))
    if not directions and slope is X:
        return _symmetric_part(a)
    if directions or value is None:
        return None
    axes = range(a.ndim)
    return einsum([], [], [*axes[:-1], axes[-2]], number(value), dict(enumerate(a.shape)))


def _symmetric_part(e: Expr) -> Expr:
    return scale(add([e, view(e, core_swap(e.ndim))]), Coef(0.5))


# --- sums of functions of eigenvalues -------------------------------------------------------------


def _gradient(node: Apply) -> Expr:
    a, w, v = node.args
    return spectral(node.params[0].raised().derived(), a, w, v)


def _trace_push(k: int, tangent: Expr, node: Apply) -> Expr | None:
    if k:
        return None
    b, i, j, _, _, _ = labels(node.args[0])
    extra = tuple(range(j + 1, j + 1 + tangent.ndim - node.args[0].ndim))
    words = [(*b, i, j), (*b, i, j, *extra)]
    return einsum([_gradient(node), tangent], words, (*b, *extra))


def _trace_pull(k: int, cotangent: Expr, node: Apply) -> Expr | None:
    if k:
        return None
    b, i, j, _, _, _ = labels(node.args[0])
    extra = tuple(range(j + 1, j + 1 + cotangent.ndim - node.ndim))
    return einsum([cotangent, _gradient(node)], [(*extra, *b), (*b, i, j)], (*extra, *b, i, j))


def trace_row() -> Op:
    """The row of tr g((A + A') / 2), a sum over eigenvalues."""
    name = "matrix_function_trace"
    return member(name, lambda: _trace_row(name))


def _trace_row(name: str) -> Op:
    return Op(
        name, (2, 1, 2),
        Meaning(
            (None,) * 3, shape=of_square(name, 0), pushforward=_trace_push,
            pullback=_trace_pull,
        ),
        Kernels(_trace_kernel, flops=lambda a, w, v: 11 * prod(w)),
        Spelling(r"\operatorname{{tr}}(({function})({0}))", shown=(0,)),
        family=(trace_row,),
    )  # fmt: skip


def spectral_trace(g: Scalar, a: Expr, w: Expr, v: Expr) -> Expr:
    """The sum of g over the eigenvalues of a."""
    coef, plain = split_coef(g.expr)
    b, i, _, _, _, _ = labels(a)
    if numeric_value(plain) is not None:
        return einsum([], [], b, coef.by(extent_coef(w.shape[-1])), dict(enumerate(w.shape)))
    if plain is X:
        return einsum([a], [(*b, i, i)], b, coef)
    return scale(apply(trace_row(), a, w, v, params=(Scalar(plain),)), coef)


def _formula(function: Callable[[Expr], Any]) -> Scalar:
    formula = as_expr(function(X))
    if formula.shape:
        raise UnsupportedError("matrix_function takes a function from a number to a number")
    return Scalar(formula)


@public
def matrix_function(a: object, function: Callable[[Expr], Any]) -> Expr:
    """g of the symmetric matrices (a + a') / 2, whose derivatives are exact at equal eigenvalues.

    Parameters
    ----------
    a : expression of shape (..., n, n)
    function : callable
        The scalar function, from an expression to an expression, such as ``tc.tanh``.

    Raises
    ------
    UnsupportedError
        If the function has other variables, or does more than scalar functions do.
    """
    e = square("matrix_function", as_expr(a))
    w, v = eigh(e)
    return spectral(_formula(function), e, w, v)


def trace_function(a: Expr, function: Callable[[Expr], Any]) -> Expr:
    """The trace of a function of symmetric matrices, the sum over their eigenvalues."""
    w, v = eigh(a)
    return spectral_trace(_formula(function), a, w, v)
