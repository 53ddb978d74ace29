"""Random steps of linear algebra, each beside a textbook's recurrence on jets."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import jets
from tests.jets import Jet
from tests.random_operations import Context, Extent, Operation

if TYPE_CHECKING:
    from tests.random_programs import Generator

# --- matrices that the functions below take -------------------------------------------------------


def _gram(xp: Any, a: Any, eye: Any) -> Any:
    return a @ a.T + eye


def _shifted(xp: Any, a: Any, eye: Any) -> Any:
    return a + 2.5 * eye


def _triangle(xp: Any, a: Any, eye: Any) -> Any:
    return xp.tril(a) + 2 * eye


#: What makes a matrix of the kind of another one, of any shape where `gram`, else square.
KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "gram": _gram,
    "shifted": _shifted,
    "triangle": _triangle,
}


class _OnJets:
    """What these need of an array library, on jets."""

    @staticmethod
    def tril(a: Jet) -> Jet:
        return a * np.tril(np.ones(a.v.shape))


def _of_kind(c: Context, kind: str, a: Any, extent: Extent) -> Any:
    if isinstance(a, Jet):
        found = KINDS[kind](_OnJets, a, jets.constant(np.eye(int(c.extent(extent))), c.total))
        found.condition = float(np.linalg.cond(found.v)) if found.v.size else 1.0
        return found
    return KINDS[kind](c.xp, a, c.xp.eye(c.extent(extent)))


def _matrix(g: Generator, kinds: Sequence[str]) -> tuple[int, str] | None:
    """A matrix, and a kind that can be made of it."""
    kind = g.pick(list(kinds))
    fitting = [
        k for k, s in enumerate(g.shapes) if len(s) == 2 and (kind == "gram" or s[0] == s[1])
    ]
    return (g.pick(fitting), kind) if fitting else None


# --- functions of one matrix ----------------------------------------------------------------------


def _entries(rows: Sequence[Sequence[Jet]], total: int) -> Jet:
    """A matrix of its entries."""
    n = len(rows)
    if not n:
        return jets.constant(np.zeros((0, 0)), total)
    stacked = [np.stack([np.stack([getattr(e, f) for e in r]) for r in rows]) for f in "vgh"]
    return Jet(*stacked)


def cholesky(c: Context, a: Jet) -> Jet:
    """The Cholesky-Banachiewicz recurrence, entry after entry."""
    n, zero = len(a.v), jets.constant(0.0, c.total)
    rows: list[list[Jet]] = [[zero] * n for _ in range(n)]
    for i, j in itertools.product(range(n), repeat=2):
        if j <= i:
            rest = a[i, j]
            for k in range(j):
                rest = rest - rows[i][k] * rows[j][k]
            rows[i][j] = ROOT(rest) if i == j else rest / rows[j][j]
    return _entries(rows, c.total)


ROOT = jets.chain(np.sqrt, lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 * x**-1.5)


def frobenius(c: Context, a: Jet) -> Jet:
    """Of no entries it is the constant 0, where a root has no slope."""
    total = _sum(_sum(a * a))
    return ROOT(total) if a.v.size else total


def determinant(c: Context, a: Jet) -> Jet:
    """Leibniz's sum over all permutations."""
    n, found = len(a.v), jets.constant(0.0, c.total)
    for order in itertools.permutations(range(n)):
        crossings = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        product = jets.constant((-1.0) ** crossings, c.total)
        for i, j in enumerate(order):
            product = product * a[i, j]
        found = found + product
    return found


def eigenvalues(c: Context, a: Jet) -> Jet:
    """Of a symmetric matrix, ascending, by perturbation theory of the second order."""
    w, v = np.linalg.eigh(a.v)
    gaps = w[:, None] - w[None, :]
    with np.errstate(divide="ignore"):
        inverse = np.where(np.eye(len(w)) == 1, 0, 1 / gaps)
    moved = np.einsum("ki,klp,lj->ijp", v, a.g, v)
    g = np.einsum("iip->ip", moved)
    h = np.einsum("ki,klpq,li->ipq", v, a.h, v)
    found = Jet(w, g, h + 2 * np.einsum("ijp,ij,jiq->ipq", moved, inverse, moved))
    found.condition = float(np.max(np.abs(inverse), initial=1.0)) ** 2
    return found


def exponential(c: Context, a: Jet) -> Jet:
    """Scaling and squaring of the power series."""
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(a.v).sum(), 1e-3)))) + 2)
    small = a * 0.5**halvings
    eye = jets.constant(np.eye(len(a.v)), c.total)
    found, term = eye, eye
    for k in range(1, 18):
        term = term @ small * (1 / k)
        found = found + term
    for _ in range(halvings):
        found = found @ found
    return found


def square_root(c: Context, a: Jet) -> Jet:
    """Of a positive definite matrix, by Denman and Beavers' iteration."""
    y, z = a, jets.constant(np.eye(len(a.v)), c.total)
    for _ in range(14):
        y, z = (y + jets.inverse(z)) * 0.5, (z + jets.inverse(y)) * 0.5
    return y


