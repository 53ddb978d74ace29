"""Solutions with compressed tensors as expressions, and the functions that repeated solves become.

The oracle is NumPy on the dense tensor.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.compiler import command
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
    "one number and vectors": (tc.sum(tc.exp(V.T @ w)) + w @ w, "w"),
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
    monkeypatch.setitem(structured_solves.REPEATED, "numpy", 2)


by_all = pytest.mark.parametrize("backend", ["numpy", "c", "auto"])


def functions(step: Any) -> list[Any]:
    """What a compiled structured function has made for solves."""
    return list(step._solves._functions.values())


@by_all
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", STRUCTURES)
def test_solves_that_come_again_are_functions_of_the_cores(name: str, backend: str) -> None:
    f, wrt = STRUCTURES[name]
    step = tc.compile(tc.hessian(f, wrt), structured=True, backend=backend)
    g = tc.grad(f, wrt)(**of(f))
    found = [step(**of(f)).solve(g)]
    assert not functions(step)
    for _ in range(3):
        found.append(step(**of(f)).solve(g))
        assert len(functions(step)) == 1
        tc.wait_for_compiler()
    H, flat = dense(name)
    for x in found:
        np.testing.assert_allclose(x.ravel(), np.linalg.solve(H, flat), rtol=1e-9, atol=1e-12)


def test_on_numpy_many_solves_have_to_come() -> None:
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend="numpy")
    for _ in range(20):
        step(**of(COSINES)).solve(VALUES["c"])
    assert not functions(step)


def test_without_a_compiler_many_solves_have_to_come_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tc.wait_for_compiler()  # which others may have started
    monkeypatch.setitem(structured_solves.REPEATED, "numpy", 9)
    monkeypatch.setenv("CC", "no-such-compiler")
    command.cache_clear()
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend="auto")
    for made in [0] * 8 + [1] * 2:
        step(**of(COSINES)).solve(VALUES["c"])
        assert len(functions(step)) == made


@pytest.mark.usefixtures("soon")
def test_a_second_solve_with_one_tensor_makes_factors() -> None:
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend="numpy")
    for _ in range(3):
        held = step(**of(COSINES))
        one = held.solve(VALUES["c"])
    assert "factored" not in held.explain()
    np.testing.assert_allclose(held.solve(VALUES["c"]), one, rtol=1e-10)
    assert "factored" in held.explain()


@by_all
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("function", [lambda x: x**3, lambda x: x**3 / 3 + x * 1e-13])
def test_numbers_that_a_formula_does_not_suit_are_looked_at(function: Any, backend: str) -> None:
    """A zero, or nearly one, in the diagonal below a vector: Woodbury would lose all digits."""
    f = tc.sum(function(w)) + tc.sum(w) ** 2
    step = tc.compile(tc.hessian(f, w), structured=True, backend=backend)
    good = np.arange(1.0, 6.0)
    for _ in range(3):
        step(w=good).solve(good)
        tc.wait_for_compiler()
    assert functions(step) != [None]
    for least in (0.0, 1e-14, 1e-9):
        bad = np.array([least, 1.0, 2.0, 3.0, 4.0])
        wanted = np.linalg.solve(tc.hessian(f, w)(w=bad), good)
        np.testing.assert_allclose(step(w=bad).solve(good), wanted, rtol=1e-8)


def weighted(scale: tc.Expr) -> tc.Expr:
    """The Hessian diag(scale) + V diag(s) V', whose s may have any sign."""
    return tc.hessian(tc.sum(scale * w**2) / 2 + tc.var("s", "k") @ (V.T @ w) ** 2 / 2, w)


@by_all
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("scale", [tc.var("a"), c], ids=["a number", "a diagonal"])
@pytest.mark.parametrize("first", [1, -1])
def test_signs_of_an_update_choose_a_formula_and_may_change(
    scale: tc.Expr, first: int, backend: str
) -> None:
    """Of none below 0 by a Cholesky factor; by one row of code or another the solution holds."""
    step = tc.compile(weighted(scale), structured=True, backend=backend)
    at = {"V": VALUES["V"], "a": np.array(0.7), "c": VALUES["c"]}
    at = {name: at[name] for name in ("V", *scale.variables)}
    for sign in (first, first, first, -first, 0, first):
        s = sign * np.array([1.0, 0.3, 0.2]) + (sign == 0) * np.array([1.0, -1.0, 0.0])
        with pytest.raises(tc.LinAlgError, match="singular"):
            step(**{**at, scale.name: at[scale.name] * 0, "s": s}).solve(VALUES["c"])
        for tiny in (1, 1e-7):
            values = {**at, scale.name: at[scale.name] * tiny, "s": s}
            H = weighted(scale)(**values)
            x, g = step(**values).solve(VALUES["c"]), VALUES["c"]
            size = np.linalg.norm(H, 2) * np.linalg.norm(x) + np.linalg.norm(g)
            assert np.linalg.norm(H @ x - g) <= 1e-13 * size
        tc.wait_for_compiler()
    (function,) = functions(step)
    assert ("cholesky" in str(function.plan)) == (first > 0)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("scale", [tc.var("a"), c], ids=["a number", "a diagonal"])
