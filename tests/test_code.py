"""Generated source: executed, and compared with an evaluator that shares nothing with it."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import keyword
import operator
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.nodes import Add, Apply, Const, Einsum, Expr, Var, dimensions, postorder
from tcalc.graph.normal import bare
from tcalc.graph.operators import Op
from tcalc.languages.source.numpy import NumPy
from tcalc.run.backends import BACKENDS
from tcalc.support.namespaces import NUMPY
from tests.cases import CASES, Case
from tests.printed import DERIVED, FIXED, A, B, C, Q, V, X, c, high_order, parsed, x, z
from tests.test_operators import ELEMENTWISE, points


def naive(e: Expr, values: dict[str, np.ndarray], sizes: dict[str, int]) -> Any:
    """An evaluator that shares nothing with plans and printers but the rows' kernels."""
    found: dict[int, Any] = {}
    for node in postorder((bare(e),)):
        args = [found[id(arg)] for arg in node.args]
        if isinstance(node, Var):
            value = values[node.name]
        elif isinstance(node, Const):
            value = node.value
        elif isinstance(node, Add):
            value = np.sum(args, axis=0)
        elif isinstance(node, Apply):
            value = 1.0 * node.op.kernels.compute(NUMPY, node.params, *args)
        else:
            assert isinstance(node, Einsum)
            value = loops(node, args, sizes)
        found[id(node)] = value
    return found[id(bare(e))]


def loops(node: Einsum, args: list[Any], sizes: dict[str, int]) -> Any:
    extents = [sizes.get(str(extent), extent) for extent in node.extents]
    value = np.zeros([extents[label] for label in node.out])
    for place in np.ndindex(*[int(extent) for extent in extents]):
        term = node.coef.evaluate(sizes)
        for arg, word in zip(args, node.labels, strict=True):
            term = term * np.asarray(arg)[tuple([place[label] for label in word])]
        value[tuple([place[label] for label in node.out])] += term
    return value


def samples(e: Expr, dtype: type = np.float64) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    rng = np.random.default_rng(5)
    sizes = {dim: 2 + (k + 1) % 3 for k, dim in enumerate(dimensions([e]))}
    values = {}
    for name, v in e.variables.items():
        shape = [int(sizes.get(str(extent), extent)) for extent in v.shape]
        values[name] = rng.uniform(0.5, 1.5, shape).astype(dtype)
        if "symmetric" in v.properties:
            values[name] = (values[name] + values[name].T) / 2
        values[name].flags.writeable = False  # programs overwrite arrays of their own alone
    return values, sizes


def loaded(source: str, folder: Path, name: str = "f") -> Any:
    path = folder / "generated.py"
    path.write_text(source)
    return runpy.run_path(str(path))[name]


def executed(source: str, folder: Path) -> tuple[int, str]:
    path = folder / "generated.py"
    path.write_text(source)
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def cases() -> list[Expr]:
    found = [parsed(text) for text in FIXED] + [e for e, *_ in high_order()]
    for text, name, *_ in DERIVED:
        found += [bare(tc.grad(parsed(text), name)), bare(tc.hessian(parsed(text), name))]
    found += [
        tc.einsum("ij,jk,kl->il", A, B, C),
        tc.einsum("ij,jk,ki->", A, B, C),
        tc.einsum("ij,ik,jk->i", A, B, C),
        tc.einsum("i,ij,j->", x, A, z),
        tc.einsum("ij,ik,il->jkl", A, B, C),
        tc.einsum("ijk,jk->i", tc.einsum("ij,jk->ijk", A, B), C),
        tc.einsum("ij->iijj", A) + tc.einsum("ij->ijij", B),
        tc.max(X, axis=0) + tc.logsumexp(X, axis=0),
        tc.cumsum(X, axis=0),
        tc.prod(x) * (x < z) * (z <= x + 1),
        tc.erf(x) + tc.softplus(x) - (x == z),
        tc.where(X > 0, 1, 2),
        X + tc.where(X > 0, 1, 0),
        tc.einsum("i,i->i", *[tc.einsum("iji->i", Q)] * 2) * 2,
    ]
    return found