def logarithm(c: Context, a: Jet) -> Jet:
    """Of a positive definite matrix: the series of log(1 + X) after some square roots."""
    roots = 8
    for _ in range(roots):
        a = square_root(c, a)
    x = a - np.eye(len(a.v))
    found, power = x, x
    for k in range(2, 16):
        power = power @ x
        found = found + power * ((-1) ** (k + 1) / k)
    return found * 2.0**roots


def _power(n: int) -> Callable[[Context, Jet], Jet]:
    def compute(c: Context, a: Jet) -> Jet:
        found = a
        for _ in range(n - 1):
            found = found @ a
        return found

    return compute


#: By name: kinds of matrices, the shape (as many extents as axes), tcalc's call, and on jets.
FUNCTIONS: dict[
    str, tuple[Sequence[str], int, Callable[[Any, Any], Any], Callable[[Context, Jet], Jet]]
] = {
    "cholesky": (("gram",), 2, lambda la, a: la.cholesky(a), cholesky),
    "cholesky_upper": (("gram",), 2, lambda la, a: la.potrf(a, lower=False), lambda c, a: cholesky(c, a).T),
    "det": (("shifted", "gram"), 0, lambda la, a: la.det(a), determinant),
    "inv": (("shifted", "triangle"), 2, lambda la, a: la.inv(a), lambda c, a: jets.inverse(a)),
    "logdet": (("shifted", "triangle"), 0, lambda la, a: la.logdet(a), lambda c, a: jets.logdet(a)),
    "eigvalsh": (("gram",), 1, lambda la, a: la.eigvalsh(a), eigenvalues),
    "spectrum": (("gram",), 1, lambda la, a: la.eigh(a)[0], eigenvalues),
    "svdvals": (("gram",), 1, lambda la, a: la.svdvals(a), lambda c, a: _flipped(eigenvalues(c, a))),
    "expm": (("shifted",), 2, lambda la, a: la.expm(a / 4), lambda c, a: exponential(c, a * 0.25)),
    "sqrtm": (("gram",), 2, lambda la, a: la.sqrtm(a), square_root),
    "logm": (("gram",), 2, lambda la, a: la.logm(a), logarithm),
    "square": (("shifted",), 2, lambda la, a: la.matrix_power(a, 2), _power(2)),
    "cube": (("shifted",), 2, lambda la, a: la.matrix_power(a, 3), _power(3)),
    "potri": (("triangle",), 2, lambda la, a: la.potri(a), lambda c, a: jets.inverse(a @ a.T)),
    "tri_inverse": (("triangle",), 2, lambda la, a: la.tri_inverse(a), lambda c, a: jets.inverse(a)),
    "sumlogdiag": (("triangle", "gram"), 0, lambda la, a: la.sumlogdiag(a), lambda c, a: _sum(LOG(_diagonal(c, a)))),
    "trace": (("shifted", "gram"), 0, lambda la, a: la.trace(a), lambda c, a: _sum(_diagonal(c, a))),
    "frobenius": (("gram",), 0, lambda la, a: la.norm(a), frobenius),
    "nuclear": (("gram",), 0, lambda la, a: la.norm(a, "nuc"), lambda c, a: _sum(_diagonal(c, a))),
    "lq": (("shifted",), 2, lambda la, a: la.lq(a)[0], lambda c, a: cholesky(c, a @ a.T)),
    "lq_q": (("shifted",), 2, lambda la, a: la.lq(a)[1], lambda c, a: jets.inverse(cholesky(c, a @ a.T)) @ a),
    "qr_r": (("shifted",), 2, lambda la, a: la.qr(a)[1], lambda c, a: cholesky(c, a.T @ a).T),
    "pinv": (("gram", "shifted"), 2, lambda la, a: la.pinv(a), lambda c, a: jets.inverse(a)),
    "adj": (("shifted",), 2, lambda la, a: la.adj(a), lambda c, a: determinant(c, a) * jets.inverse(a)),
    "antisymmetric": (("shifted",), 2, lambda la, a: a - la.sym(a), lambda c, a: (a - a.T) * 0.5),
}  # fmt: skip
LOG = jets.ELEMENTWISE["log"]


def _flipped(a: Jet) -> Jet:
    found = a[::-1]
    found.condition = a.condition
    return found


def _sum(a: Jet) -> Jet:
    return jets.reduce("sum", a, 0)


def _diagonal(c: Context, a: Jet) -> Jet:
    return jets.einsum("ii->i", a, sizes={}, total=c.total)


def _function(g: Generator) -> None:
    name = g.pick(sorted(FUNCTIONS))
    found = _matrix(g, FUNCTIONS[name][0])
    if found:
        k, kind = found
        n = g.shapes[k][0]
        g.emit("function", [k], (n,) * FUNCTIONS[name][1], name=name, kind=kind, extent=n)


