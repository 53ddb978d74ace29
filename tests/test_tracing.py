"""Transforms of Python functions on arrays, against jax's of the same functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.bound_variables import Scope, readable
from tcalc.run.tracing import MAX_TRACES
from tests.test_operators import close

RNG = np.random.default_rng(0)
X, y = RNG.normal(size=(6, 3)), RNG.choice([-1.0, 1.0], size=6)
w, u = RNG.normal(size=3), RNG.normal(size=3)
A = RNG.normal(size=(3, 3))


def logistic(np: Any, w: Any) -> Any:
    return np.sum(np.log(1 + np.exp(-y * (X @ w))))


def nested(np: Any, p: Any) -> Any:
    return np.sum(np.tanh(p["a"] @ p["b"][0]) * p["b"][1]) + np.sum(p["a"] ** 2)


def entries(np: Any, w: Any) -> Any:
    return np.sin(w[1:]) * w[:-1] + np.dot(w, u)


def solved(np: Any, w: Any) -> Any:
    return np.linalg.solve(A @ A.T + np.outer(w, w), u) @ w


def row(np: Any, w: Any, x: Any, t: Any) -> Any:
    return np.log(1 + np.exp(-t * (x @ w)))


def bound(fun: Callable[..., Any], module: Any) -> Callable[..., Any]:
    return lambda *args: fun(module, *args)


def agree(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    """Nests of arrays that are alike."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            agree(found[key], wanted[key])
    elif isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            agree(one, other)
    else:
        assert np.shape(found) == np.shape(wanted)
        close(found, np.asarray(wanted), tolerance)


@pytest.fixture(autouse=True, scope="module")
def double() -> Any:
    with jax.enable_x64(True):
        yield


TREE = {"a": A, "b": (u, w)}
PAIRS: list[tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    (tc.grad, jax.grad, logistic, (w,)),
    (tc.hessian, jax.hessian, logistic, (w,)),
    (tc.value_and_grad, jax.value_and_grad, logistic, (w,)),
    (tc.grad, jax.grad, nested, (TREE,)),
    (tc.hessian, jax.hessian, nested, (TREE,)),
    (tc.jacobian, jax.jacobian, entries, (w,)),
    (tc.hessian, jax.hessian, solved, (w,)),
    (lambda f: tc.grad(f, (0, 2)), lambda f: jax.grad(f, (0, 2)), row, (w, X[0], y[0])),
    (lambda f: tc.grad(f, argnums=1), lambda f: jax.grad(f, argnums=1), row, (w, X[0], y[0])),
    (lambda f: tc.jacobian(tc.grad(f)), jax.hessian, logistic, (w,)),
    (lambda f: tc.grad(lambda w: tc.hvp(f)(w, u) @ w), lambda f: jax.grad(
        lambda w: jax.jvp(jax.grad(f), (w,), (u,))[1] @ w), logistic, (w,)),
    (lambda f: tc.vmap(f, (None, 0, 0)), lambda f: jax.vmap(f, (None, 0, 0)), row, (w, X, y)),
    (lambda f: tc.vmap(f, (None, 1, 0)), lambda f: jax.vmap(f, (None, 1, 0)), row, (w, X.T, y)),
    (lambda f: tc.vmap(tc.grad(f), (None, 0, 0)), lambda f: jax.vmap(
        jax.grad(f), (None, 0, 0)), row, (w, X, y)),
    (lambda f: tc.vmap(tc.hessian(f), (None, 0, 0)), lambda f: jax.vmap(
        jax.hessian(f), (None, 0, 0)), row, (w, X, y)),
    (lambda f: tc.vmap(tc.grad(f)), lambda f: jax.vmap(jax.grad(f)), logistic, (A,)),
    (lambda f: tc.hessian(lambda w: np.sum(tc.vmap(f, (None, 0, 0))(w, X, y) ** 2)),
     lambda f: jax.hessian(lambda w: jnp.sum(jax.vmap(f, (None, 0, 0))(w, X, y) ** 2)), row, (w,)),
    (lambda f: tc.vmap(tc.vmap(f, (0, None, None)), (None, 0, 0)), lambda f: jax.vmap(
        jax.vmap(f, (0, None, None)), (None, 0, 0)), row, (A, X, y)),
    (lambda f: tc.vmap(f, ({"a": None, "b": 0},)), lambda f: jax.vmap(
        f, ({"a": None, "b": 0},)), nested, ({"a": A, "b": (X, X)},)),
    (lambda f: tc.compile(tc.grad(f)), jax.grad, logistic, (w,)),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(PAIRS)))
