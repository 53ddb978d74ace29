"""The one table of example expressions that derivative, back end and printer tests run through.

A case is a function of a namespace and of named variables: called with `tcalc` and its variables it
builds the expression, called with `Reference` and arrays it computes the same with jax.numpy, which
shares no code with tcalc. Where a spelling exists in tcalc only, `reference` is written by hand.
"""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

import tcalc as tc

EXTENTS = {"m": 4, "n": 3, "k": 2}


def reference_einsum(spec: str, *operands: Any, sizes: dict[str, int] | None = None) -> Any:
    """einsum with output letters that repeat or that no operand has, by deltas and ones."""
    left, _, out = spec.replace(" ", "").partition("->")
    extents = {
        c: n
        for w, a in zip(left.split(","), operands, strict=False)
        for c, n in zip(w, jnp.shape(a), strict=False)
    }
    extents.update({c: sizes[c] for c in out if sizes and c not in extents})
    words, arrays, fresh, seen = [w for w in left.split(",") if operands], list(operands), [], ""
    spare = iter("QRSTUVW")
    for c in out:
        if c in seen:
            fresh.append(next(spare))
            words.append(c + fresh[-1])
            arrays.append(jnp.eye(extents[c]))
        else:
            fresh.append(c)
            if c not in "".join(words):
                words.append(c)
                arrays.append(jnp.ones(extents[c]))
        seen += c
    return jnp.einsum(",".join(["", *words]) + "->" + "".join(fresh), jnp.ones(()), *arrays)


#: jax.numpy and what it keeps elsewhere, under tcalc's names.
Reference = SimpleNamespace(
    **{name: getattr(jnp, name) for name in dir(jnp) if not name.startswith("_")}
    | {
        "einsum": reference_einsum,
        "relu": jax.nn.relu,
        "sigmoid": jax.nn.sigmoid,
        "softplus": jax.nn.softplus,
        "softmax": jax.nn.softmax,
        "log_softmax": jax.nn.log_softmax,
        "logsumexp": jsp.logsumexp,
        "erf": jsp.erf,
        "gammaln": jsp.gammaln,
        "xlogy": jsp.xlogy,
        "ndtr": jsp.ndtr,
        "const": jnp.asarray,
        "norm": jnp.linalg.norm,
        "inv": jnp.linalg.inv,
        "det": jnp.linalg.det,
        "solve": jnp.linalg.solve,
        "logdet": lambda a: jnp.linalg.slogdet(a)[1],
    }
)


# --- data -----------------------------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def small(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 0.3 * rng.normal(size=shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 2, size=shape)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.choice([-1.0, 1.0], size=shape)


def one_hot(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.eye(shape[-1])[rng.integers(0, shape[-1], size=shape[:-1])]


def definite(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    a = rng.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])


def regular(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape) + 3 * np.eye(shape[-1])


Sampler = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """One expression.

    Attributes
    ----------
    name : str
    build : callable
        ``build(namespace, **variables)``.
    shapes : dict
        Shape of each variable; dimension names have the extents of `EXTENTS`.
    wrt : str
        Variables to differentiate by, separated by spaces; the first one in all pairs of modes.
    data : dict
        Samplers of variables that are not standard normal.
    order : int
        Highest order that is tested.
    reference : callable, optional
        `build` for jax.numpy where it is spelled otherwise.
    """

    name: str
    build: Callable[..., Any]
    shapes: dict[str, tuple[int | str, ...]]
    wrt: str
    data: dict[str, Sampler]
    order: int = 3
    reference: Callable[..., Any] | None = None

    @property
    def targets(self) -> list[str]:
        return self.wrt.split()

    def expression(self) -> tc.Expr:
        found = self.build(tc, **{v: tc.var(v, shape) for v, shape in self.shapes.items()})
        assert isinstance(found, tc.Expr)
        return found

    def sample(self, seed: int = 0, dtype: Any = np.float64) -> dict[str, np.ndarray]:
        """Arrays for every variable, always the same for one seed."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        arrays = {}
        for v, shape in self.shapes.items():
            extents = tuple([EXTENTS.get(e, e) for e in shape])
            arrays[v] = np.asarray(self.data.get(v, normal)(rng, extents), dtype)
        return arrays

    def function(self) -> Callable[..., Any]:
        """The same function of a dict of arrays, in jax.numpy."""
        compute = self.reference or self.build
        return lambda arrays: jnp.asarray(compute(Reference, **arrays))

    def derivative(self, v: str, order: int) -> Callable[..., Any]:
        """jax's derivative of some order with respect to one variable."""
        compute = self.function()

        def at(value: Any, arrays: Any) -> Any:
            return compute({**arrays, v: value})

        found: Callable[..., Any] = at
        for k in range(order):
            found = jax.jacrev(found) if k == 0 else jax.jacfwd(found)
        return lambda arrays: found(arrays[v], arrays)