@pytest.mark.parametrize("e", cases(), ids=lambda e: str(e)[:40])
def test_source_computes_what_the_expression_means(e: Expr, tmp_path: Path) -> None:
    f = loaded(tc.to_code(e), tmp_path)
    values, sizes = samples(e)
    extra = {k: v for k, v in sizes.items() if k in inspect.signature(f).parameters}
    found, expected = f(**values, **extra), naive(e, values, sizes)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    if values:
        single, _ = samples(e, np.float32)
        assert np.asarray(f(**single, **extra)).dtype == np.float32
        lists = f(**{name: value.tolist() for name, value in values.items()}, **extra)
        np.testing.assert_allclose(lists, expected, rtol=1e-9, atol=1e-12)


def test_source_of_nested_outputs(tmp_path: Path) -> None:
    f = parsed("sum((X*w - y).^2)")
    source = tc.to_code({"f": f, "more": (tc.grad(f, "w"), [2 * x])}, name="step")
    step = loaded(source, tmp_path, "step")
    assert list(inspect.signature(step).parameters) == ["X", "w", "x", "y"]
    values, _ = samples(f + tc.sum(x))
    found = step(**values)
    assert set(found) == {"f", "more"}
    np.testing.assert_allclose(found["more"][1][0], 2 * values["x"])
    assert source.count("X @ w - y") == 1


def test_source_is_readable() -> None:
    source = tc.to_code(parsed("X'*diag(y)*X + eye(n)"))
    assert "X.T * y @ X" in source
    assert "np.einsum" not in source
    assert tc.to_code(parsed("x*z'")).endswith("return x[:, None] * z\n")
    unit = tc.to_code(tc.einsum("jl->ijil", V.T @ V, sizes={"i": "m"}))
    assert "np.zeros((m, k, m, k)" in unit
    assert "np.eye" not in unit


CHAIN = [tc.var(f"M{k:02}", ("n", "n")) for k in range(12)]


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (A @ B @ x, "A @ (B @ x)"),
        (x @ A @ B @ C @ x, "x @ (A @ (B @ (C @ x)))"),
        (A @ B @ C, "A @ B @ C"),
        (A @ (B @ C), "A @ (B @ C)"),
        (tc.einsum("ij,jk,ki->", A, B, C), "np.vdot(C, (A @ B).T)"),
        (tc.einsum("ij,kj,lj->ikl", A, B, C), "np.tensordot(A[:, None, :] * B, C, ([2], [1]))"),
        (functools.reduce(operator.matmul, CHAIN) @ x, "M10 @ (M11 @ x)"),
    ],
    ids=str,
)
def test_source_multiplies_pairs_in_the_order_of_a_plan(e: Expr, text: str) -> None:
    source = tc.to_code(e)
    assert text in source
    assert "optimize" not in source


def test_a_product_that_two_read_is_computed_once() -> None:
    product = A @ B
    source = tc.to_code(product @ x + tc.exp(product) @ z)
    assert source.count("A @ B") == 1


def test_names_that_mean_something_in_the_source_are_renamed(tmp_path: Path) -> None:
    names = ["lambda", "np", "sum", "special", "t1", "dtype", "x_"]
    e = tc.exp(tc.sin(sum((k + 1) * tc.var(name, ("n",)) for k, name in enumerate(names))))
    f = loaded(tc.to_code(e * tc.sin(e) * e), tmp_path)
    found = list(inspect.signature(f).parameters)
    assert found == ["dtype_", "lambda_", "np_", "special_", "sum_", "t1", "x_"]
    total = sum((k + 1) * 0.1 for k in range(len(names)))
    value = np.exp(np.sin(total))
    result = f(**{name: [0.1] for name in found})
    np.testing.assert_allclose(result, [value * np.sin(value) * value])


class Posing(str):
    """A str that says of itself what it is not."""

    __slots__ = ()

    def __str__(self) -> str:
        return "x; raise SystemExit"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def isidentifier(self) -> bool:
        return True

    def isascii(self) -> bool:
        return True


