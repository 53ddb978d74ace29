"""All that `str` prints is read: the same node but for how it is spelt, or an equal value."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.forms.choose import chosen
from tcalc.graph import trees
from tcalc.graph.nodes import Expr, dimensions
from tcalc.graph.normal import bare
from tcalc.graph.properties import sample
from tests import cases, linalg_cases, place_cases
from tests.one_spelling import one_spelling

SIZES = {"m": 2, "n": 3, "k": 2}


def _derived(name: str, e: Expr, targets: list[str]) -> Iterator[tuple[str, Expr]]:
    yield name, e
    for target in targets:
        if target in e.variables:
            for order in (1, 2):
                yield f"{name}, order {order} in {target}", tc.derivative(e, target, order)


def _cases() -> Iterator[tuple[str, Expr]]:
    for case in cases.CASES:
        yield from _derived(case.name, case.expression(), case.targets)


def _places() -> Iterator[tuple[str, Expr]]:
    for case in place_cases.CASES:
        floats = [name for name in case.shapes if name not in case.below]
        yield from _derived(case.name, case.build(**case.variables()), floats)


def _matrices() -> Iterator[tuple[str, Expr]]:
    for case in linalg_cases.CASES:
        shapes = {n: linalg_cases.shape_of(k, SIZES) for n, k in case.inputs.items()}
        variables = [tc.var(name, shape) for name, shape in shapes.items()]
        for k, e in enumerate(trees.leaves(case.build(*variables))):
            yield from _derived(f"{case.name}[{k}]", e, [variables[0].name])


def _data(e: Expr, below: dict[str, int]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {name: 2 + k % 3 for k, name in enumerate(dimensions([e]))}
    found: dict[str, Any] = dict(sizes)
    for name, v in e.variables.items():
        shape = [sizes[n] if isinstance(n, str) else n for n in v.shape]
        if v.integral:
            found[name] = rng.integers(0, below.get(name, 2), shape)
        else:
            square = len(shape) == 2 and shape[0] == shape[1]
            numbers = rng.uniform(0.2, 1.0, shape) + (2 * np.eye(shape[0]) if square else 0)
            found[name] = sample(numbers, v.properties)
    return found


@pytest.mark.parametrize(("table", "least"), [(_cases, 0.95), (_places, 0.95), (_matrices, 0.85)])
def test_all_that_is_printed_is_read(table: Any, least: float) -> None:
    counts: Counter[str] = Counter()
    for name, root in table():
        e = bare(root)
        found = bare(tc.parse(str(e), **{v.name: v for v in e.variables.values()}))
        same = found is e or one_spelling(chosen(found)) is one_spelling(chosen(e))
        counts["same" if same else "equal"] += 1
        assert found.shape == e.shape, name
        if found is not e:
            data = _data(e, {})
            with np.errstate(all="ignore"):
                expected = np.asarray(e(data))
            np.testing.assert_allclose(found(data), expected, rtol=1e-8, atol=1e-10, err_msg=name)
    assert counts["same"] >= least * counts.total(), counts


a, x, y, X = tc.var("a"), tc.var("x", "n"), tc.var("y", "m"), tc.var("X", ("m", "n"))
S = tc.var("S", ("n", "n"), symmetric=True)

PRINTED = [
    (tc.pad(x, (1, 2)), "pad(x, 1, 2)"),
    (tc.pad(X, ((0, 0), (0, 1))), "pad(X, 0, 0, 0, 1)"),
    (tc.concatenate([x, y]), "pad(x, 0, m) + pad(y, n, 0)"),
    (tc.concatenate([X, X * a], axis=1), "a*pad(X, 0, 0, n, 0) + pad(X, 0, 0, 0, n)"),
    (tc.roll(x, 2), None),
    (tc.flip(x), "x[::-1]"),
    (x[1:] * x[:-1], "x[1:] .* x[:-1]"),
    (X[:, 0] + X[:, -1], "X[:, 0] + X[:, -1]"),
    (tc.sum(x**0) + tc.sum(x), "sum(x) + n"),
    (tc.ones("n") @ tc.ones("n"), "extent(n)"),
    (a * tc.sum(tc.ones("k")), "extent(k)*a"),
    (tc.mean(x[1:]) * a, "a*mean(x[1:])"),
    (tc.arange("n"), "iota(n)"),
    (tc.ones(("m", "n", "m", "n")), "ones(m, n, m, n)"),
    (tc.logsumexp(X, axis=1), "logsumexp(X, axis=1)"),
    (tc.softmax(X), "softmax(X)"),
    (tc.linalg.matrix_function(S, tc.exp), "expm(S)"),
    (tc.linalg.matrix_function(S, tc.tanh), "matrix_function(S, tanh(x))"),
    (tc.const([[1.0, 2.5], [0.0, -1.0]]) @ tc.var("v", 2), "[[1.0, 2.5], [0.0, -1.0]]*v"),
    (tc.const([1.0, np.inf, np.nan]), "[1.0, inf, nan]"),
    (tc.linalg.norm(X, "nuc"), None),
    (tc.hessian(tc.linalg.norm(X, 2), X), None),
    (tc.hessian(tc.sum(tc.linalg.logm(S)), S), None),
    (tc.where(x > 0, tc.log(x) / x, 0), None),
    (tc.where(x > 0, tc.where(x > 1, tc.sqrt(x), 1 / x), tc.log(-x)), None),
    (tc.hessian(tc.sum(tc.where(x > 0, x**a, 0)), x), None),
    (tc.stack([x, x * 2]), None),
    (tc.pad(x, 1, constant_values=3), None),
    (tc.diag(x, 1), None),
    (tc.stack([a, 2 * a]), "a*(2*eye(2)[1] + eye(2)[0])"),
    (tc.hessian(tc.sum((x[1:] - x[:-1]) ** 2), x), None),
    (tc.hessian(tc.sum(tc.sin(x[::-1]) * x), x), None),
    (tc.jacobian(tc.cumsum(tc.exp(X @ x)[::-1])[::-1], x), None),
    (tc.hessian(tc.sum((x[1:] - x[:-1]) ** 4), x), None),
    (2 * tc.sum(tc.ones("n-1")) * tc.sin(tc.var("z", "n-1")), "2*extent(n-1)*sin(z)"),
    (tc.var("v", 3)[[0, 2, 2]], "v[[0, 2, 2]]"),
    (tc.var("v", 3)[[[-1, 0], [1, -2]]], "v[[[-1, 0], [1, -2]]]"),
    (tc.var("V", ("m", 3))[:, [1, 0]], "V[:, [1, 0]]"),
    (tc.var("v", 3)[[0, 2]] * tc.const([1.0, 2.0]), None),
    (tc.segment_sum(tc.var("v", 3), [0, 1, 1], 2), "segment_sum(v, [0, 1, 1], 2)"),
    (tc.grad(tc.sum(tc.sin(tc.var("v", 3)[[0, 2, 2]])), "v"), None),
    (tc.jacobian(tc.var("V", (3, "m"))[[0, 2, 2]], "V"), None),
]  # fmt: skip


@pytest.mark.parametrize(("e", "text"), PRINTED, ids=lambda item: str(item)[:30])
def test_forms_of_text_are_read_back(e: Expr, text: str | None) -> None:
    e = bare(e)
    assert text is None or str(e) == text
    again = bare(tc.parse(str(e), **e.variables))
    assert one_spelling(chosen(again)) is one_spelling(chosen(e))


SLICED: dict[str, Any] = {
    "eye(4)[1]": lambda x, y, X: np.eye(4)[1],
    "eye(n)[::-1]": lambda x, y, X: np.eye(4)[::-1],
    "eye(m)[1:]": lambda x, y, X: np.eye(3)[1:],
    "eye(4)[:-1]'*eye(4)[1:]": lambda x, y, X: np.eye(4)[:-1].T @ np.eye(4)[1:],
    "eye(n)[::-1]*diag(x)": lambda x, y, X: np.diag(x)[::-1],
    "(X*x)[::-1]": lambda x, y, X: (X @ x)[::-1],
    "(X*x)[1:]": lambda x, y, X: (X @ x)[1:],
    "(x .* exp(x))[::-1]": lambda x, y, X: (x * np.exp(x))[::-1],
    "(x .* exp(x[::-1]))[1:]": lambda x, y, X: (x * np.exp(x[::-1]))[1:],
    "(X .* exp(X))[1:]": lambda x, y, X: (X * np.exp(X))[1:],
    "X*diag(eye(n)[1])*X'": lambda x, y, X: np.outer(X[:, 1], X[:, 1]),
    "y'*(X*x)[::-1]": lambda x, y, X: y @ (X @ x)[::-1],
    "exp((X*x)[::-1]) .* y": lambda x, y, X: np.exp((X @ x)[::-1]) * y,
}


@pytest.mark.parametrize("text", SLICED)
def test_slices_of_products_are_written_and_read_as_slices(text: str) -> None:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=4), "y": rng.normal(size=3), "X": rng.normal(size=(3, 4))}
    e = tc.parse(text, x=x, y=y, X=X)
    assert one_spelling(tc.parse(str(e), **e.variables)) is one_spelling(e)
    assert not {"indicator", "#"} & set(re.findall(r"\w+|#", str(e)))
    sizes = {"n": 4, "m": 3}
    found = e({name: data[name] for name in e.variables} | sizes)
    np.testing.assert_allclose(found, SLICED[text](**data), rtol=1e-14)


def test_the_gradient_of_a_partial_likelihood_is_written_with_reversals() -> None:
    """Of proportional hazards, rows in the order of their times: sets at risk are reversed sums."""
    b, d = tc.var("b", "n"), tc.var("d", "m")
    line = X @ b
    e = tc.sum(d * (line - tc.log(tc.cumsum(tc.exp(line[::-1]))[::-1])))
    gradient = tc.grad(e, b)
    assert "indicator" not in str(gradient)
    assert "(X*b)[::-1]" in str(gradient)
    rng = np.random.default_rng(1)
    data = {"X": rng.normal(size=(6, 3)), "b": rng.normal(size=3), "d": rng.integers(0, 2, 6) * 1.0}
    risks = np.exp(data["X"] @ data["b"])
    wanted = np.zeros(3)
    for k in range(6):
        mean = risks[k:] @ data["X"][k:] / risks[k:].sum()
        wanted += data["d"][k] * (data["X"][k] - mean)
    np.testing.assert_allclose(gradient(data), wanted, rtol=1e-12)
    again = tc.parse(str(gradient), X=X, b=b, d=d)
    np.testing.assert_allclose(again(data), wanted, rtol=1e-12)


def test_text_is_read_where_nothing_was_built_before() -> None:
    program = (
        "import tcalc as tc\n"
        "e = tc.parse('logm_frechet2(A, A, A) + matrix_function_frechet(A, A, exp(x))', A=(2, 2))\n"
        "print(tc.parse(str(e), A=(2, 2)) is e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_places_are_written_as_integers() -> None:
    v = tc.var("v", 3)
    assert tc.parse("k = [0, 2]; v[k]", v=v) is v[[0, 2]]
    assert tc.parse("v[[]]", v=v).shape == (0,)
    assert tc.parse("v + [1, 2, 3]", v=v) is v + tc.const([1.0, 2.0, 3.0])
    with pytest.raises(tc.ParseError, match=r"array of integers, not \[0.0, 2.0\]"):
        tc.parse("v[[0.0, 2.0]]", v=v)


@pytest.mark.parametrize("shape", [(0,), (0, 1), (1, 0), (3, 0), (2, 0, 3), (0, 2, 2)])
def test_arrays_without_entries_keep_their_shape(shape: tuple[int, ...]) -> None:
    e = tc.const(np.zeros(shape))
    texts = (tc.parse(str(e)), tc.parse_einsum(tc.to_einsum(e)), tc.parse_index(tc.to_index(e)))
    assert [back.shape for back in texts] == [shape] * 3


QUOTIENTS = ("ij,ij->i", "ji,ij->i", "ij,ij->j", "ij,jk->ik", "ij,jk->ki", "ij,ij->", "ij,ji->ij")


@pytest.mark.parametrize("spec", QUOTIENTS)
@pytest.mark.parametrize("below", ["i->ij", "j->ij"])
def test_quotients_of_vectors_stay_in_products(spec: str, below: str) -> None:
    v, A, B = tc.var("v", ("n",)), tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
    row = tc.einsum(below, v, sizes={"i": "n", "j": "n"})
    e = tc.einsum(spec, tc.divide(A, row), tc.divide(row, B))
    rng = np.random.default_rng(0)
    data = {"v": rng.uniform(1, 2, 3)} | {k: rng.uniform(1, 2, (3, 3)) for k in "AB"}
    w, a, b = data["v"], data["A"], data["B"]
    scale = w[:, None] if below[0] == "i" else w[None, :]
    back = tc.parse(str(e), v=v, A=A, B=B)
    np.testing.assert_allclose(back(data), np.einsum(spec, a / scale, scale / b), rtol=1e-12)


def test_quotients_without_words_in_matrix_notation_are_printed() -> None:
    u, T = tc.var("u", (2,)), tc.var("T", (2, 2, 2))
    e = tc.divide(tc.einsum("i->ijk", u, sizes={"j": 2, "k": 2}), tc.where(T > 0, T, 1))
    back = tc.parse(str(e), u=u, T=T)
    rng = np.random.default_rng(0)
    data = {"u": rng.normal(size=2), "T": rng.normal(size=(2, 2, 2))}
    wanted = data["u"][:, None, None] / np.where(data["T"] > 0, data["T"], 1)
    np.testing.assert_allclose(back(data), wanted)
    assert tc.to_latex(e)


def test_choices_that_guard_nothing_are_written() -> None:
    """A maximum of choices is no maximum of one branch, whatever factor stands beside it."""
    b, x = tc.var("b", "n"), tc.var("x", "n")
    data = {"b": np.array([0.0, 1, 2]), "x": np.array([5.0, 1, 1])}
    for off in (-np.inf, 3.0):
        kept = tc.where(b == 0, off, x)
        for e in (
            b * tc.exp(kept - tc.max(kept)),
            tc.sum(b * tc.exp(x - tc.max(kept))),
            b * tc.cumsum(kept),
            tc.outer(b, tc.exp(kept)),
        ):
            np.testing.assert_allclose(tc.parse(str(e), **e.variables)(data), e(data))


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_numbers_without_digits_are_read(number: float) -> None:
    x = tc.var("x", "n")
    e = tc.where(x < 0, number, x)
    assert tc.parse(str(e), x="n") is e
    declared = tc.var("inf", ())
    assert tc.parse("2*inf", inf=declared) is 2 * declared


def test_what_a_text_means_does_not_depend_on_what_was_declared_before() -> None:
    """A variable that alone tells a dimension stays, though the text does not name it."""
    first = tc.parse("s*vector(1, n)", X=("n", "m"), s=())
    other = tc.parse("s*vector(1, n)", X=("m", "n"), s=())
    X = np.zeros((4, 3))
    assert first(X=X, s=1.0).shape == (4,)
    assert other(X=X, s=1.0).shape == (3,)