def test_as_jax(place: int) -> None:
    ours, theirs, fun, args = PAIRS[place]
    transformed = ours(bound(fun, np))
    wanted = theirs(bound(fun, jnp))(*args)
    for _ in range(2):
        agree(transformed(*args), wanted)


def test_products_with_directions() -> None:
    f = bound(logistic, np)
    H = tc.hessian(f)(w)
    close(tc.hvp(f)(w, u), H @ u, 1e-12)
    close(tc.jvp(f)(w, u), tc.grad(f)(w) @ u, 1e-12)
    J = tc.jacobian(bound(entries, np))(w)
    close(tc.jvp(bound(entries, np))(w, u), J @ u, 1e-12)
    close(tc.vjp(bound(entries, np))(w, u[:2]), u[:2] @ J, 1e-12)
    both = tc.hvp(lambda a, b: np.sum(a * b * b), (0, 1))(w, u, (u, w))
    close(both[0], 2 * u * w, 1e-12)


def test_integers_of_a_batch_are_indices() -> None:
    places = np.array([2, 0, 0, 1])
    agree(tc.vmap(lambda i: tc.const(w)[i] * i)(places), w[places] * places)
    agree(tc.vmap(lambda a, i: a[i], (1, 0))(X[:4].T, places % 3), X[np.arange(4), places % 3])


def scaled(p: Any, d: Any, power: Any = 2) -> Any:
    return ((p * d[0] + d[1]) ** power).sum()


UNTRANSFORMED: list[tuple[Callable[..., Any], tuple[Any, ...], list[tuple[Any, ...]]]] = [
    (tc.grad, (w,), [((u, 1.5),), ((w, -2.0),), ((u, 1.5), 3), ((u, 1.5), 2)]),
    (tc.value_and_grad, (w,), [((u, w),), ((w, u),)]),
    (tc.hessian, (w,), [((u, 1.5),), ((w, 1.5), 3)]),
    (lambda f: tc.vmap(f, (0, None)), (A,), [((u, w),), ((w, u),)]),
]


@pytest.mark.parametrize("place", range(len(UNTRANSFORMED)))
def test_compiled_transforms_take_what_they_do_not_transform_anew(place: int) -> None:
    transform, first, others = UNTRANSFORMED[place]
    plain = transform(scaled)
    compiled = tc.compile(plain)
    for rest in others:
        agree(compiled(*first, *rest), plain(*first, *rest))


def test_compiled_products_with_directions_take_the_rest_anew() -> None:
    compiled = tc.compile(tc.jvp(scaled, 0))
    for d in [(u, w), (w, u)]:
        agree(compiled(w, d, u), tc.jvp(scaled, 0)(w, d, u))


def test_compiled_transforms_hold_for_one_value_of_what_is_no_array() -> None:
    def chosen(p: Any, places: Any, names: Any, rows: int) -> Any:
        total = sum((p[k] ** 2 for k in range(rows)), start=p[places].sum())
        return 2 * total if "double" in names else total

    compiled = tc.compile(tc.grad(chosen))
    weighted = tc.compile(tc.grad(lambda p, d: np.sum((p * d) ** 2)))
    for d in ([0.5, 1.0, 2.0], [1.0, 0.5, 2.0], w, 0.5):
        agree(weighted(w, d), 2 * w * np.square(d))
    signed = tc.compile(tc.grad(lambda p, d: np.sum(p) * np.copysign(1, d[0])))
    for zero in ([0.0], [-0.0]):
        agree(signed(w, zero), np.copysign(np.ones(3), zero[0]))
    for rest in [([2, 0], ["one"], 2), ([0, 0], {"double"}, 1), (np.array([1, 1]), ("one",), 2)]:
        agree(compiled(w, *rest), tc.grad(chosen)(w, *rest))


def test_compiled_functions_keep_as_many_traces_as_others() -> None:
    compiled = tc.compile(tc.grad(lambda p, n: (p**n).sum()))
    for n in range(1, MAX_TRACES + 4):
        agree(compiled(w, n), n * w ** (n - 1))
    assert len(compiled._kept) == MAX_TRACES


def test_closures_are_current_and_plans_are_kept() -> None:
    held = {"X": X, "scale": np.array([1.0, 2, 3])}
    f = tc.grad(lambda w: np.sum(np.exp(held["X"] @ (held["scale"] * w))))
    frozen = tc.compile(f)
    first = f(w)
    agree(frozen(w), first)
    held["X"] = X[::-1] * 2
    agree(f(w), jax.grad(lambda w: jnp.sum(jnp.exp(2 * X @ (held["scale"] * w))))(w))
    assert len(f._kept) == 1
    agree(frozen(w), first)
    held["X"] = X[:2]
    f(w)
    assert len(f._kept) == 2