def test_updates_that_grow_are_doubtful_where_the_whole_is_no_measure(
    scale: tc.Expr, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S of one number below it has the condition of the whole, if no weight is below 0."""
    answered, call = [], structured_solves.CompiledSolves.__call__

    def told(self: Any, *given: Any) -> Any:
        found = call(self, *given)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(structured_solves.CompiledSolves, "__call__", told)
    step = tc.compile(weighted(scale), structured=True, backend="numpy")
    for tiny in (1.0, 1.0, 1.0, 1e-7, 1e-13, 1e-160):
        at = {scale.name: tiny * (VALUES["c"] if scale is c else np.array(0.7))}
        with suppress(tc.LinAlgError):
            step(V=VALUES["V"], s=sign * np.array([1.0, 0.3, 0.2]), **at).solve(VALUES["c"])
    assert answered[2:] == [True, sign > 0 and scale is not c, False, False]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("sign", [1, -1])
def test_updates_of_many_vectors_are_functions_where_they_are_positive(sign: int) -> None:
    step = tc.compile(weighted(tc.var("a")), structured=True, backend="numpy")
    rng = np.random.default_rng(0)
    vectors, s, g = rng.normal(size=(300, 70)), sign * rng.uniform(1, 2, 70), rng.normal(size=300)
    for _ in range(3):
        x = step(V=vectors, a=5.0, s=s).solve(g)
    np.testing.assert_allclose(5 * x + vectors @ (s * (vectors.T @ x)), g, atol=1e-11)
    assert (functions(step) == [None]) == (sign < 0)


@by_all
@pytest.mark.usefixtures("soon")
def test_singular_numbers_are_the_same_error(backend: str) -> None:
    f = tc.sum((T - U @ V.T) ** 2)
    step, data = tc.compile(tc.hessian(f, U), structured=True, backend=backend), of(f)
    flat = {**data, "V": np.ones_like(data["V"])}
    nothing = {**data, "V": np.full_like(data["V"], np.nan)}
    said = []
    for _ in range(4):  # by the solvers; by a function; by one in C
        for bad, match in ((flat, "singular"), (nothing, "not finite")):
            with pytest.raises(tc.LinAlgError, match=match) as error:
                step(**bad).solve(data["U"])
            said.append((type(error.value), str(error.value)))
        step(**data).solve(data["U"])
        tc.wait_for_compiler()
    assert functions(step) != [None]
    assert len(set(said)) == 2


@by_all
@pytest.mark.usefixtures("soon")
def test_singular_diagonals_are_the_same_error(backend: str) -> None:
    f = tc.sum(w**3)
    step, right = tc.compile(tc.hessian(f, w), structured=True, backend=backend), VALUES["c"]
    with pytest.raises(tc.LinAlgError) as first:
        step(w=np.zeros(7)).solve(right)
    for _ in range(3):
        np.testing.assert_allclose(step(w=right).solve(right), np.full(7, 1 / 6))
        with pytest.raises(type(first.value)) as again:
            step(w=np.zeros(7)).solve(right)
        assert str(again.value) == str(first.value)
        tc.wait_for_compiler()


@by_all
@pytest.mark.usefixtures("soon")
def test_float32_and_other_shapes_are_solved_as_before(backend: str) -> None:
    step = tc.compile(tc.hessian(COSINES, w), structured=True, backend=backend)
    dense, single = (
        tc.hessian(COSINES, w),
        {k: x.astype(np.float32) for k, x in of(COSINES).items()},
    )
    fewer = {name: x[:5] for name, x in of(COSINES).items()}
    for _ in range(4):
        assert step(**single).solve(single["c"]).dtype == np.float32
        for data, right in (
            (of(COSINES), np.eye(7)),
            (fewer, fewer["c"]),
            (of(COSINES), VALUES["c"]),
        ):
            wanted = np.linalg.solve(dense(**data), right)
            np.testing.assert_allclose(step(**data).solve(right), wanted, rtol=1e-9, atol=1e-12)
        tc.wait_for_compiler()
    assert len(functions(step)) == 3


@by_all
@pytest.mark.usefixtures("soon")
def test_threads_solve_with_one_function_at_once(backend: str) -> None:
    step, dense = (tc.compile(tc.hessian(COSINES, w), **o) for o in (
        {"structured": True, "backend": backend}, {}))  # fmt: skip

    def solved(seed: int) -> None:
        draw = np.random.default_rng(seed)
        for _ in range(20):
            at, right = draw.uniform(0.2, 1.2, 7), draw.normal(size=7)
            wanted = np.linalg.solve(dense(w=at, c=VALUES["c"]), right)
            found = step(w=at, c=VALUES["c"]).solve(right)
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-11)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(solved, range(16)))
    assert len(functions(step)) == 1


@by_all
@pytest.mark.usefixtures("soon")
def test_solutions_are_not_written_over_and_functions_pickle(backend: str) -> None:
    step, kept = tc.compile(tc.hessian(COSINES, w), structured=True, backend=backend), []
    for k in range(5):
        data = of(COSINES) | {"w": VALUES["w"] + k / 10}
        kept.append((step(**data).solve(VALUES["c"]), tc.hessian(COSINES, w)(**data)))
        tc.wait_for_compiler()
        step = pickle.loads(pickle.dumps(step)) if k == 2 else step
    for x, H in kept:
        np.testing.assert_allclose(H @ x, VALUES["c"], rtol=1e-9)
