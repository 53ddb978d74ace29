"""Slices of slices, what stands between zeros, and differences of differences beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.factors import indicates
from tcalc.graph.nodes import Expr, postorder

N = 12


def indicators(e: Expr) -> int:
    return sum(map(indicates, postorder([e])))


def cut(rng: np.random.Generator, n: int) -> Any:
    """A slice of at least one entry of an axis of n entries, or how many zeros go around it."""
    if rng.random() < 0.4:
        return tuple(int(k) for k in rng.integers(0, 3, size=2))
    start = int(rng.integers(0, n))
    stop = int(rng.integers(start + 1, n + 1))
    if rng.random() < 0.2:
        return slice(None, None, -1)
    return slice(start, stop - n or None, int(rng.choice([1, 1, 1, 2])))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("extent", ["n", N], ids=["named", "literal"])
def test_chains_of_slices_and_zeros_are_those_of_numpy(seed: int, extent: Any) -> None:
    rng = np.random.default_rng(seed)
    x = tc.var("x", extent)
    data = rng.normal(size=N)
    e, wanted, matrix = x + 0, data, np.eye(N)
    for _ in range(rng.integers(2, 6)):
        how = cut(rng, len(wanted))
        if isinstance(how, tuple):
            e, wanted = tc.pad(e, (how,)), np.pad(wanted, how)
            matrix = np.pad(matrix, (how, (0, 0)))
        else:
            if how.step not in (None, 1, -1) and isinstance(extent, str):
                how = slice(how.start, how.stop)
            e, wanted, matrix = e[how], wanted[how], matrix[how]
    np.testing.assert_array_equal(e(x=data), wanted)
    np.testing.assert_array_equal(tc.jacobian(e, x)(x=data), matrix)
    found = tc.grad(tc.sum(tc.exp(e)), x)(x=data)
    np.testing.assert_allclose(found, matrix.T @ np.exp(wanted), rtol=1e-13, atol=1e-14)


def test_a_slice_of_a_slice_is_a_slice() -> None:
    x, u = tc.var("x", "n"), tc.var("u", ("n", "m"))
    same = {
        "x[2:]": x[1:][1:],
        "x[1:-1]": x[1:][:-1],
        "x[2::2]": x[::2][1:],
        "x[-3::-1]": x[:-1][::-1][1:],
        "x[3:-2]": x[1:-1][1:][1:-1],
        "pad(x, 1, 2)": tc.pad(tc.pad(x, ((1, 0),)), ((0, 2),)),
        "pad(x, 2, 0)": tc.pad(x, ((2, 1),))[:-1],
        "u[2:, 1:-1]": u[1:][:, 1:][1:, :-1],
    }
    for text, e in same.items():
        assert str(e) == text
    assert tc.pad(x, ((2, 1),))[2:-1] is x
    assert x[::-1][::-1] is x
    # The ends of these are not known to be inside.
    for e in (tc.pad(x[1:], ((1, 0),)), tc.pad(x, ((3, 0),))[1:-1][1:]):
        assert indicators(e) > 0


def test_entries_outside_are_refused_as_before() -> None:
    x = tc.var("x", "n")
    with pytest.raises(tc.ShapeError):
        x[1:][2:](x=np.zeros(2))
    with pytest.raises(IndexError, match=r"x\[2:4\]"):
        x[2:4][1:](x=np.zeros(3))
    assert x[2:4][1:](x=np.arange(4.0)) == [3]


def test_sums_of_what_stands_between_zeros() -> None:
    x = tc.var("x", "n")
    assert tc.sum(tc.pad(x, ((1, 2),))) is tc.sum(x)
    assert str(tc.grad(tc.sum(tc.pad(x, ((1, 2),))), x)) == "vector(1, n)"


# --- differences ----------------------------------------------------------------------------------


def differences(x: Any, order: int) -> Any:
    for _ in range(order):
        x = x[1:] - x[:-1]
    return x


FORMULAS = {
    2: "x[2:] - 2*x[1:-1] + x[:-2]",
    3: "x[3:] - 3*x[2:-1] + 3*x[1:-2] - x[:-3]",
    4: "x[4:] - 4*x[3:-1] + 6*x[2:-2] - 4*x[1:-3] + x[:-4]",
}


@pytest.mark.parametrize("order", FORMULAS)
@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country", "auto"])
def test_derivatives_of_differences(order: int, mode: str) -> None:
    x, w = tc.var("x", "n"), tc.var("w", "n")
    d = differences(x, order)
    f = tc.sum(tc.exp(d)) + tc.sum(differences(w, order) * d**2)
    rng = np.random.default_rng(order)
    data = {"x": rng.normal(size=N), "w": rng.normal(size=N)}
    D = np.diff(np.eye(N), order, axis=0)
    values, weights = D @ data["x"], D @ data["w"]
    found = tc.compile([tc.derivative(f, x, k, mode) for k in range(3)])(**data)
    wanted = [
        np.sum(np.exp(values)) + weights @ values**2,
        D.T @ (np.exp(values) + 2 * weights * values),
        D.T @ np.diag(np.exp(values) + 2 * weights) @ D,
    ]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(("order", "text"), FORMULAS.items())
def test_formulas_of_differences(order: int, text: str) -> None:
    x = tc.var("x", "n")
    d = differences(x, order)
    assert str(d) == text
    matrix = text.replace("x[", "eye(n)[")
    assert str(tc.jacobian(d, x)) == matrix
    assert str(tc.grad(tc.sum(tc.exp(d)), x)) == f"({matrix})'*exp({text})"


@pytest.mark.parametrize("order", FORMULAS)
def test_hessians_of_differences_are_bands(order: int) -> None:
    x = tc.var("x", "n")
    rng = np.random.default_rng(order)
    for f in (tc.sum(differences(x, order) ** 2), tc.sum(tc.exp(differences(x, order)))):
        h = tc.hessian(f + tc.sum(x**4), x)
        at = rng.normal(size=200) / 10
        held = tc.compile(h, structured=True)(x=at)
        assert held.nbytes < 30 * 8 * at.size
        dense = np.array(h(x=at))
        np.testing.assert_allclose(held.todense(), dense, rtol=1e-12, atol=1e-12)
        assert np.count_nonzero(dense[0]) == order + 1
        b = rng.normal(size=200)
        np.testing.assert_allclose(held.solve(b), np.linalg.solve(dense, b), rtol=1e-8, atol=1e-8)


def test_values_stay_differences_of_what_is_close() -> None:
    """Multiples of large numbers would be rounded, where their differences are exact."""
    x = tc.var("x", "n")
    at = 1e15 + np.array([1.0, 2.0, 4.0, 7.0, 13.0])
    third = differences(x, 3)
    wanted = np.diff(at, 3)
    np.testing.assert_array_equal(third(x=at), wanted)
    value, gradient = tc.compile(tc.value_and_grad(tc.sum(third**2), x))(x=at)
    assert value == np.sum(wanted**2)
    np.testing.assert_array_equal(gradient, 2 * np.diff(np.eye(5), 3, axis=0).T @ wanted)


def laplacian(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


def test_the_square_of_a_laplacian_has_thirteen_points() -> None:
    u = tc.var("u", (8, 7))
    twice = laplacian(laplacian(u))
    assert str(twice).count("u[") == 13
    rng = np.random.default_rng(0)
    at, weights = rng.normal(size=(8, 7)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(twice(u=at), laplacian(laplacian(at)), rtol=1e-13, atol=1e-13)
    gradient = tc.grad(tc.sum(weights * twice), u)
    assert str(gradient).count("einsum") == str(gradient).count("#") == 0
    units = np.eye(at.size).reshape(-1, *at.shape)
    wanted = [np.sum(weights * laplacian(laplacian(unit))) for unit in units]
    np.testing.assert_allclose(gradient(u=at).ravel(), wanted, rtol=1e-12, atol=1e-12)


# --- what pads and convolves ----------------------------------------------------------------------


@pytest.mark.parametrize("names", [(4, 6), ("n", "m")], ids=["literal", "named"])
@pytest.mark.parametrize("widths", [1, (2, 1), (0, 3), ((1, 2), (3, 0))], ids=str)
@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
def test_margins_of_entries_are_those_of_numpy(mode: str, widths: Any, names: Any) -> None:
    x, at = tc.var("x", names), np.random.default_rng(0).normal(size=(4, 6))
    e = np.pad(x, widths, mode=mode)
    np.testing.assert_array_equal(e(x=at), np.pad(at, widths, mode=mode))
    units = np.eye(at.size).reshape(-1, *at.shape)
    wanted = np.stack([np.pad(unit, widths, mode=mode) for unit in units], axis=-1)
    found = tc.jacobian(e, x)(x=at)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def test_margins_that_are_too_wide_are_refused() -> None:
    with pytest.raises(tc.ShapeError, match="4 entries for a margin, of an axis of extent 3"):
        tc.pad(tc.var("x", 3), 3, "reflect")
    with pytest.raises(IndexError, match="extent 3"):
        tc.pad(tc.var("x", "n"), 4, "wrap")(x=np.zeros(3))
    with pytest.raises(tc.UnsupportedError, match="'mean'; there are 'constant', 'edge', 'wrap'"):
        tc.pad(tc.var("x", "n"), 1, "mean")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_kernels_over_named_extents(name: str, mode: str, count: int) -> None:
    function = getattr(np, name)
    x, k = tc.var("x", "n"), tc.var("k", count)
    rng = np.random.default_rng(count)
    data = {"x": rng.normal(size=9), "k": rng.normal(size=count)}
    units = np.eye(9)
    for one, other in (("x", "k"), ("k", "x")):
        e = function({"x": x, "k": k}[one], {"x": x, "k": k}[other], mode)
        wanted = function(data[one], data[other], mode)
        np.testing.assert_allclose(e(**data), wanted, rtol=1e-13, atol=1e-14)
        by_x = [function({**data, "x": u}[one], {**data, "x": u}[other], mode) for u in units]
        np.testing.assert_allclose(tc.jacobian(e, x)(**data), np.transpose(by_x), atol=1e-14)
    with pytest.raises(tc.ShapeError, match="kernel whose extents are numbers, not m"):
        function(x, tc.var("y", "m"), mode)


def test_zeros_around_are_shifts() -> None:
    x = tc.var("x", "n")
    e = tc.pad(x, ((1, 1),))
    assert str(e[2:]) == "pad(x[1:], 0, 1)"
    assert str(tc.jacobian(e[2:], x)) == "eye(n)[:-1]'*eye(n)[1:]"
    at = np.arange(5.0)
    np.testing.assert_array_equal(e[2:](x=at), [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(tc.jacobian(e[2:], x)(x=at), np.eye(5, k=1))
    second = e[2:] - 2 * x + e[:-2]
    held = tc.compile(tc.hessian(tc.sum(second**2), x), structured=True)(x=np.zeros(300))
    laplacian = np.eye(300, k=1) - 2 * np.eye(300) + np.eye(300, k=-1)
    np.testing.assert_array_equal(held.todense(), 2 * laplacian @ laplacian)
    assert held.nbytes < 30_000


def test_one_column_beside_zeros_is_written() -> None:
    w = tc.var("w", (2, 2), diagonal=True)
    column = w[:, 0:1]
    e = tc.concatenate([column, column])
    for derivative in (e, tc.grad(tc.sum(e**2), w), tc.jacobian(e, w)):
        again = tc.parse(str(derivative), w=w)
        at = np.diag([1.5, -2.0])
        np.testing.assert_array_equal(again(w=at), np.asarray(derivative(w=at)))


def test_rows_that_are_picked_after_a_shift_are_written() -> None:
    u = tc.var("u", ("n", "m"))
    e = np.roll(u, 1, axis=0)[np.array([0, 0])]
    for derivative in (e, tc.jacobian(e, u)):
        text = str(derivative)
        again = tc.parse(text, u=u)
        at = np.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(again(u=at), np.asarray(derivative(u=at)))


def around(x: Any, k: int, **axis: Any) -> Any:
    return np.roll(x, k, **axis)


def test_shifts_in_a_circle_are_written_as_such() -> None:
    x, u = tc.var("x", "n"), tc.var("u", ("n", "m"))
    second = around(x, 1) + around(x, -1) - 2 * x
    texts = {
        "roll(x, 1)": around(x, 1),
        "roll(x, 1) + roll(x, -1) - 2*x": second,
        "roll(u, 1, axis=0)": around(u, 1, axis=0),
        "u + roll(u, -1, axis=1)": around(u, -1, axis=1) + u,
        "x + 3*roll(x, 1)": 3 * around(x, 1) + x,
        "roll(eye(n), 1, axis=0)": tc.jacobian(around(x, 1), x),
        "roll(x, 1) + roll(x, -1)": tc.grad(tc.sum(x * around(x, 1)), x),
        "roll(exp(roll(x, -1) - x), 1) - exp(roll(x, -1) - x)": tc.grad(
            tc.sum(tc.exp(around(x, -1) - x)), x
        ),
    }
    at = np.random.default_rng(0).normal(size=(5, 4))
    for text, e in texts.items():
        assert str(e) == text
        again = tc.parse(text, x=x, u=u)
        assert str(again) == text
        sizes = {**{v: {"x": at[:, 0], "u": at}[v] for v in e.variables}, "n": 5}
        np.testing.assert_allclose(again(sizes), e(sizes), rtol=1e-13)
    np.testing.assert_array_equal(tc.parse("roll(x, -1)", x=x)(x=at[:, 0]), np.roll(at[:, 0], -1))
    np.testing.assert_array_equal(tc.parse("roll(u, 1, axis=1)", u=u)(u=at), np.roll(at, 1, axis=1))


@pytest.mark.parametrize("text", ["roll(x)", "roll(x, n)", "roll(u, 1)", "roll(x, 1, 2)"])
def test_how_far_a_shift_goes_is_a_number(text: str) -> None:
    with pytest.raises(
        tc.ParseError, match=r"a whole number, and the axis|a parameter by its name"
    ):
        tc.parse(text, x="n", u=("n", "m"))