def test_python_runs_at_every_call() -> None:
    calls = []

    def f(w: Any, power: int = 2) -> Any:
        calls.append(power)
        return np.sum(w**power)

    g = tc.grad(f)
    agree(g(w), 2 * w)
    agree(g(w, power=3), 3 * w**2)
    agree(g(w), 2 * w)
    assert calls == [2, 3, 2]


def test_no_perturbation_confusion() -> None:
    assert tc.grad(lambda x: x * tc.grad(lambda z: x + z)(2.0))(1.0) == 1
    inner = tc.grad(lambda x: tc.grad(lambda z: x * z * z)(x))(3.0)
    assert inner == 12
    twice = tc.grad(lambda a: np.sum(tc.vmap(lambda b: tc.grad(lambda c: a * b * c * c)(b))(w)))
    close(twice(1.5), np.sum(2 * w * w), 1e-12)


def test_expressions_as_arguments() -> None:
    v, B = tc.var("v", "n"), tc.var("B", ("m", "n"))
    assert tc.grad(lambda z: np.sum(np.exp(z)))(v) is tc.exp(v)
    assert tc.vmap(lambda z: z @ v)(B) is B @ v
    close(tc.grad(bound(logistic, np))(tc.var("v", 3))(v=w), tc.grad(bound(logistic, np))(w), 1e-12)
    inside = tc.build("m", lambda i: tc.grad(lambda z: np.sum(np.sin(z) * B[i]))(v))
    assert inside is tc.cos(v) * B


def test_loops_and_builds_inside() -> None:
    def energy(w: Any) -> Any:
        return tc.fold(lambda s, i: tc.tanh(s * w[i]) + tc.const(u)[i], 0.3, 3)

    def wanted(w: Any) -> Any:
        s = 0.3
        for i in range(3):
            s = jnp.tanh(s * w[i]) + u[i]
        return s

    agree(tc.grad(energy)(w), jax.grad(wanted)(w))
    agree(tc.vmap(tc.grad(energy))(A), jax.vmap(jax.grad(wanted))(A))


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tc.grad(lambda a: a if a > 0 else -a)(1.0), tc.TraceError, "where"),
    (lambda: tc.grad(lambda a: np.sum(np.asarray(a)))(w), tc.TraceError, "stack"),
    (lambda: tc.grad(lambda a: np.array([a[0], a[1]])[0])(w), tc.TraceError, "stack"),
    (lambda: tc.grad(lambda a: a.__setitem__(0, 1.0))(w), tc.TraceError, "where.*stack"),
    (lambda: tc.grad(lambda a: operator.iadd(np.zeros(3), a))(w), tc.TraceError, "a = a [+] x"),
    (lambda: tc.grad(lambda a: operator.imul(np.ones(3), a))(w), tc.TraceError, "in place"),
    (lambda: tc.grad(lambda a: a)(w), tc.ShapeError, "scalar expression"),
    (lambda: tc.grad(lambda a: (a, a))(1.0), TypeError, "one array, not a nest"),
    (lambda: tc.grad(lambda a: None)(1.0), TypeError, "gives expressions and numbers"),
    (lambda: tc.grad(lambda a: a, 1)(1.0), TypeError, "argument 1 is missing: 1 given"),
    (lambda: tc.grad(lambda a: a, "w"), TypeError, "argnums"),
    (lambda: tc.grad(lambda a: a)("text"), TypeError, "a is not an array of real numbers"),
    (lambda: tc.grad(lambda a: a)(1j), TypeError, "not an array of real numbers"),
    (lambda: tc.hvp(lambda a: a, w, w), TypeError, r"say hvp\(fun\)\(w, direction\)"),
    (lambda: tc.grad(lambda a: a["c"])({"c": None}), TypeError, r"a\['c'\] is not.*dicts"),
    (lambda: tc.grad(lambda a: np.ma.array(w) * a)(w), tc.TraceError, "a MaskedArray of shape"),
    (lambda: tc.grad(lambda a: np.sum(X @ a))([1, 2, 3]), tc.TraceError, "nest of numbers"),
    (
        lambda: tc.grad(lambda a: np.sum(a**2))([1.0, 2.0]),
        TypeError,
        r"give an array, np.array\(a\)",
    ),
    (lambda: tc.parse("K", K=2 * tc.var("A")), TypeError, r"an expression; .* .subs\({'K': "),
    (lambda: tc.hvp(lambda a: a)(), TypeError, "direction"),
    (lambda: tc.vmap(lambda a, b: a * b)(X, w), tc.ShapeError, r"6 \(a\), 3 \(b\)"),
    (lambda: tc.vmap(lambda a: a, 2)(X), tc.ShapeError, "axis 2 is out of range"),
    (lambda: tc.vmap(lambda a: a, (0, 0))(X), TypeError, r"\(0, 0\) for 1 arguments"),
    (lambda: tc.vmap(lambda a: a, None)(X), tc.ShapeError, "no argument has a batch axis"),
    (lambda: tc.vmap(lambda a: a, 0, 3), TypeError, "size="),
    (lambda: tc.compile(lambda a: a, args=("a",)), TypeError, "args="),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_traced_values_stay_inside() -> None:
    kept: list[Any] = []
    tc.grad(lambda a: (kept.append(a), np.sum(a * a))[1])(w)
    with pytest.raises(TypeError, match="a is used outside of the body"):
        tc.build(3, lambda i: kept[0][i])