def case(
    name: str,
    wrt: str,
    build: Callable[..., Any],
    order: int = 3,
    reference: Any = None,
    **columns: Any,
) -> Case:
    """A row of the table: columns are shapes, or (shape, sampler)."""
    shapes, data = {}, {}
    for v, column in columns.items():
        sampled = isinstance(column, tuple) and len(column) == 2 and callable(column[1])
        shape = column[0] if sampled else column
        shapes[v] = tuple(shape.split()) if isinstance(shape, str) else tuple(shape)
        if sampled:
            data[v] = column[1]
    return Case(name, build, shapes, wrt, data, order, reference)


def logistic(xp: Any, X: Any, y: Any, w: Any) -> Any:
    return xp.sum(xp.log(1 + xp.exp(-y * (X @ w))))


def factorisation(xp: Any, T: Any, U: Any, V: Any) -> Any:
    return xp.sum((T - U @ V.T) ** 2)


def weighted_factorisation(xp: Any, T: Any, W: Any, U: Any, V: Any) -> Any:
    return xp.sum((W * (T - U @ V.T)) ** 2)


def two_layers(xp: Any, X: Any, y: Any, A: Any, B: Any) -> Any:
    return xp.sum((xp.tanh(X @ A) @ B - y) ** 2)


def classifier(xp: Any, X: Any, Y: Any, A: Any, B: Any) -> Any:
    logits = xp.relu(X @ A) @ B
    return -xp.sum(Y * (logits - xp.logsumexp(logits, axis=-1, keepdims=True)))


def gaussian_process(xp: Any, x: Any, y: Any, c: Any) -> Any:
    K = xp.exp(-((x[:, None] - x[None, :]) ** 2) * c) + 0.5 * xp.eye(4)
    return y @ xp.inv(K) @ y + xp.logdet(K)


