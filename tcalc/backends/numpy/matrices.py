"""NumPy kernels of whole matrices: factors, solves, and in-place LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...ops.matrix.inverse import SINGULAR
from ...plan.steps import Plan, Step
from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.namespaces import NUMPY
from ...support.products import Product, numpy_product, product, take_product
from ...support.triangles import mirrored, without_upper
from ..host.slots import Run, Slots
from .grams import gram

Maker = Callable[[Step, "np.dtype[Any]"], Run]


#: Entries of a result, and most summed entries, from which and up to which clearing it matters.
_LARGE, _SHALLOW = 1 << 13, 16
#: Rows from which half a product is faster than the whole one, and of one panel of it.
HALVED, PANEL = 160, 96
#: Rows of a panel of a product that is written over its operand.
ROWS = 256
#: Rows of triangles that are solved by blocks of so many rows, which LAPACK takes longer for.
SWEPT, BLOCK = range(160, 1000), 64
#: Columns up to which a block of them takes all that was solved from itself.
FEW = 16
#: Kinds of steps that SciPy's LAPACK has.
OF_LAPACK = frozenset({"trisolve", "congruence", "solve", "factor", "over", "into"})
#: Rows of a symmetric matrix between inverses of a triangle that LAPACK takes at once.
LEAF = 128


def _dot(multiply: Product, step: Step, dtype: np.dtype[Any]) -> Run:
    """A matrix product, or the half of it that is wanted by panels of rows."""
    (a, b), o = step.args, step.out
    half, short = step.params or ("", False)

    large = len(step.shape) == 2 and prod(step.shape) >= _LARGE

    def whole(v: Slots) -> None:
        x, y = v[a], v[b]
        # np.dot clears the result first, which a product over few entries is hardly longer than.
        if large and len(y) <= _SHALLOW and x.flags.c_contiguous and y.flags.c_contiguous:
            np.matmul(x, y, out=v[o])
        else:
            multiply(x, y, v[o])

    def panels(v: Slots) -> None:
        x, y, out = v[a], v[b], v[o]
        for low in range(0, len(out), PANEL):
            high = low + PANEL
            here, rest = slice(low, high), slice(high, None)
            wanted = slice(low, None) if half == "upper" else slice(high)
            summed = wanted if short else slice(None)
            multiply(x[here, summed], y[summed, wanted], out[here, wanted])
            if half == "lower":
                out[here, rest] = 0
            elif half == "upper":
                out[here, :low] = 0
        if half == "symmetric":
            mirrored(out)

    return panels if half and step.shape[0] >= HALVED else whole


def _dot_over(multiply: Product, step: Step, dtype: np.dtype[Any]) -> Run:
    """A matrix product, by panels of rows where it is written over the first operand."""
    (a, b), o = step.args, step.out

    def run(v: Slots) -> None:
        x, y, out = v[a], v[b], v[o]
        if not np.may_share_memory(x, out):
            multiply(x, y, out)
            return
        panel = np.empty((ROWS, out.shape[1]), dtype)
        for low in range(0, len(x), ROWS):
            rows = x[low : low + ROWS]
            multiply(rows, y, panel[: len(rows)])
            out[low : low + ROWS] = panel[: len(rows)]

    return run


def _finish(step: Step, dtype: np.dtype[Any]) -> Run:
    """What an operator makes of the factors of its operand."""
    (a,), o, (op, *params) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        v[o] = np.asarray(op.kernels.finish(NUMPY, params, v[a]), dtype)

    return run


def _factor(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, (factor,) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        v[o] = factor.compute(NUMPY, (), np.asarray(v[a], dtype))

    return run


def _into(step: Step, dtype: np.dtype[Any]) -> Run:
    """What an operator writes into the memory of its result."""
    args, o, (op, *params) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        op.kernels.into(NUMPY, params, v[o], *[v[a] for a in args])

    return run


def _over(step: Step, dtype: np.dtype[Any]) -> Run:
    """In place: over the operand where the plan gives it the same memory, else over a copy."""
    (a,), o, (op, *params) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        target = v[o]
        if v[a] is not target:
            np.copyto(target, v[a])
        op.kernels.over(NUMPY, params, target)

    return run


def _solve(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, b), o, (transposed, factored) = step.args, step.out, step.params

    def factors(v: Slots) -> None:
        import scipy.linalg

        lu, pivots, zero = v[a]
        if zero:
            raise LinAlgError(SINGULAR)
        (getrs,) = scipy.linalg.get_lapack_funcs(("getrs",), (lu,))
        found = getrs(lu, pivots, v[b], trans=int(not transposed))[0] if lu.size else v[b].copy()
        v[o] = np.asarray(found, dtype)

    def matrix(v: Slots) -> None:
        try:
            v[o] = np.linalg.solve(v[a].T if transposed else v[a], v[b])
        except np.linalg.LinAlgError as error:
            raise LinAlgError(SINGULAR) from error

    return factors if factored else matrix


def _trisolve(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, b), o, (trans, name) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        matrix, x = _regular(v[a], name), v[o]
        if v[b] is not x:
            np.copyto(x, v[b])
        _substituted(matrix, x, trans)

    return run


def _regular(triangle: Array, name: str) -> Array:
    """The triangle, which can be solved with; LinAlgError where it cannot."""
    if not np.all(triangle.diagonal()):
        raise LinAlgError(f"{name}: a zero on the diagonal")
    return triangle


def _substituted(matrix: Array, x: Array, trans: bool) -> None:
    """Solve in place with a lower triangle or its transpose; `x` is contiguous."""
    import scipy.linalg

    (trsm,) = scipy.linalg.get_blas_funcs(("trsm",), (x,))
    if len(matrix) in SWEPT:
        _by_blocks(trsm, matrix, x, trans)
    elif x.size:
        # Row-major memory is the transpose in column-major order: solve from the other side.
        trsm(1, matrix.T, x.T, side=1, lower=0, trans_a=int(trans), overwrite_b=1)


def _by_blocks(trsm: Any, matrix: Array, x: Array, trans: bool) -> None:
    """Solve in place with a lower triangle or its transpose, most of it by matrix products.

    What a block solves is taken from all that is left, in place; where columns are few, that is
    read too often, and a block takes what was solved from itself.
    """
    starts, few = range(0, len(matrix), BLOCK), prod(x.shape[1:]) <= FEW
    for low in reversed(starts) if trans else starts:
        above, own, below = slice(low), slice(low, low + BLOCK), slice(low + BLOCK, None)
        before, after = (below, above) if trans else (above, below)
        if few:
            x[own] -= (matrix[before, own].T if trans else matrix[own, before]) @ x[before]
        trsm(1, matrix[own, own].T, x[own].T, side=1, lower=0, trans_a=int(trans), overwrite_b=1)
        if not few and x[after].size:
            known = matrix[own, after].T if trans else matrix[after, own]
            take_product(known, x[own], x[after])


def _congruence(step: Step, dtype: np.dtype[Any]) -> Run:
    """Each symmetric matrix with the inverse of a triangle on both sides, in place."""
    (a, b), o, (axis, name) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        factor, x = _regular(v[b], name), v[o]
        if v[a] is not x:
            np.copyto(x, v[a])
        for matrix in np.moveaxis(x, axis, 0):
            _by_halves(factor, matrix)

    return run


def _by_halves(factor: Array, b: Array) -> None:
    """X B X' over B, of which a quarter is copied, with half the operations of two solves.

    With C = X1 B12, H = L21 X1 B11 X1' / 2, which is kept below the diagonal, and S = L21 (C - H'),
    X2 stands on both sides of B22 - S - S' in the last half, and beside C - 2 H' above it.
    """
    import scipy.linalg

    if len(b) <= LEAF:
        (sygst,) = scipy.linalg.get_lapack_funcs(("sygst",), (b,))
        # Row-major memory is the transpose in column-major order: of L an upper factor.
        square = np.ascontiguousarray(b)
        sygst(square.T, factor.T, lower=0, overwrite_a=1)
        mirrored(square)
        if square is not b:
            np.copyto(b, square)
        return
    first, last = slice(len(b) // 2), slice(len(b) // 2, None)
    below, half, rest = factor[last, first], b[last, first], b[last, last]
    _by_halves(factor[first, first], b[first, first])
    right = b[first, last].copy()
    _substituted(factor[first, first], right, False)
    product(below, b[first, first], half)
    half *= 0.5
    right -= half.T
    for low in range(0, len(rest), BLOCK):
        rows = slice(low, low + BLOCK)
        share = np.empty_like(rest[rows])
        product(below[rows], right, share)
        rest[rows] -= share
        rest[:, rows] -= share.T
    right -= half.T
    np.copyto(half, right.T)
    del right
    left = half.copy()
    _substituted(factor[last, last], left, False)
    b[last, first], b[first, last] = left, left.T
    del left
    _by_halves(factor[last, last], rest)


def _triangle(step: Step, dtype: np.dtype[Any]) -> Run:
    """One side of a square matrix, in place where the plan gives it the same memory."""
    (a,), o, (side, number) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        x, out = v[a], v[o]
        if x is not out:
            np.copyto(out, x)
        for at in np.ndindex(out.shape[:-2]):
            square = out[at]
            without_upper(square if side == "lower" else square.T)
            if number != 1:
                square.reshape(-1)[:: len(square) + 1] *= number

    return run


#: Rows and columns of a block of products whose operands hold two summed axes in opposite orders.
CROSSED = 64


def _crossed(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, b), o = step.args, step.out

    def run(v: Slots) -> None:
        x, y, out = v[a], v[b], v[o]
        (m, p, n), q = x.shape, y.shape[1]
        out.fill(0)
        for low in range(0, m, CROSSED):
            rows = slice(low, low + CROSSED)
            for left in range(0, low + 1 if a == b else n, CROSSED):
                columns = slice(left, left + CROSSED)
                one = x[rows, :, columns].transpose(1, 0, 2).reshape(p, -1)
                two = y[columns, :, rows].transpose(1, 2, 0).reshape(q, -1)
                part = one @ two.T
                out += part
                if a == b and left < low:
                    out += part.T

    return run


#: Entries of sums that are made at a time.
SUMS = 1 << 15


def _weighted(step: Step, dtype: np.dtype[Any]) -> Run:
    (w, a, c), o, (first, second) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        rows, shift, out = first * v[a], second * v[c], v[o]
        many = max(1, SUMS // max(1, rows.size))
        for j in range(0, len(out), many):
            few = slice(j, j + many)
            sums = rows + shift[few, None]
            out[few] = np.matmul(v[w][few, None, :], sums)[:, 0]

    return run


def product_for(plan: Plan) -> Product:
    """How a plan's matrices are multiplied: by the BLAS of its factorisations, if it has any."""
    return product if any(step.kind in OF_LAPACK for step in plan.steps) else numpy_product


def multiplying(multiply: Product) -> dict[str, Maker]:
    """How the kinds are run that multiply large matrices."""
    made = {"dot": _dot, "dot_over": _dot_over, "gram": gram}
    return {kind: partial(maker, multiply) for kind, maker in made.items()}


#: How each kind of step is run.
MATRICES: dict[str, Maker] = {
    **multiplying(numpy_product),
    "weighted": _weighted,
    "crossed": _crossed,
    "triangle": _triangle,
    "trisolve": _trisolve,
    "congruence": _congruence,
    "solve": _solve,
    "factor": _factor,
    "finish": _finish,
    "over": _over,
    "into": _into,
}