def test_compiled_functions_run_python_once_for_each_shape() -> None:
    calls = []

    def f(a: Any, b: Any) -> Any:
        calls.append(a.shape)
        return {"sum": np.sum(a) * b, "all": (a * b, 1.0)}

    step = tc.compile(f)
    for a, b in ((w, 2.0), (u, 3.0), (X, 1.0), (2 * X, 5.0)):
        found = step(a, b)
        agree(found, {"sum": np.sum(a) * b, "all": (a * b, 1.0)})
    assert calls == [(3,), (6, 3)]


def test_single_precision_stays() -> None:
    single = w.astype(np.float32)
    assert tc.grad(lambda a: np.sum(a**3))(single).dtype == np.float32
    assert tc.vmap(lambda a: 2 * a)(single).dtype == np.float32


def test_rules_do_not_become_inputs() -> None:
    """What derivatives are made of is no part of what a function reads."""
    f = tc.grad(lambda a: np.sum(np.cross(a, u) ** 2))
    wanted = jax.grad(lambda a: jnp.sum(jnp.cross(a, u) ** 2))
    for scale in (1, 2):
        agree(f(scale * w), wanted(scale * w))


def test_arguments_are_told_by_the_names_that_users_gave_them() -> None:
    """Two of one name are two variables, and the same ones when they are traced again."""
    made = []
    for _ in range(2):
        with Scope() as scope:
            pair = scope.argument("weights", 0, (3,)), scope.argument("weights", 1, (3,))
            assert readable(f"{pair[0]} + {pair[1]}") == "weights + weights"
            made.append(pair)
    assert made[0][0] is not made[0][1]
    assert [a is b for a, b in zip(*made, strict=True)] == [True, True]


def _doubled(v: Any) -> Any:
    B = np.eye(2)
    for _ in range(3):
        v = B @ v
        B *= 2
    return np.sum(v)


def _filled(x: Any) -> Any:
    buffer, total = np.zeros(3), 0.0
    for k in range(3):
        buffer[k] = 1
        total = total + np.sum(buffer * x)
    return total


def _shifted(x: Any) -> Any:
    places, others = np.array([0, 1]), [0, 0]
    first = x[places] * x[others]
    places += 1
    others[1] = 2
    return np.sum(first) + 10 * np.sum(x[places] * x[others])


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (_doubled, [1.0, 1.0], [8.0, 8.0]),
        (_filled, [1.0, 10.0, 100.0], [3.0, 2.0, 1.0]),
        (_shifted, [1.0, 2.0, 3.0], [24.0, 11.0, 60.0]),
    ],
)
def test_arrays_that_a_function_changes_are_read_when_they_are_used(
    f: Callable[[Any], Any], x: list[float], slope: list[float]
) -> None:
    value, found = tc.value_and_grad(f)(np.array(x))
    assert value == tc.compile(f)(np.array(x)) == f(np.array(x))
    np.testing.assert_array_equal(found, slope)


def test_large_arrays_that_a_function_changes_are_refused() -> None:
    large = np.ones((400, 400))

    def changing(v: Any) -> Any:
        total = np.sum(large @ v)
        large[:] *= 2.0
        return total

    with pytest.raises(tc.TraceError, match=r"changed in place, which is not traced; write b = 2"):
        tc.grad(changing)(np.ones(400))
    gradient = tc.grad(lambda v: np.sum(large[100:] @ v) + np.sum(large @ v))
    for _ in range(2):  # between calls they may be
        large *= 2
        np.testing.assert_array_equal(gradient(np.ones(400)), np.full(400, 700 * large[0, 0]))


class _Framed:
    """What gives its own memory where NumPy asks for an array."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def test_what_gives_its_own_memory_may_change_it() -> None:
    frame = _Framed(np.array([1.0, 2.0]))

    def changing(x: Any) -> Any:
        total = np.sum(x * frame)
        frame.values *= 10
        return total

    np.testing.assert_array_equal(tc.grad(changing)(np.ones(2)), [1.0, 2.0])
