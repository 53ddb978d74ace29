"""Loops that end at a condition: values, derivatives and batches, on every back end and as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.normal import bare
from tests.shared import in_turn, named
from tests.until_cases import CASES, Case, by_jax

BACKENDS = ["functional", "numpy", "c"]
of_each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
on_each_back_end = pytest.mark.parametrize("backend", BACKENDS)


def close(found: Any, wanted: Any, name: str = "") -> None:
    size = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * size, err_msg=name)


@of_each_case
@on_each_back_end
def test_values_and_derivatives(case: Case, backend: str) -> None:
    e, first = case.expression(), case.targets[0]
    forward = tc.derivative(e, first, mode="forward")
    wanted = [e, tc.grad(e, case.targets), tc.hessian(e, first), forward]
    step = tc.compile(wanted, backend=backend)
    for seed in (0, 1):
        arrays = case.arrays(seed)
        value, gradients, hessian = by_jax(case, seed)
        found = step(arrays)
        close(found[0], value, "value")
        for name, one, other in zip(case.targets, found[1], gradients, strict=True):
            close(one, other, name)
        close(found[2], hessian, "Hessian")
        close(found[3], gradients[0], "forward")


@pytest.mark.parametrize(("case", "backend"), in_turn(CASES, ["numpy", "c"]), ids=named)
def test_items_of_batches_end_at_steps_of_their_own(case: Case, backend: str) -> None:
    """Batches of derivatives, and derivatives of batches."""
    e, first = case.expression(), case.targets[0]
    many = dict.fromkeys(case.targets, 0)
    batch = tc.vmap(e, many, size="B")
    weights = tc.var("weights", "B")
    wanted = [
        batch,
        tc.vmap(tc.grad(e, first), many, size="B"),
        tc.grad(weights @ batch, tc.var(first, ("B", *case.shapes[first]))),
        tc.vmap(tc.hessian(e, first), many, size="B"),
    ]
    arrays = case.arrays(2, 3)
    scale = np.array([1.0, 2.0, -1.0])
    found = tc.compile(wanted, backend=backend)(**arrays, weights=scale)
    for k in range(3):
        value, gradients, hessian = by_jax(case, 2, 3, k)
        close(found[0][k], value, "value")
        close(found[1][k], gradients[0], "gradient")
        close(found[2][k], scale[k] * np.asarray(gradients[0]), "gradient of all")
        close(found[3][k], hessian, "Hessian")


LANGUAGES = {
    "matrix": (str, tc.parse),
    "einsum": (tc.to_einsum, tc.parse_einsum),
    "index": (tc.to_index, tc.parse_index),
}


@of_each_case
@pytest.mark.parametrize("language", LANGUAGES)
def test_text_is_read_back(case: Case, language: str) -> None:
    """The loop, and its derivative: a loop of as many steps."""
    write, read = LANGUAGES[language]
    e = case.expression()
    for root in (bare(e), bare(tc.grad(e, case.targets[0]))):
        text = write(root)
        found = bare(read(text, **root.variables))
        assert " until " in text
        arrays = {name: a for name, a in case.arrays().items() if name in root.variables}
        close(tc.compile(found)(arrays), tc.compile(root)(arrays), text)


def test_text_says_where_a_loop_ends() -> None:
    a, b = tc.var("a"), tc.var("b", "n")
    end = tc.fold(lambda s, i: tc.cos(a * s) + b[i], 1.0, until=lambda s: s < a, limit="n")
    loop = "s -> b[i] + cos(a*s), 1, i=0..n-1 until s < a"
    assert str(end.state) == f"fold({loop})"
    assert str(end.steps) == tc.to_einsum(end.steps) == f"fold_steps({loop})"
    assert tc.parse(f"fold({loop})", a=(), b="n") is end.state
    assert r"\text{ until } s < a" in tc.to_latex(end.state)
    assert "until" in tc.to_mathml(end.state)
    back = str(tc.grad(end.state, a))
    assert "i=n-1..0 if i < " in back
    for wrong, message in (
        ("fold(s -> s*a, 1, i=0..3 until i > 2)", "a condition on the states"),
        ("fold(s -> s*a, 1, i=3..0 until s > 2)", "runs forward"),
        ("fold(s -> s*a, 1, i=0..3 if s > 2)", "if i <"),
        ("fold(s -> s*a, 1, i=0..3 until b)", "one number"),
        ("fold_steps(s -> s*a, 1, i=0..3)", "with a condition"),
    ):
        with pytest.raises(tc.ParseError, match=message):
            tc.parse(wrong, a=(), b="n")


@of_each_case
def test_printed_programs(case: Case) -> None:
    e = case.expression()
    wanted = [e, *tc.grad(e, case.targets)]
    program: dict[str, Any] = {}
    exec(tc.to_code(wanted, "numpy", "program"), program)
    arrays = case.arrays()
    found = program["program"](**arrays)
    for one, other in zip(found, tc.compile(wanted)(arrays), strict=True):
        close(one, other)


def test_no_step_is_made_behind_the_end() -> None:
    """Which would find a matrix that it cannot do with."""
    a = tc.var("a", (2, 2))
    end = tc.fold(lambda s, i: tc.linalg.cholesky(s) - 0.4 * tc.eye(2), a,
                  until=lambda s: s[0, 0] < 0.4, limit=50)  # fmt: skip
    e = tc.sum(end.state**2)
    for backend in BACKENDS:
        step = tc.compile([end.steps, tc.grad(e, a), tc.hessian(e, a)], backend=backend)
        assert step(a=np.eye(2) * 4.0)[0] == 4
        assert np.isfinite(step(a=np.eye(2) * 4.0)[2]).all()
        with pytest.raises(tc.LinAlgError, match="at step 1 of 50"):
            step(a=np.diag([1.0, -1.0]))


def test_states_are_held_once_for_all_derivatives() -> None:
    """The loop itself runs once, whatever is derived."""
    a = tc.var("a")
    end = tc.fold(lambda s, i: tc.sin(a * s), 2.0, until=lambda s: s < a, limit=9)
    plan = tc.compile([*end, tc.grad(end.state, a), tc.derivative(end.state, a, 2)]).plan_for(a=())
    kinds = [step.params[0].name for step in plan.steps if step.kind == "loop"]
    conditional = [s for s in plan.steps if s.kind == "loop" and s.params[1].until is not None]
    assert len(conditional) == 1 < len(kinds)


def test_limits_that_are_values_and_limits_of_nothing() -> None:
    a, k = tc.var("a"), tc.var("k", integer=True)
    end = tc.fold(lambda s, i: s + a + i, 0.0, until=lambda s: s > 10, limit=k)
    slope = tc.derivative(end.state, a)
    for limit, wanted in ((0, (0, 0, 0, 0)), (3, (6, 3, 0, 3)), (20, (15, 5, 1, 5))):
        for backend in BACKENDS:
            found = tc.compile([*end, slope], backend=backend)(a=1.0, k=limit)
            assert tuple(map(float, found)) == wanted


def test_what_is_no_loop_until_a_condition() -> None:
    step, until = (lambda s, i: s * 2), (lambda s: s > 3)
    for wrong in (
        {},
        {"n": 3, "limit": 3},
        {"until": until},
        {"n": 3, "until": until},
        {"limit": 3},
    ):
        with pytest.raises(TypeError, match="n steps, or a condition"):
            tc.fold(step, 1.0, **wrong)
    with pytest.raises(TypeError, match="no checkpoints with until"):
        tc.fold(step, 1.0, until=until, limit=3, checkpoint=True)
    with pytest.raises(tc.ShapeError, match="the condition is one number, not of shape"):
        tc.fold(step, tc.zeros(3), until=until, limit=3)
    x = tc.var("x", 3)
    with pytest.raises(TypeError, match="used as an index"):
        tc.fold(lambda s, i: s / 2, 4, until=lambda s: x[s] > 1, limit=3)
