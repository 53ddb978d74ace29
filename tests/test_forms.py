"""The choice among equal forms: every law by numbers, bounds, determinism, what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tcalc.forms.choose import MAX_LARGE, chosen
from tcalc.forms.cost import reading_cost
from tcalc.forms.egraph import EqualForms
from tcalc.forms.laws import LAWS, Law, root_of
from tcalc.graph.nodes import Apply, Expr, postorder
from tcalc.graph.normal import bare
from tests.formula_tables import FORMULAS

N = 3
VARIABLES = {
    **{name: tc.var(name, ("n", "n")) for name in "ABC"},
    **{name: tc.var(name, ("n",)) for name in "xyz"},
    **{name: tc.var(name) for name in "abc"},
    "S": tc.var("S", ("n", "n"), symmetric=True),
    "P": tc.var("P", ("n", "n"), positive_definite=True),
    "F": tc.var("F", (2, N)),
}


def data(e: Expr, batch: tuple[int, ...] = (), dtype: type = np.float64) -> dict[str, np.ndarray]:
    """Random numbers above zero; square matrices are definite, so that all functions exist."""
    rng = np.random.default_rng(7)
    found = {}
    for name, v in e.variables.items():
        shape = [k if isinstance(k, int) else N for k in VARIABLES[name].shape]
        value = rng.uniform(0.3, 1.2, (*batch, *shape))
        if shape == [N, N]:
            turned = np.swapaxes(value, -1, -2) if v.properties else np.zeros_like(value)
            value = value / 3 + turned / 3 + 2 * np.eye(N)
        found[name] = value.astype(dtype)
    return found


def sides(row: Law) -> tuple[Expr, Expr]:
    left, _, right = row.equation.partition(" = ")
    return tc.parse(left, **VARIABLES), tc.parse(right, **VARIABLES)


def spellings(e: Expr) -> list[Expr]:
    """The expression as read, simplified, and with symmetric parts as what laws make of them."""
    halves = next(row for row in LAWS if row.name == "half-of-a-sum")
    return [e, tc.simplify(e), *[new for _, new in made(halves, e)]]


def value(e: Expr, arrays: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(e({"n": N, **arrays}))


def made(row: Law, e: Expr) -> list[tuple[Expr, Expr]]:
    """What the law makes of nodes of an expression, each beside its node."""
    nodes = [node for node in postorder([bare(e)]) if root_of(node) in row.on]
    pairs = [(node, new) for node in nodes for new in row.rewrite(node)]
    return [(node, new) for node, new in pairs if new is not None and new is not node]


@pytest.mark.parametrize("row", LAWS, ids=[row.name for row in LAWS])
def test_laws_hold_and_are_found(row: Law) -> None:
    left, right = sides(row)
    arrays = data(left)
    np.testing.assert_allclose(value(right, arrays), value(left, arrays), rtol=1e-10, atol=1e-12)
    found = [pair for e in spellings(left) for pair in made(row, e)]
    assert found or left is right
    for node, new in found:
        np.testing.assert_allclose(value(new, arrays), value(node, arrays), rtol=1e-10, atol=1e-12)
        assert new.shape == node.shape


@pytest.mark.parametrize("row", LAWS, ids=[row.name for row in LAWS])
def test_laws_hold_in_batches_and_in_single_precision(row: Law) -> None:
    left, _ = sides(row)
    batched = tc.vmap(left, dict.fromkeys(left.variables, 0), size="m") if left.variables else left
    for e, batch in ((left, ()), (batched, (2,))):
        for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 2e-4)):
            arrays = data(left, batch, dtype)
            for node, new in made(row, e):
                here = {name: arrays[name] for name in node.variables | new.variables}
                right = value(node, here | {"m": 2})  # type: ignore[dict-item]
                found = value(new, here | {"m": 2})  # type: ignore[dict-item]
                np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


def test_laws_have_names_of_their_own() -> None:
    assert len({row.name for row in LAWS}) == len(LAWS)


def test_equal_texts_of_a_formula_are_written_as_one() -> None:
    texts = ["A*(B*x) + A*y", "A*B*x + A*y", "A*(B*x + y)", "(A*B)*x + A*y"]
    forms = {str(tc.parse(text, **VARIABLES)) for text in texts}
    assert len(forms) == 1


def test_what_is_written_chooses_itself() -> None:
    other = []
    for row in FORMULAS:
        e = row.derivative()
        again = bare(tc.parse(str(e), **row.variables()))
        if chosen(again) is not chosen(e):
            other.append(row.name)
        assert chosen(chosen(e)) is chosen(e)
    assert len(other) <= 0.05 * len(FORMULAS), other


def test_chosen_forms_have_the_same_values() -> None:
    A, x, y = VARIABLES["A"], VARIABLES["x"], VARIABLES["y"]
    f = tc.parse("norm2(A*x - y)^3 + sum(log(x./y).^2) + logdet(A)*x'*y", A=A, x=x, y=y)
    for e in (tc.grad(f, x), tc.hessian(f, x), tc.grad(f, A)):
        arrays = data(e)
        np.testing.assert_allclose(value(chosen(e), arrays), value(e, arrays), rtol=1e-9)


def test_printing_changes_no_plan_and_no_derivative() -> None:
    X = tc.var("X", ("m", "n"))
    f = tc.linalg.logdet(X.T @ X) + tc.norm(X)
    before = tc.grad(f, X)
    plan = str(tc.compile(before, backend="numpy").plan_for(X=(5, 3)))
    assert str(before)
    assert tc.to_latex(before)
    assert tc.to_mathml(before)
    assert tc.grad(f, X) is before
    assert str(tc.compile(tc.grad(f, X), backend="numpy").plan_for(X=(5, 3))) == plan


def test_large_expressions_are_written_as_they_are() -> None:
    e: Expr = VARIABLES["x"]
    for k in range(MAX_LARGE):
        e = tc.sin(e) + k * VARIABLES["y"]
    assert chosen(e) is e


def test_limits_of_symbolic_work_stop_the_search_and_not_the_text() -> None:
    A, x = tc.var("A", ("p", "p")), tc.var("x", ("p",))
    e = x @ A @ A @ A + x @ A
    with tc.limits(nodes=3):
        assert "A'" in str(e)


def test_the_number_of_forms_is_bounded() -> None:
    A, B = VARIABLES["A"], VARIABLES["B"]
    forms = EqualForms(lambda node: (float(len(node.args)), node.order[1]), 40)
    forms.add((A + B) @ (A + B) @ (A @ B + B) @ A + A @ B)
    forms.saturate()
    assert len(forms.nodes) <= 80  # the last expression enters whole


def test_the_cost_is_that_of_a_reader() -> None:
    shorter = ["(A + A')*x", "inv(X)'", "X'*(y - r)", "x./y", "sym(A)"]
    longer = ["A*x + A'*x", "reciprocal(det(X))*adj(X)'", "X'*y - X'*r", "x .* reciprocal(y)",
              "(A + A')/2"]  # fmt: skip
    assert all(reading_cost(a) < reading_cost(b) for a, b in zip(shorter, longer, strict=True))


def test_the_choice_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "import tcalc as tc\n"
        "X, W = tc.var('X', ('m', 'n')), tc.var('W', ('m', 'k'))\n"
        "S = tc.var('S', ('m', 'm'), symmetric=True)\n"
        "f = tc.parse(\"tr(W'*S*W*inv(W'*W)) + logdet(S)\", W=W, S=S)\n"
        "g = tc.grad(f, W)\n"
        "print(g, tc.hessian(f, S), tc.to_latex(g), g.text(where=True))\n"
    )
    root = Path(__file__).resolve().parent.parent
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, check=True)
        outputs.add(result.stdout)
    assert len(outputs) == 1


# --- symmetric parts ------------------------------------------------------------------------------


def test_symmetric_parts_are_read_and_written() -> None:
    A = VARIABLES["A"]
    e = tc.parse("sym(A)", A=A)
    assert e is (A + A.T) / 2
    assert str(e) == "sym(A)"
    T = np.random.default_rng(0).normal(size=(N, N, N, N))
    found = tc.linalg.sym(T, 2)()
    half = (T + T.transpose(1, 0, 2, 3)) / 2
    np.testing.assert_allclose(found, (half + half.transpose(0, 1, 3, 2)) / 2)


def test_second_derivatives_by_symmetric_matrices_are_one_line() -> None:
    S, A = VARIABLES["S"], VARIABLES["A"]
    e = tc.hessian(tc.trace(tc.linalg.inv(S) @ A), S)
    assert "sym(" in str(e)
    assert len(str(e)) < 100
    arrays = data(e)
    again = tc.parse(str(e), S=S, A=A)
    np.testing.assert_allclose(value(again, arrays), value(e, arrays), rtol=1e-9)


def test_symmetric_parts_need_pairs_of_equal_axes() -> None:
    with pytest.raises(tc.ShapeError, match="pairs"):
        tc.linalg.sym(tc.var("Q", (2, 3)))
    with pytest.raises(tc.ShapeError, match="pairs"):
        tc.linalg.sym(VARIABLES["A"], 2)


def test_the_row_of_symmetric_parts_is_differentiated() -> None:
    A, B = VARIABLES["A"], VARIABLES["B"]
    form = chosen((A + A.T) @ B / 2)
    assert any(
        isinstance(node, Apply) and node.op.name == "symmetric_part" for node in postorder([form])
    )
    f = tc.sum(tc.sin(form) * B)
    plain = tc.sum(tc.sin((A + A.T) @ B / 2) * B)
    arrays = data(f)
    for mode in ("forward", "reverse"):
        one, other = (tc.derivative(g, "A", 1, mode) for g in (f, plain))
        np.testing.assert_allclose(value(one, arrays), value(other, arrays), rtol=1e-10)
    batch = tc.vmap(f, {"A": 0}, size="m")
    many = np.stack([arrays["A"], 2 * arrays["A"]])
    found = np.asarray(batch(A=many, B=arrays["B"]))
    np.testing.assert_allclose(found[0], value(f, arrays), rtol=1e-12)


# --- names for what is repeated -------------------------------------------------------------------


def residual() -> Expr:
    A, x, y = VARIABLES["A"], VARIABLES["x"], VARIABLES["y"]
    return tc.parse("exp(-norm2(A*x - y)^2)*A'*(A*x - y) + norm2(A*x - y)*x", A=A, x=x, y=y)


def test_what_is_repeated_is_named_where_that_is_shorter() -> None:
    e = residual()
    text = e.text(where=True)
    assert text == "exp(-norm2(r)^2)*A'*r + norm2(r)*x where r = A*x - y"
    assert len(text) < len(str(e))
    assert "where" not in str(e)
    assert tc.parse(text, **VARIABLES) is tc.parse(str(e), **VARIABLES)
    assert VARIABLES["x"].text(where=True) == "x"


def test_names_clash_with_nothing() -> None:
    variables = {name: tc.var(name, ("n",)) for name in "rsuvwzpqh"}
    f = sum(tc.exp(v - variables["r"]) * tc.sin(v - variables["r"]) for v in variables.values())
    e = tc.sum(f * f) * f
    text = e.text(where=True)
    names = [part.split(" = ")[0] for part in text.split(" where ")[1].split(", ")]
    assert not {*names} & {*variables, "n"}
    assert len(names) == len({*names})
    arrays = {name: np.random.default_rng(3).normal(size=N) for name in variables}
    again = tc.parse(text, **variables)
    np.testing.assert_allclose(again(arrays), e(arrays), rtol=1e-10)


def test_latex_and_mathml_name_what_is_repeated() -> None:
    e = residual()
    assert r"\quad\text{where } r = A x - y" in tc.to_latex(e, where=True)
    assert "where" not in tc.to_latex(e)
    assert "<mtable" in tc.to_mathml(e, where=True)
    assert "<mtable" not in tc.to_mathml(e)
    assert "<mi>r</mi>" not in tc.to_mathml(e)


def test_definitions_behind_a_formula_are_read() -> None:
    read = tc.parse("t = 2*x; A*r + s*y where r = t - y, s = sum(r)", **VARIABLES)
    assert read is tc.parse("A*(2*x - y) + sum(2*x - y)*y", **VARIABLES)
    choice = tc.parse("where(x > 0, r, y) where r = 2*x", **VARIABLES)
    assert choice is tc.parse("where(x > 0, 2*x, y)", **VARIABLES)
    with pytest.raises(tc.ParseError) as problem:
        tc.parse("A*r where r = x +, s = 2", **VARIABLES)
    assert (problem.value.line, problem.value.column) == (1, 18)


@pytest.mark.parametrize(
    "text",
    [
        "(2.5*x .* y).^1000", "(1e300*x).^5", "(1e-200*x).^(-3)", "(1e-200*x .* x).^3",
        "(2*x).^(1/0)", "1 ./ (1 + x).^24 + x ./ (1 + x).^2", "1 ./ (1 + x + y).^60 + x",
        "(1 + x).^(-1000) + x",
    ],
)  # fmt: skip
def test_powers_of_any_size_are_written(text: str) -> None:
    """Neither multiplied out without an end nor beyond all numbers."""
    e = tc.parse(text, x=(), y=())
    for written in (e, tc.derivative(e, "x")):
        with tc.limits(seconds=5):
            again = tc.parse(str(written), x=(), y=())
        at = {"x": 0.3, "y": 0.2}
        np.testing.assert_allclose(again(at), written(at), rtol=1e-10, equal_nan=True)


def test_exponentials_on_diagonals_are_left_as_they_are() -> None:
    x, y, X = tc.var("x", "n"), tc.var("y", "n"), tc.var("X", ("n", "n"))
    e = tc.exp(X) * tc.exp(2 * X) + tc.diag(tc.exp(x))
    assert str(e) == "exp(2*X) .* exp(X) + diag(exp(x))"
    assert str(tc.diag(tc.exp(x + tc.log(y))) - tc.diag(y * tc.exp(x))) == "matrix(0, n, n)"
    columns = tc.exp(x)[:, None] * tc.exp(X) - tc.exp(X + x[:, None])
    assert str(columns) == "matrix(0, n, n)"


def test_exponentials_keep_the_sign_under_even_powers() -> None:
    a, b, inf = tc.var("a"), tc.var("b"), float("inf")
    for e in (
        tc.exp(b + tc.log(a**2) / 2) - a * tc.exp(b),
        3 * tc.exp(b - tc.log(a * a) / 2) + tc.exp(b) / a,
        tc.exp(b + tc.log(a**4) / 4) - a * tc.exp(b),
    ):
        again = tc.parse(str(e), a=(), b=())
        assert np.isclose(again(a=-2.0, b=0.7), e(a=-2.0, b=0.7))
    assert str(tc.exp(inf * tc.log(a) + b) + tc.exp(b)) == "exp(b + inf*log(a)) + exp(b)"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("u .* (x - y) + v .* (y - x)", "(u - v) .* (x - y)"),
        ("u .* (x - y) - v .* (y - x)", "(u + v) .* (x - y)"),
        ("(x - y)*u' + (y - x)*v'", "(x - y)*(u - v)'"),
    ],
)
def test_factors_that_are_negatives_of_each_other_are_one(text: str, form: str) -> None:
    u, v, x, y = np.random.default_rng(5).uniform(0.5, 2, (4, 3))
    wanted = {
        "(u - v) .* (x - y)": (u - v) * (x - y),
        "(u + v) .* (x - y)": (u + v) * (x - y),
        "(x - y)*(u - v)'": np.outer(x - y, u - v),
    }[form]
    e = tc.parse(text, **{name: tc.var(name, "n") for name in "uvxy"})
    assert str(e) == form
    np.testing.assert_allclose(chosen(e)(u=u, v=v, x=x, y=y), wanted, rtol=1e-12)
