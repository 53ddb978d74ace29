"""Solutions with compressed tensors as expressions, and the functions that repeated solves become.

The oracle is NumPy on the dense tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.trees import leaves
from tcalc.run import structured_solves
from tcalc.support.errors import UnsupportedError

RNG = np.random.default_rng(4)
w, c, d = tc.var("w", "n"), tc.var("c", "n"), tc.var("d", "m")
T, U, V = tc.var("T", ("m", "n")), tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
W, P = tc.var("W", ("m", "n")), tc.var("P", ("m", "n", "k"))
COSINES = tc.sum((tc.sum(1 - tc.cos(w)) + c * (1 - tc.cos(w)) - tc.sin(w)) ** 2)
VALUES = {
    "w": RNG.uniform(0.2, 1.2, 7), "c": np.arange(1.0, 8.0), "d": RNG.uniform(1, 2, 5),
    "T": RNG.normal(size=(5, 7)), "U": RNG.normal(size=(5, 3)), "V": RNG.normal(size=(7, 3)),
    "W": RNG.uniform(1, 2, (5, 7)), "P": RNG.normal(size=(5, 7, 3)),
}  # fmt: skip
EXTENTS = {"n": 7, "m": 5, "k": 3}
#: Functions, and what their Hessians are by: of each structure that has a formula.
STRUCTURES: dict[str, tuple[Any, str]] = {
    "a diagonal": (tc.sum(c * tc.exp(w)), "w"),
    "one number on a diagonal": (tc.sum(w**2), "w"),
    "a dense matrix": (tc.sum(tc.exp(V @ (V.T @ w) / 9)) + w @ w, "w"),
    "a diagonal and two vectors": (COSINES, "w"),
    "a diagonal and ones": (tc.sum(tc.exp(w)) + tc.sum(w) ** 2, "w"),
    "a diagonal and a matrix of vectors": (tc.sum(c * tc.exp(w)) + tc.sum((V.T @ w) ** 2), "w"),
    "one block for all rows": (tc.sum((T - U @ V.T) ** 2), "U"),
    "a block for every row": (tc.sum(((T - U @ V.T) * W) ** 2), "U"),
    "a diagonal over two axes": (tc.sum(tc.exp(U) * d[:, None]), "U"),
    "rows and vectors of each": (
        tc.sum(tc.exp(U)) + tc.sum(tc.sum(U * P[:, 0], axis=1) ** 2 * d), "U",
    ),
    "a matrix over two axes": (tc.sum((V @ U.T) ** 2) + tc.sum(U) ** 2 + tc.sum(U**2), "U"),
}  # fmt: skip


def of(*outputs: tc.Expr) -> dict[str, Any]:
    return {name: VALUES[name] for e in outputs for name in e.variables}


def dense(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The Hessian as a matrix, and the gradient as a vector."""
    f, wrt = STRUCTURES[name]
    g, H = (e(**of(f)) for e in (tc.grad(f, wrt), tc.hessian(f, wrt)))
    return H.reshape(g.size, g.size), g.ravel()