#: What a function cannot be called: no identifiers, words of the language, and what they read as.
BAD_NAMES = [
    "1f", "f(x)", "f\nimport os", "", "__init__", "__name__", "__f",
    *keyword.kwlist, *[name for name in dir(builtins) if name.isidentifier()],
    "np", "special", "linalg", "dtype", "floats", "_check", *NumPy.helpers,
    "\uff50\uff52\uff49\uff4e\uff54",  # print in full width
    Posing("f(x)"), Posing("print"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_NAMES, ids=str.__str__)
def test_function_names_and_languages_are_checked(bad: str) -> None:
    with pytest.raises(ValueError, match="identifier"):
        tc.to_code(x, name=bad)
    with pytest.raises(ValueError, match="numpy"):
        tc.to_code(x, "fortran")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("text", "name"),
    [("sum(log(1 + exp(-y .* (X*w))))", "w"), ("logdet(A)", "A"), ("x'*S*x", "S"), ("x'*A*z", "A")],
)
def test_self_check_passes(text: str, name: str, order: int, tmp_path: Path) -> None:
    derivative = tc.derivative(parsed(text), name, order)
    path = tmp_path / "checked.py"
    path.write_text(tc.to_code(derivative, check=True))
    result = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def run(e: Any, **values: Any) -> Any:
    """What the source computes, in a namespace of its own."""
    scope: dict[str, Any] = {}
    exec(tc.to_code(e), scope)
    return scope["f"](**values)


@pytest.mark.parametrize("name", ["_", "match", "type_", "values", "found", "computed", "f_before"])
def test_other_names_are_taken_as_they_are(name: str, tmp_path: Path) -> None:
    source = tc.to_code(tc.grad(tc.sum(x * x), x), name=name, check=True)
    assert executed(source, tmp_path)[0] == 0
    np.testing.assert_allclose(loaded(source, tmp_path, name)(np.ones(2)), [2, 2])


def test_names_and_keys_are_plain_text() -> None:
    v = tc.var(Posing("v"), (Posing("p"), Posing("p+1")))
    assert {type(text) for text in (v.name, *v.shape)} == {str}
    source = tc.to_code({Posing("key"): tc.sum(v) * tc.eye("q")}, name=Posing("computed"))
    assert "raise" not in source
    assert ast.parse(source)
    assert list(run({Posing("key"): 2 * v}, v=np.ones((1, 2)))) == ["key"]


@pytest.mark.parametrize("key", ["a'\"\\\n\ud800", 0, -3, 2**62, True, 1.5, -0.0, np.inf, -np.inf,
                                 np.float64(0.1), np.str_("k")])  # fmt: skip
def test_keys_read_back(key: Any) -> None:
    ((found, value),) = run({key: 2 * c}, c=1.0).items()
    assert found == key
    assert type(found) in (str, int, float, bool)
    assert value == 2


@pytest.mark.parametrize("key", [np.nan, None, (1,), b"a", 1j, 2**63, x])
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(TypeError, match="keys of outputs"):
        tc.to_code({key: c})


#: Text whose value overflows as it stands, and where.
STABLE = [
    ("log(1 + exp(c))", {"c": 800.0}),
    ("1/(1 + exp(c))", {"c": 800.0}),
    ("log(sum(exp(x)))", {"x": np.array([1e3, 999.0, -1e3])}),
    ("exp(x)/sum(exp(x))", {"x": np.array([1e3, 999.0, -1e3])}),
    (
        "sum(log(1 + exp(-y .* (X*w))))",
        {
            "X": np.array([[1e3, 2.0], [3.0, -1e3]]),
            "w": np.array([3.0, -2.0]),
            "y": np.array([1.0, -1.0]),
        },
    ),
]


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("text", "at"), STABLE, ids=[text for text, _ in STABLE])
def test_source_is_of_the_stable_form(text: str, at: dict[str, Any], order: int) -> None:
    e = tc.parse(text, X=("m", "n"), y="m", w="n", x="n", c=())
    e = tc.derivative(e, next(iter(at.keys() & {"c", "x", "w"})), order)
    found, expected = run(e, **at), e(**at)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("row", [r for r in ELEMENTWISE if len(r.core) < 3], ids=str)
