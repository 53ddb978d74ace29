"""Texts of the matrix language evaluated over jax.numpy: no part of the library is used.

jax differentiates the queries of the tables through `evaluate`, which evaluates the forms that are
expected, and those that are printed, as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy import linalg, special

from .text import Node

jax.config.update("jax_enable_x64", True)


class Value(NamedTuple):
    """An array and what it is: "scalar", "column", "row", "matrix", "tensor".

    "filled" and "filled row" are equal entries, as many as the other factor has: one number.
    """

    array: Any
    kind: str


def typed(array: Any) -> Value:
    array = jnp.asarray(array, dtype=float)
    return Value(array, ("scalar", "column", "matrix")[array.ndim] if array.ndim < 3 else "tensor")


def _times(a: Value, b: Value) -> Value:
    if b.kind == "filled":
        b = Value(jnp.full(a.array.shape[-1], b.array), "column")
    if a.kind == "filled row":
        a = Value(jnp.full(b.array.shape[0], a.array), "row")
    if "scalar" in (a.kind, b.kind):
        return Value(a.array * b.array, a.kind if b.kind == "scalar" else b.kind)
    kinds = {
        ("row", "column"): "scalar",
        ("column", "row"): "matrix",
        ("matrix", "column"): "column",
        ("row", "matrix"): "row",
        ("matrix", "matrix"): "matrix",
    }
    outer = (a.kind, b.kind) == ("column", "row")
    return Value((jnp.outer if outer else jnp.matmul)(a.array, b.array), kinds[a.kind, b.kind])


def _entrywise(call: Callable[..., Any], *values: Value) -> Value:
    kinds = {v.kind for v in values} - {"scalar"} or {"scalar"}
    if len(kinds) > 1:
        raise TypeError(f"entrywise of {sorted(kinds)}")
    return Value(call(*(v.array for v in values)), kinds.pop())


def _transposed(a: Value) -> Value:
    kind = {"column": "row", "row": "column", "filled": "filled row"}.get(a.kind, a.kind)
    return Value(a.array.T, kind)


def _power(a: Value, b: Value) -> Value:
    if a.kind == "matrix":
        return Value(jnp.linalg.matrix_power(a.array, int(b.array)), "matrix")
    return _entrywise(jnp.power, a, b)


def _einsum(node: Node, values: list[Value], sizes: Mapping[str, int]) -> Value:
    """A product by its indices: a letter that the output repeats is a unit tensor."""
    spec, extents = node.value
    inputs, output = spec.split("->")
    terms, arrays = inputs.split(",") if values else [], [v.array for v in values]
    known = {c: int(evaluate(e, {}, sizes).array) for c, e in extents}
    for letters, array in zip(terms, arrays, strict=True):
        known.update(zip(letters, array.shape, strict=True))
    terms, arrays = terms + list(known), arrays + [jnp.ones(n) for n in known.values()]
    fresh, slots = iter("ABCDEFGHIJ"), []
    for place, letter in enumerate(output):
        slots.append(letter if letter not in output[:place] else next(fresh))
        if slots[-1] != letter:
            terms.append(letter + slots[-1])
            arrays.append(jnp.eye(known[letter]))
    return typed(jnp.einsum(f"{','.join(terms)}->{''.join(slots)}", *arrays))


def evaluate(
    node: Node, values: Mapping[str, Any], sizes: Mapping[str, int], kinds: Any = None
) -> Value:
    """The value of a tree; `kinds`, a dict if given, takes the kind of every node by its `id`."""

    def of(part: Node) -> Value:
        found = value_of(part)
        if kinds is not None:
            kinds[id(part)] = found.kind
        return found

    def value_of(part: Node) -> Value:
        if part.head == "number":
            return typed(part.value)
        if part.head == "name":
            if part.value == "pi":
                return typed(jnp.pi)
            return typed(values[part.value] if part.value in values else sizes[part.value])
        if part.head == "call" and part.value in SIZED:
            return SIZED[part.value](*map(of, part.parts))
        parts = [of(p) for p in part.parts]
        if part.head == "call":
            return FUNCTIONS[part.value](*parts)
        if part.head == "einsum":
            return _einsum(part, parts, sizes)
        if part.head == "sum":
            signs = part.value
            return _entrywise(lambda *a: sum(s * x for s, x in zip(signs, a, strict=True)), *parts)
        if part.head in COMPARISONS:
            return _entrywise(lambda a, b: COMPARISONS[part.head](a, b) * 1.0, *parts)
        return OPERATORS[part.head](*parts)

    return of(node)


OPERATORS: dict[str, Callable[..., Value]] = {
    "-": lambda a: Value(-a.array, a.kind),
    "*": _times,
    "/": lambda a, b: Value(a.array / b.array, a.kind),
    ".*": lambda a, b: _entrywise(jnp.multiply, a, b),
    "./": lambda a, b: _entrywise(jnp.divide, a, b),
    ".^": lambda a, b: _entrywise(jnp.power, a, b),
    "\\": lambda a, b: Value(jnp.linalg.solve(a.array, b.array), b.kind),
    "'": _transposed,
    "^": _power,
}

COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": jnp.less,
    "<=": jnp.less_equal,
    ">": jnp.greater,
    ">=": jnp.greater_equal,
    "==": jnp.equal,
    "!=": jnp.not_equal,
}


def _total(call: Callable[..., Any]) -> Callable[..., Value]:
    return lambda a: Value(call(a.array), "scalar")


def _entries(call: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *values: _entrywise(call, *values)


def _alike(call: Callable[..., Any]) -> Callable[..., Value]:
    return lambda a: Value(call(a.array), a.kind)


def _extremum(total: Callable[..., Any], entries: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *v: _total(total)(*v) if len(v) == 1 else _entrywise(entries, *v)


def _matrix(call: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *values: Value(call(*(v.array for v in values)), "matrix")


def _adjugate(a: Any) -> Any:
    return jnp.linalg.det(a) * jnp.linalg.inv(a)


def _norm(a: Value, order: Value | None = None) -> Value:
    p = 2 if order is None else order.array
    return Value(jnp.sum(jnp.abs(a.array) ** p) ** (1 / p), "scalar")


def _eigenvalues(a: Any) -> Any:
    return jnp.linalg.eigvalsh((a + a.T) / 2)


def _symmetric_function(call: Callable[..., Any]) -> Callable[..., Value]:
    def of(a: Value) -> Value:
        values, vectors = jnp.linalg.eigh((a.array + a.array.T) / 2)
        return Value(vectors * call(values) @ vectors.T, "matrix")

    return of


def _filled(*shape: Value) -> tuple[int, ...]:
    return tuple(int(n.array) for n in shape)


ENTRYWISE = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
    "sign", "abs", "log1p", "expm1", "square", "maximum", "minimum", "where", "log2", "log10",
    "arctan2", "logaddexp",
)  # fmt: skip


def _symmetric(a: Value, pairs: Value | None = None) -> Value:
    """The symmetric part: axes of each of the leading pairs may be exchanged."""
    found = a.array
    for k in range(int(pairs.array) if pairs else 1):
        found = (found + jnp.swapaxes(found, 2 * k, 2 * k + 1)) / 2
    return Value(found, a.kind)


#: Functions whose arguments are sizes, some behind a first that is a number.
SIZED: dict[str, Callable[..., Value]] = {
    "eye": lambda n: typed(jnp.eye(*_filled(n))),
    "vector": lambda a, *n: (
        typed(jnp.full(_filled(*n), a.array)) if n else Value(a.array, "filled")
    ),
    "matrix": lambda a, m, n: typed(jnp.full(_filled(m, n), a.array)),
    "ones": lambda *shape: typed(jnp.ones(_filled(*shape))),
    "sym": _symmetric,
    "zeros": lambda *shape: typed(jnp.zeros(_filled(*shape))),
}

FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _entries(getattr(jnp, name)) for name in ENTRYWISE},
    "sigmoid": _entries(jax.nn.sigmoid),
    "softplus": _entries(jax.nn.softplus),
    "relu": _entries(jax.nn.relu),
    "sech": _entries(lambda a: 1 / jnp.cosh(a)),
    "erf": _entries(special.erf),
    "gammaln": _entries(special.gammaln),
    "digamma": _entries(special.digamma),
    "polygamma": _entries(special.polygamma),
    "ndtr": _entries(special.ndtr),
    "log_ndtr": _entries(special.log_ndtr),
    "sum": _total(jnp.sum),
    "mean": _total(jnp.mean),
    "prod": _total(jnp.prod),
    "var": _total(jnp.var),
    "std": _total(jnp.std),
    "logsumexp": _total(special.logsumexp),
    "norm1": _total(lambda a: jnp.sum(jnp.abs(a))),
    "norm2": _norm,
    "norm": _norm,
    "tr": _total(jnp.trace),
    "det": _total(jnp.linalg.det),
    "logdet": _total(lambda a: jnp.linalg.slogdet(a)[1]),
    "max": _extremum(jnp.max, jnp.maximum),
    "min": _extremum(jnp.min, jnp.minimum),
    "hardmax": _alike(lambda a: jnp.where(a == a.max(), 1, 0) / (a == a.max()).sum()),
    "softmax": _alike(jax.nn.softmax),
    "log_softmax": _alike(jax.nn.log_softmax),
    "cumsum": _alike(jnp.cumsum),
    "revcumsum": _alike(lambda x: jnp.flip(jnp.cumsum(jnp.flip(x)))),
    "inv": _matrix(jnp.linalg.inv),
    "adj": _matrix(_adjugate),
    "expm": _matrix(linalg.expm),
    "sqrtm": _symmetric_function(jnp.sqrt),
    "logm": _symmetric_function(jnp.log),
    "chol": _matrix(jnp.linalg.cholesky),
    "pinv": _matrix(lambda a: jnp.linalg.solve(a.T @ a, a.T)),
    "kron": _matrix(jnp.kron),
    "diag": lambda a: typed(jnp.diag(a.array)),
    "vec": lambda a: typed(a.array.T.ravel()),
    "eigvals": lambda a: typed(_eigenvalues(a.array)),
}