@pytest.mark.parametrize("backend", ["numpy", "functional"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_steps_and_determinants_are_the_dense_ones(name: str, backend: str) -> None:
    f, wrt = STRUCTURES[name]
    H, g = dense(name)
    for sizes in (None, EXTENTS):
        held = tc.compress(tc.hessian(f, wrt))
        outputs = held.solve(tc.grad(f, wrt), sizes), held.logdet(sizes)
        step, log = tc.compile(outputs, backend=backend)(**of(f))
        assert step.shape == VALUES[wrt].shape
        np.testing.assert_allclose(step.ravel(), np.linalg.solve(H, g), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(log, np.linalg.slogdet(H)[1], rtol=1e-10)


def test_further_axes_are_more_right_hand_sides() -> None:
    for name in STRUCTURES:
        f, wrt = STRUCTURES[name]
        many = RNG.normal(size=(*VALUES[wrt].shape, 2, 3))
        shape = (*f.variables[wrt].shape, 2, 3)
        found = tc.compress(tc.hessian(f, wrt)).solve(tc.var("many", shape))
        H, _ = dense(name)
        wanted = np.linalg.solve(H, many.reshape(len(H), 6)).reshape(many.shape)
        np.testing.assert_allclose(found(many=many, **of(f)), wanted, rtol=1e-8, atol=1e-10)


def test_a_step_has_derivatives_as_any_expression_has() -> None:
    step = tc.compress(tc.hessian(COSINES, w)).solve(tc.grad(COSINES, w))
    change = 1e-6 * RNG.normal(size=7)
    J = tc.jacobian(step, w)(**of(COSINES))
    near = [step(w=VALUES["w"] + k * change, c=VALUES["c"]) for k in (1, -1)]
    np.testing.assert_allclose(J @ change, (near[0] - near[1]) / 2, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("wrt", ["U", ("U", "V"), {"v": "V", "u": "U"}])
def test_value_gradient_and_hessian_are_one_plan(wrt: Any) -> None:
    f = tc.sum((T - U @ V.T) ** 2) + tc.sum(U**2) + tc.sum(tc.exp(V))
    outputs = {"f": f, "g": tc.grad(f, wrt), "H": tc.hessian(f, wrt)}
    step = tc.compile(outputs, structured=True)
    apart = [tc.compile(e, structured=True) for e in outputs.values()]
    shapes = {name: v.shape for name, v in of(f).items()}
    assert step.plan_for(**shapes).flops < sum(one.plan_for(**shapes).flops for one in apart)
    found, g = step(**of(f)), tc.compile(outputs["g"])(**of(f))
    assert float(found["f"]) == pytest.approx(f(**of(f)))
    for factor in (found["H"], found["H"].factor(1.0)):
        one, other = (leaves(factor.solve(right)) for right in (found["g"], g))
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_what_has_no_formula_is_said() -> None:
    S = tc.var("S", ("n", "n"), symmetric=True)
    X, at = tc.var("X", ("m", "n")), np.array([0, 2, 2])
    held = tc.compress(tc.hessian(COSINES, w))
    with pytest.raises(tc.ShapeError, match=r"expected \(n,\)"):
        held.solve(d)
    with pytest.raises(tc.ShapeError, match="not square"):
        tc.compress(tc.jacobian(X @ w, w)).logdet()
    with pytest.raises(UnsupportedError, match="properties"):
        tc.compress(tc.hessian(tc.sum(S * S), S)).solve(S)
    with pytest.raises(UnsupportedError, match="tables"):
        tc.compress(tc.hessian(tc.sum(tc.exp(w[at])), w)).solve(w)


# --- solves that come again -----------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_solves, "REPEATED", {"numpy": 2})


def functions(step: Any) -> list[Any]:
    """What a compiled structured function has made for solves."""
    return list(step._solves._functions.values())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", STRUCTURES)
def test_solves_that_come_again_are_functions_of_the_cores(name: str) -> None:
    f, wrt = STRUCTURES[name]
    step = tc.compile(tc.hessian(f, wrt), structured=True, backend="numpy")
    g = tc.grad(f, wrt)(**of(f))
    first = step(**of(f)).solve(g)
    assert not functions(step)
    others = [step(**of(f)).solve(g) for _ in range(3)]
    assert len(functions(step)) == 1
    H, flat = dense(name)
    for found in (first, *others):
        np.testing.assert_allclose(found.ravel(), np.linalg.solve(H, flat), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", ["auto", "c"])
def test_by_default_the_second_solve_is_a_function_already(backend: str) -> None:
    step, right = tc.compile(tc.hessian(COSINES, w), structured=True, backend=backend), VALUES["c"]
    found = [step(**of(COSINES)).solve(right)]
    assert not functions(step)
    found.append(step(**of(COSINES)).solve(right))
    assert len(functions(step)) == 1
    tc.wait_for_compiler()
    found += [step(**of(COSINES)).solve(right) for _ in range(3)]
    wanted = np.linalg.solve(tc.hessian(COSINES, w)(**of(COSINES)), right)
    for x in found:
        np.testing.assert_allclose(x, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("soon")
def test_a_second_solve_with_one_tensor_makes_factors() -> None:
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend="numpy")
    for _ in range(3):
        held = step(**of(COSINES))
        one = held.solve(VALUES["c"])
    assert "factored" not in held.explain()
    np.testing.assert_allclose(held.solve(VALUES["c"]), one, rtol=1e-10)
    assert "factored" in held.explain()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("function", [lambda x: x**3, lambda x: x**3 / 3 + x * 1e-13])
def test_numbers_that_a_formula_does_not_suit_are_looked_at(function: Any) -> None:
    """A zero, or nearly one, in the diagonal below a vector: Woodbury would lose all digits."""
    f = tc.sum(function(w)) + tc.sum(w) ** 2
    step = tc.compile(tc.hessian(f, w), structured=True, backend="numpy")
    good = np.arange(1.0, 6.0)
    for _ in range(3):
        step(w=good).solve(good)
    assert functions(step) != [None]
    for least in (0.0, 1e-14, 1e-9):
        bad = np.array([least, 1.0, 2.0, 3.0, 4.0])
        wanted = np.linalg.solve(tc.hessian(f, w)(w=bad), good)
        np.testing.assert_allclose(step(w=bad).solve(good), wanted, rtol=1e-8)


@pytest.mark.usefixtures("soon")
def test_singular_numbers_are_the_same_error() -> None:
    f = tc.sum((T - U @ V.T) ** 2)
    step = tc.compile(tc.hessian(f, U), structured=True, backend="numpy")
    data = of(f)
    for _ in range(3):
        step(**data).solve(data["U"])
    flat = {**data, "V": np.ones_like(data["V"])}
    with pytest.raises(tc.LinAlgError, match="singular"):
        step(**flat).solve(data["U"])
    nothing = {**data, "V": np.full_like(data["V"], np.nan)}
    with pytest.raises(tc.LinAlgError, match="not finite"):
        step(**nothing).solve(data["U"])


@pytest.mark.usefixtures("soon")
def test_float32_and_other_shapes_are_solved_as_before() -> None:
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend="numpy")
    single = {name: x.astype(np.float32) for name, x in of(COSINES).items()}
    for _ in range(4):
        assert step(**single).solve(single["c"]).dtype == np.float32
        assert step(**of(COSINES)).solve(np.eye(7)).shape == (7, 7)
    assert len(functions(step)) == 1