def test_numbers_of_python_are_taken(row: Op, order: int) -> None:
    names = [tc.var(f"x{k}") for k in range(len(row.core))]
    at = {v.name: float(p[0]) for v, p in zip(names, points(row, 1), strict=True)}
    e = apply(row, *names)
    if order and row.meaning.partials[-1] is not None:
        e = tc.derivative(e, names[-1], order)
    np.testing.assert_allclose(run(e, **at), e(**at), rtol=1e-12)


k, g = tc.arange(12), tc.var("g", 12, integer=True)
BIG = 2**50 + 1

#: Integers, and the same in Python's arithmetic.
INTEGERS = [
    (BIG * k + 3, lambda k, g: BIG * k + 3),
    (BIG * g + 3, lambda k, g: BIG * g[k] + 3),
    (BIG * k * k - g, lambda k, g: BIG * k * k - g[k]),
    (tc.abs(-BIG * k), lambda k, g: BIG * k),
    (tc.maximum(BIG * k, g), lambda k, g: max(BIG * k, g[k])),
    (tc.floor(BIG * k) + (g < 3), lambda k, g: BIG * k + (g[k] < 3)),
    (tc.where(g < 3, BIG * g, k), lambda k, g: BIG * g[k] if g[k] < 3 else k),
    (BIG * g[tc.mod(BIG * k, 12)], lambda k, g: BIG * g[BIG * k % 12]),
]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(("integers", "same"), INTEGERS, ids=[str(e) for e, _ in INTEGERS])
def test_integers_that_index_are_exact(integers: tc.Expr, same: Callable[..., int]) -> None:
    v = tc.var("v", 8)
    at = {"v": np.arange(8.0) ** 2, "g": np.arange(12)[::-1].copy()}
    e = v[tc.mod(integers, 8)]
    places = [same(place, at["g"].tolist()) % 8 for place in range(12)]
    at = {name: at[name] for name in e.variables}
    wanted = np.arange(8.0)[places] ** 2
    np.testing.assert_array_equal(run(e, **at), wanted)
    for backend in BACKENDS:
        np.testing.assert_array_equal(tc.compile(e, backend=backend)(at), wanted)


def test_places_of_entries_index() -> None:
    order = tc.exp(x) + 0.5 * z
    outputs = {
        "largest": z[tc.argmax(order)] + tc.argmax(x),
        "sorted": tc.sort(order),
        "gradient": tc.grad(tc.sum(tc.sort(order) * z**2), x),
    }
    rng = np.random.default_rng(4)
    at = {"x": rng.normal(size=6), "z": rng.normal(size=6)}
    found = run(outputs, **at)
    for name, value in tc.compile(outputs)(at).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


def test_source_of_constant_triangles(tmp_path: Path) -> None:
    f = tc.linalg.cholesky(tc.einsum("ij,kj->ik", A, A) + tc.eye("n"))
    values = {"A": np.random.default_rng(1).normal(size=(3, 3))}
    gradient = tc.grad(tc.sum(f * B), A)
    values["B"] = values["A"] ** 2
    found = loaded(tc.to_code(gradient), tmp_path)(**values)
    np.testing.assert_allclose(found, gradient(**values), rtol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_self_checks_of_all_cases_pass(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    name = case.targets[0]
    e = tc.derivative(case.expression(), tc.var(name, case.shapes[name]))
    exec(tc.to_code(e, check=True), {"__name__": "__main__"})
    assert re.search("central differences|shapes are", capsys.readouterr().out)


def test_self_check_fails_on_wrong_source(tmp_path: Path) -> None:
    source = tc.to_code(tc.grad(parsed("sum((X*w - y).^2)"), "w"), check=True)
    assert executed(source.replace("return 2 *", "return 3 *"), tmp_path)[0] == 1
    assert executed(tc.to_code((A @ x, {"s": c}), check=True), tmp_path)[0] == 0