#: Everything differentiable at its samples; kinks have a table of their own (test_kinks).
CASES = [
    # scalars, vectors, elementwise functions
    case("cubic", "c", lambda xp, c: c**3 - 2 * c + 1, c=""),
    case("chain", "c", lambda xp, c: xp.exp(xp.sin(c * c)) / (1 + c * c), c=""),
    case("elementwise", "x", lambda xp, x: xp.sin(x) * xp.exp(-x * x) + xp.tanh(x), x="n"),
    case("scalar-times-vector", "c x", lambda xp, c, x: c * xp.cos(c * x), c="", x="n"),
    case("matrix-elementwise", "X", lambda xp, X: xp.exp(X) * X, X="n k"),
    case("linear", "x", lambda xp, x, a: a @ x + 1, x="n", a="n"),
    case("no-dependence", "x", lambda xp, x, a: xp.sum(a * a) + 0 * xp.sum(x), x="n", a="n"),
    case("reciprocals", "x", lambda xp, x: xp.sum(1 / x + 2 / (1 + x) ** 2), x=("n", positive)),
    case("quotient", "x y", lambda xp, x, y: x / y, x="n", y=("n", positive)),
    case("powers-of-one-base", "x c", lambda xp, x, c: xp.sum(xp.sin(x[:, None] ** np.arange(4, dtype="f4") @ c)), x=("n", positive), c=(4, 2)),
    case("powers", "x", lambda xp, x: xp.sum(x**5 - x**1.5 + x**-2), x=("n", positive)),
    case("variable-power", "x a", lambda xp, x, a: x**a, x=("n", positive), a="n"),
    case("sqrt-of-sum", "x", lambda xp, x: xp.sqrt(1 + xp.sum(x * x)), x="n"),
    case("logs", "x", lambda xp, x: xp.log(x) * xp.log1p(x) + xp.log2(x), x=("n", positive)),
    case("inverse-trigonometry", "x", lambda xp, x: xp.arctan(x) + xp.arcsin(x / 9), x="n"),
    case("two-arguments", "x y", lambda xp, x, y: xp.hypot(x, y) + xp.arctan2(y, x), x=("n", positive), y="n"),
    case("sigmoids", "x", lambda xp, x: xp.sigmoid(x) * xp.softplus(-2 * x) + xp.erf(x), x="n"),
    case("logaddexp", "x y", lambda xp, x, y: xp.sum(xp.logaddexp(x, 2 * y)), x="n", y="n"),
    case("xlogy", "x", lambda xp, x: xp.sum(xp.xlogy(x, x)), x=("n", positive)),
    case("where", "x", lambda xp, x: xp.sum(xp.where(x > 0, x**3, xp.exp(x))), x="n"),
    case("relu-squared", "x", lambda xp, x: xp.sum(xp.relu(x) ** 3 + xp.maximum(x, 2 * x)), x="n"),
    case("clip-abs", "x", lambda xp, x: xp.sum(xp.clip(x, -1, 1) ** 3 * xp.abs(x)), x="n"),
    # products
    case("quadratic-form", "x A", lambda xp, x, A: x @ A @ x, x="n", A="n n"),
    case("sphere-cubed", "x", lambda xp, x: xp.sum(x * x) ** 3, x="n"),
    case("bilinear", "x A", lambda xp, x, A, y: xp.sin(x @ A @ y), x="m", A="m n", y="n"),
    case("residual", "x", lambda xp, x, A, b: A @ x - b, x="n", A="m n", b="m"),
    case("least-squares", "x A", lambda xp, x, A, b: xp.sum((A @ x - b) ** 2) / 2, x="n", A="m n", b="m"),
    case("matrix-chain", "B", lambda xp, A, B, C: A @ B @ C, A="m n", B="n k", C="k m"),
    case("gram", "X", lambda xp, X: X.T @ X, X="m n"),
    case("gram-squared", "X", lambda xp, X: xp.sum((X.T @ X) ** 2), X="m k"),
    case("trace-of-cube", "A", lambda xp, A: xp.trace(A @ A @ A), A="n n"),
    case("trace-with-transpose", "A", lambda xp, A, B: xp.trace(A @ B @ A.T @ B), A="n n", B="n n"),
    case("outer", "x y", lambda xp, x, y: xp.outer(x, y) * xp.outer(x, x), x="n", y="n"),
    case("kronecker", "A", lambda xp, A, B: xp.einsum("ij,kl->ikjl", A, B @ B), A="n k", B="k k"),
    case("batched-matmul", "A", lambda xp, A, B: xp.sum(xp.exp(A @ B)), A=("k n m", small), B="k m n"),
    case("third-order-tensor", "T", lambda xp, T, x: xp.einsum("ijk,j,k->i", T * T, x, x), T="k n n", x="n"),
    case("tensordot", "T", lambda xp, T, A: xp.tensordot(T, A, ((2, 1), (0, 1))), T="k n n", A="n n"),
    # repeated indices, diagonals, unit tensors, broadcasts
    case("diagonal", "A", lambda xp, A: xp.sum(xp.exp(xp.diagonal(A)) * A[:, None, :]), A="n n"),
    case("diag-sandwich", "x", lambda xp, x, A: xp.diag(x) @ A @ xp.diag(xp.sin(x)), x="n", A="n n"),
    case("diag-plus-outer", "x", lambda xp, x: xp.diag(xp.exp(x)) + xp.outer(x, x), x="n"),
    case("einsum-diagonal", "A", lambda xp, A, B: xp.einsum("iij,ji,ijk->jk", A, B, A), A="n n n", B="n n"),
    case("unit-tensor", "x", lambda xp, x: xp.einsum("i,j->iji", x, xp.exp(x)), x="n"),
    case("fourth-order-unit", "A", lambda xp, A: xp.einsum("jl,jl->ijil", A, A, sizes={"i": 2}), A="n k"),
    case("broadcast-rows", "x X", lambda xp, x, X: (X - x) ** 2 * X, x="n", X="m n"),
    case("differences", "x", lambda xp, x: xp.sum((x[:, None] - x[None, :]) ** 4), x="n"),
    case("centred", "X", lambda xp, X: (X - xp.mean(X, axis=0)) ** 2, X="m k"),
    case("function-of-identity", "x", lambda xp, x: xp.cos(xp.diag(x) * 2), x="n"),
    case("sum-of-ones", "c", lambda xp, c, x: xp.sum(c * c * xp.ones(7)) + c * xp.sum(x), c="", x="n"),
    # reductions
    case("mean-variance", "x", lambda xp, x: xp.mean(x) * x.var() + xp.std(x), x="n"),
    case("norms", "x", lambda xp, x, A: xp.norm(A @ x) * xp.norm(x), x="n", A="m n"),
    case("frobenius", "X", lambda xp, X: xp.norm(X - 1), X="n k"),
    case("product", "x", lambda xp, x: xp.prod(x), x="n"),
    case("product-of-rows", "X", lambda xp, X: xp.prod(X, axis=1) * xp.sum(X, axis=1), X="k n"),
    case("maximum-of-rows", "X", lambda xp, X: xp.max(X * X, axis=1) + xp.min(X), X="n k"),
    case("logsumexp", "x", lambda xp, x: xp.log(xp.sum(xp.exp(x))), x="n"),
    case("softmax", "x", lambda xp, x: xp.exp(x) / xp.sum(xp.exp(x)), x="n"),
    case("softmax-rows", "X", lambda xp, X: xp.softmax(X, axis=-1), X="k n"),
    case("log-softmax-rows", "X", lambda xp, X, Y: xp.sum(Y * xp.log_softmax(X, axis=1)), X="k n", Y="k n"),
    case("cumsum", "x", lambda xp, x: xp.sum(xp.exp(xp.cumsum(x)) * x), x="n"),
    # linear algebra
    case("inverse", "A", lambda xp, A: xp.inv(A), A=("k k", regular)),
    case("inverse-form", "A x", lambda xp, A, x: x @ xp.inv(A) @ x, A=("n n", regular), x="n"),
    case("solve", "A b", lambda xp, A, b: xp.sum(xp.solve(A, b) ** 2), A=("k k", regular), b="k"),
    case("determinant", "A", lambda xp, A: xp.det(A), A=("n n", regular)),
    case("logdet", "A", lambda xp, A: xp.logdet(A), A=("n n", regular)),
    case("logdet-of-gram", "X", lambda xp, X: xp.logdet(X @ X.T + xp.eye(3)), X=(3, 2)),
    case("gaussian-process", "x c", gaussian_process, x=((4,), small), y=(4,), c=("", positive), order=2),
    # models
    case("logistic", "w X", logistic, X="m n", y=("m", signs), w="n"),
    case("poisson", "w", lambda xp, X, y, w: xp.sum(xp.exp(X @ w) - y * (X @ w)), X=("m n", small), y=("m", positive), w="n"),
    case("robust", "w", lambda xp, X, y, w: xp.sum(xp.log(1 + (X @ w - y) ** 2)), X="m n", y="m", w="n"),
    case("factorisation", "U V", factorisation, T="m n", U="m k", V="n k"),
    case("weighted-factorisation", "U V", weighted_factorisation, T="m n", W="m n", U="m k", V="n k"),
    case("two-layers", "A B", two_layers, X="m n", y="m k", A="n n", B="n k", order=2),
    case("classifier", "A B", classifier, X="m n", Y=("m k", one_hot), A="n n", B="n k", order=2),
    case("mixture", "w U", lambda xp, X, w, U: xp.sum(xp.logsumexp(w + X @ U, axis=1)), X="m n", w="k", U="n k", order=2),
    case("diagonal-plus-low-rank", "x", lambda xp, x, a: xp.sum(x**4) / 4 + xp.sum(x) ** 2 * (a @ x), x="n", a="n"),
    case("rosenbrock", "x y", lambda xp, x, y: xp.sum(100 * (y - x * x) ** 2 + (1 - x) ** 2), x="n", y="n"),
]  # fmt: skip

BY_NAME = {c.name: c for c in CASES}
assert len(BY_NAME) == len(CASES)