def _build_function(c: Context, args: Sequence[Any], name: str, kind: str, extent: Extent) -> Any:
    return FUNCTIONS[name][2](c.xp.linalg, _of_kind(c, kind, args[0], extent))


def _function_jets(c: Context, args: Sequence[Jet], name: str, kind: str, extent: Extent) -> Jet:
    a = _of_kind(c, kind, args[0], extent)
    found = FUNCTIONS[name][3](c, a)
    found.condition = max(found.condition, a.condition)
    return found


# --- systems --------------------------------------------------------------------------------------

#: By name: kinds of matrices, tcalc's call with a vector or a matrix, the inverse on jets.
SYSTEMS: dict[str, tuple[Sequence[str], Callable[[Any, Any, Any], Any], Callable[[Jet], Jet]]] = {
    "solve": (("gram", "shifted", "triangle"), lambda la, a, b: la.solve(a, b), jets.inverse),
    "lower": (("triangle",), lambda la, a, b: la.solve_triangular(a, b, lower=True), jets.inverse),
    "adjoint": (
        ("triangle",),
        lambda la, a, b: la.solve_triangular(a, b, trans=1, lower=True),
        lambda a: jets.inverse(a).T,
    ),
    "upper": (
        ("triangle",), lambda la, a, b: la.solve_triangular(a.T, b), lambda a: jets.inverse(a).T,
    ),
    "cho_solve": (
        ("triangle",), lambda la, a, b: la.cho_solve((a, True), b), lambda a: jets.inverse(a @ a.T),
    ),
    "lstsq": (("shifted",), lambda la, a, b: la.lstsq(a, b), jets.inverse),
}  # fmt: skip


def _system(g: Generator) -> None:
    name = g.pick(sorted(SYSTEMS))
    found = _matrix(g, SYSTEMS[name][0])
    if found:
        k, kind = found
        n = g.shapes[k][0]
        b = [j for j, s in enumerate(g.shapes) if len(s) in (1, 2) and s[0] == n]
        side = g.pick(b)
        g.emit("system", [k, side], g.shapes[side], name=name, kind=kind, extent=n)


def _build_system(c: Context, args: Sequence[Any], name: str, kind: str, extent: Extent) -> Any:
    return SYSTEMS[name][1](c.xp.linalg, _of_kind(c, kind, args[0], extent), args[1])


def _system_jets(c: Context, args: Sequence[Jet], name: str, kind: str, extent: Extent) -> Jet:
    a = _of_kind(c, kind, args[0], extent)
    found = SYSTEMS[name][2](a) @ args[1]
    found.condition = a.condition
    return found


# --- products of triangles and tall matrices ------------------------------------------------------


def _tall(g: Generator) -> None:
    """Least squares and pseudo-inverses of matrices with more rows than columns."""
    fitting = [
        k
        for k, s in enumerate(g.shapes)
        if len(s) == 2 and s[0] != s[1] and g.size(s[0]) > g.size(s[1])
    ]
    if fitting:
        k = g.pick(fitting)
        rows, columns = g.shapes[k]
        g.emit("tall", [k], (columns, rows))


def _tall_jets(c: Context, args: Sequence[Jet]) -> Jet:
    a = args[0]
    gram = a.T @ a
    found = jets.inverse(gram) @ a.T
    found.condition = float(np.linalg.cond(gram.v)) if gram.v.size else 1.0
    return found


def _triangular_product(g: Generator) -> None:
    found = _matrix(g, ("shifted",))
    if found:
        k, _ = found
        n = g.shapes[k][0]
        other = g.pick([j for j, s in enumerate(g.shapes) if len(s) == 2 and s[0] == n])
        flags = {key: g.chance(0.5) for key in ("transpose", "lower", "solved")}
        g.emit("triangular", [k, other], g.shapes[other], extent=n, **flags)


def _build_triangular(
    c: Context, args: Sequence[Any], extent: Extent, transpose: bool, lower: bool, solved: bool
) -> Any:
    a = args[0] + 2.5 * c.xp.eye(c.extent(extent))
    call = c.xp.linalg.trsm if solved else c.xp.linalg.trmm
    return call(a, args[1], transpose=transpose, lower=lower, alpha=0.5)


def _triangular_jets(
    c: Context, args: Sequence[Jet], extent: Extent, transpose: bool, lower: bool, solved: bool
) -> Jet:
    a = args[0] + 2.5 * np.eye(int(c.extent(extent)))
    a = a * (np.tril if lower else np.triu)(np.ones(a.v.shape))
    a = a.T if transpose else a
    found = (jets.inverse(a) if solved else a) @ args[1] * 0.5
    found.condition = float(np.linalg.cond(a.v)) if a.v.size and solved else 1.0
    return found


MATRICES: dict[str, Operation] = {
    "function": Operation(_function, _build_function, _function_jets, 6),
    "system": Operation(_system, _build_system, _system_jets, 3),
    "tall": Operation(_tall, lambda c, args: c.xp.linalg.pinv(args[0]), _tall_jets),
    "triangular": Operation(_triangular_product, _build_triangular, _triangular_jets),
}
