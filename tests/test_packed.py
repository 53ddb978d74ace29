"""Packed triangles, diagonals with an offset, merged axes: linear maps that move entries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.functions import CompiledSteps
from tcalc.graph.extents import extent_of
from tcalc.graph.normal import bare
from tcalc.graph.products import is_zero
from tests.test_code import loaded

MODES = ("forward", "reverse", "cross-country")
la = tc.linalg
M, v = tc.var("M", (4, 4)), tc.var("v", 6)
RNG = np.random.default_rng(0)
DATA = {"M": RNG.normal(size=(4, 4)), "v": RNG.normal(size=6)}


def value(e: Any) -> Any:
    return e(**{name: DATA[name] for name in e.variables})


# --- triangles and diagonals ----------------------------------------------------------------------


def test_entries_are_those_of_the_reference() -> None:
    """The examples of MXNet's documentation."""
    a, x = tc.const([[1.0, 2.0], [3.0, 4.0]]), tc.const([1.0, 2.0, 3.0])
    for arguments, wanted in [((), [1, 3, 4]), ((0, False), [1, 2, 4]), ((1,), [2]), ((-1,), [3])]:
        np.testing.assert_array_equal(la.extracttrian(a, *arguments)(), wanted)
    for arguments, wanted in [
        ((), [[1, 0], [2, 3]]),
        ((0, False), [[1, 2], [0, 3]]),
        ((1,), [[0, 1, 2], [0, 0, 3], [0, 0, 0]]),
        ((-1,), [[0, 0, 0], [1, 0, 0], [2, 3, 0]]),
    ]:
        np.testing.assert_array_equal(la.maketrian(x, *arguments)(), wanted)


OFFSETS = range(-4, 5)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("offset", OFFSETS)
def test_triangles_go_there_and_back(offset: int, lower: bool) -> None:
    triangle = (np.tril if offset < 0 or (lower and not offset) else np.triu)(DATA["M"], offset)
    packed = la.extracttrian(M, offset, lower)
    whole = la.maketrian(packed, offset, lower)
    assert packed.shape == ((4 - abs(offset)) * (5 - abs(offset)) // 2,)
    np.testing.assert_array_equal(value(whole), triangle)
    np.testing.assert_array_equal(value(la.extractdiag(M, offset)), np.diagonal(DATA["M"], offset))
    row = la.makediag(la.extractdiag(M, offset), offset)
    np.testing.assert_array_equal(value(row), np.diag(np.diagonal(DATA["M"], offset), offset))
    mask = (triangle != 0).astype(float)
    wanted = np.einsum("ij,ik,jl->ijkl", mask, np.eye(4), np.eye(4))
    for mode in MODES:
        first = tc.jacobian(whole, M, mode=mode)
        np.testing.assert_array_equal(value(first), wanted)
        assert is_zero(bare(tc.jacobian(first, M, mode=mode)))


ADJOINT = {
    "triangle": (lambda e: la.extracttrian(e, -1), lambda e: la.maketrian(e, -1)),
    "upper": (lambda e: la.extracttrian(e, 0, False), lambda e: la.maketrian(e, 0, False)),
    "diagonal": (lambda e: la.extractdiag(e, 1), lambda e: la.makediag(e, 1)),
}


@pytest.mark.parametrize("name", ADJOINT)
def test_gradients_are_the_map_back(name: str) -> None:
    """The pullback is the transposed map as a node, and no tensor of more axes is made."""
    there, back = ADJOINT[name]
    packed = there(M)
    weights = tc.var("w", packed.shape)
    assert bare(tc.grad(tc.sum(packed * weights), M, mode="reverse")) is back(weights)
    whole = tc.var("W", (4, 4))
    gradient = tc.grad(tc.sum(back(weights) * whole), weights, mode="reverse")
    assert bare(gradient) is there(whole)


@pytest.mark.parametrize("modes", list(itertools.product(MODES, MODES)))
def test_hessians_through_a_triangle(modes: tuple[str, str]) -> None:
    f = tc.sum(tc.exp(la.extracttrian(M, -1)) * v * la.extracttrian(M, 1))
    h = value(tc.jacobian(tc.grad(f, M, mode=modes[0]), M, mode=modes[1]))
    below, above = np.tril_indices(4, -1), np.triu_indices(4, 1)
    wanted = np.zeros((4, 4, 4, 4))
    slope = np.exp(DATA["M"][below]) * DATA["v"]
    wanted[(*below, *below)] = slope * DATA["M"][above]
    wanted[(*below, *above)] = wanted[(*above, *below)] = slope
    np.testing.assert_allclose(h, wanted, atol=1e-14)


def test_batches_and_broadcasts() -> None:
    a = tc.var("A", ("b", 3, 3))
    data = RNG.normal(size=(5, 3, 3))
    found = la.extracttrian(a)(A=data)
    np.testing.assert_array_equal(found, data[(..., *np.tril_indices(3))])
    wanted = np.zeros_like(data)
    wanted[(..., *np.tril_indices(3))] = found
    np.testing.assert_array_equal(la.maketrian(la.extracttrian(a))(A=data), wanted)
    one = tc.broadcast_to(tc.var("A", (3, 3)), (5, 3, 3))
    same = np.broadcast_to(found[0], (5, 6))
    np.testing.assert_array_equal(la.extracttrian(one)(A=data[0]), same)


PACKED = ["n*(n+1)/2", "n*(n-1)/2", "(n-2)*(n-1)/2", "(2*n+1)*(n+1)", "(m+n)*(m+n-1)/2"]


@pytest.mark.parametrize("extent", PACKED)
def test_triangles_of_named_size_are_those_of_numbers(extent: str) -> None:
    named, sizes = tc.var("v", extent), {"m": 2, "n": 3}
    length = extent_of(named.shape[0], sizes)
    data, literal = np.arange(1.0, length + 1), tc.var("v", length)
    for offset, lower in [(0, True), (0, False), (-1, True), (2, False)]:
        whole, known = la.maketrian(named, offset, lower), la.maketrian(literal, offset, lower)
        wanted = known(v=data)
        assert extent_of(whole.shape[0], sizes) == len(wanted)
        assert la.extracttrian(whole, offset, lower).shape == named.shape
        for backend in ("numpy", "c"):
            found = tc.compile(tc.exp(whole), backend=backend)(v=data, **sizes)
            np.testing.assert_allclose(found, np.exp(wanted), rtol=1e-14)
        again = tc.parse(str(whole), v=extent)
        assert again is whole


@pytest.mark.parametrize("offset", [-2, -1, 0, 1])
def test_maps_of_named_extents_and_their_derivatives(offset: int) -> None:
    """As of extents that are numbers, to the third order in all modes."""
    named, data = tc.var("M", ("n", "n")), {"M": DATA["M"]}
    for there, back in [(la.extracttrian, la.maketrian), (la.extractdiag, la.makediag)]:

        def made(e: Any, there: Any = there, back: Any = back) -> Any:
            return tc.sum(tc.exp(back(there(e, offset) ** 2, offset)) * e)

        for mode, order in itertools.product(MODES, (1, 2, 3)):
            found = tc.derivative(made(named), named, order, mode)(data)
            wanted = tc.derivative(made(M), M, order, mode)(data)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        assert made(named)(data) == made(M)(data)
        assert tc.parse(str(there(named, offset)), M=("n", "n")) is there(named, offset)


RECTANGLES = [(2, 3), (3, 2), (4, 4), (1, 5), (0, 2)]


@pytest.mark.parametrize("shape", RECTANGLES)
def test_diagonals_of_rectangles(shape: tuple[int, int]) -> None:
    data = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    for A in (tc.var("A", ("m", "n")), tc.var("A", shape)):
        for offset in (-1, 0, 1) if min(shape) else (0,):
            wanted = np.diagonal(data, offset)
            np.testing.assert_array_equal(tc.diagonal(A, offset)(A=data), wanted)
            assert tc.trace(A, offset)(A=data) == wanted.sum()
            gradient = np.zeros(shape)
            rows, columns = np.arange(len(wanted)) + max(-offset, 0), np.arange(len(wanted))
            gradient[rows, columns + max(offset, 0)] = 2 * wanted
            f = tc.sum(tc.diagonal(A, offset) ** 2)
            for mode in MODES:
                np.testing.assert_array_equal(tc.derivative(f, A, 1, mode)(A=data), gradient)
            found = tc.parse_index(tc.to_index(tc.diagonal(A, offset)), A=A.shape)
            np.testing.assert_array_equal(found(A=data), wanted)
            H = tc.compile(tc.hessian(f, A), structured=True)(A=data)
            np.testing.assert_array_equal(H.diagonal(), 2.0 * (gradient != 0))


def test_extents_and_options_that_do_not_fit() -> None:
    named, square = tc.var("x", "n"), tc.var("A", ("n", "n"))
    for extent in ("n", "m*n", "3*n", "n*(n+1)/2+1", "min(m,n)"):
        with pytest.raises(tc.ShapeError, match=r"1, 3, 6, 10, … or n\*\(n\+1\)/2 entries"):
            la.maketrian(tc.var("v", extent))
    with pytest.raises(tc.ShapeError, match=r"n-3, which is -1|n\*\(n-5\)//2\+3"):
        la.extractdiag(square, 3)(A=np.ones((2, 2)))
    assert la.extractdiag(square).shape == ("n",)
    assert la.makediag(named).shape == ("n", "n")
    with pytest.raises(tc.ShapeError, match=r"1, 3, 6, 10, … .* entries, not 5"):
        la.maketrian(tc.var("x", 5))
    for name in ("extracttrian", "extractdiag"):
        with pytest.raises(tc.ShapeError, match=f"{name}: offset 5 is outside"):
            getattr(la, name)(M, 5)
        with pytest.raises(tc.ShapeError, match=f"{name} needs a square matrix"):
            getattr(la, name)(tc.var("A", (2, 3)))
    for name in ("maketrian", "makediag"):
        with pytest.raises(tc.ShapeError, match=f"{name} needs a vector"):
            getattr(la, name)(tc.var("c"))
    with pytest.raises(TypeError, match=r"extracttrian: offset=0.5"):
        la.extracttrian(M, 0.5)  # type: ignore[arg-type]


# --- Kronecker products ---------------------------------------------------------------------------

SHAPES = [
    ((2, 3), (4, 5)), ((3,), (2,)), ((3,), (2, 2)), ((2, 2), (3,)), ((1, 3), (2, 1)), ((1,), (1,)),
    ((2, 1, 3), (2, 2)), ((0, 2), (2, 2)), ((), (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_kronecker_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    p, q = tc.var("P", left), tc.var("Q", right)
    data = {"P": RNG.normal(size=left), "Q": RNG.normal(size=right)}
    e, wanted = tc.kron(p, q), np.kron(data["P"], data["Q"])
    assert e.shape == wanted.shape
    np.testing.assert_allclose(e(data), wanted, atol=1e-15)
    units = np.eye(data["P"].size).reshape(data["P"].size, *left)
    columns = [np.kron(unit, data["Q"]) for unit in units]
    jacobian = np.stack(columns, -1) if columns else np.zeros((*wanted.shape, 0))
    for mode in MODES:
        first = tc.jacobian(e, p, mode=mode)
        np.testing.assert_allclose(first(data), jacobian.reshape(wanted.shape + left), atol=1e-15)
        assert is_zero(bare(tc.jacobian(first, p, mode=mode)))
        mixed = tc.jacobian(first, q, mode=mode)(data)
        again = np.tensordot(mixed, data["Q"], len(right))
        np.testing.assert_allclose(again, first(data), atol=1e-14)


def test_kronecker_gradient_and_solve() -> None:
    """The vec identity: (A ⊗ B) vec X is vec of A X B'."""
    a, b = tc.var("A", (2, 3)), tc.var("B", (4, 2))
    data = {"A": RNG.normal(size=(2, 3)), "B": RNG.normal(size=(4, 2))}
    x = RNG.normal(size=(3, 2))
    w = RNG.normal(size=(2, 4))
    f = tc.sum((tc.kron(a, b) @ x.ravel()) * w.ravel())
    for mode in MODES:
        gradient = tc.grad(f, a, mode=mode)
        np.testing.assert_allclose(gradient(data), w @ data["B"] @ x.T, atol=1e-14)


def test_kronecker_products_of_named_dimensions() -> None:
    assert tc.kron(tc.var("A", ("m", 2)), tc.var("B", (2, "n"))).shape == ("2*m", "2*n")
    e = tc.kron(tc.var("A", ("m", 1, 2)), tc.var("B", (1, "n", 3)))
    assert e.shape == ("m", "n", 6)
    data = {"A": RNG.normal(size=(3, 1, 2)), "B": RNG.normal(size=(1, 2, 3))}
    np.testing.assert_allclose(e(data), np.kron(data["A"], data["B"]), atol=1e-15)
    assert tc.parse("kron(A, B)", A=(2, 3), B=(4, 5)).shape == (8, 15)


# --- reshape --------------------------------------------------------------------------------------

TARGETS = [
    ((2, 6), (3, 4)), ((12,), (2, 3, 2)), ((2, 3, 2), (-1,)), ((2, 3, 2), (1, 6, -1, 1)),
    ((1, 1), ()), ((), (1, 1)), ((0, 3), (5, 0)), ((0, 3), (-1, 3)), ((2, 3), (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "target"), TARGETS, ids=str)
def test_reshape_of_numbers(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    x, data = tc.var("x", shape), RNG.normal(size=shape)
    e, wanted = tc.reshape(x, target), data.reshape(target)
    assert e.shape == wanted.shape
    np.testing.assert_array_equal(e(x=data), wanted)
    assert bare(x.reshape(*target) if target else x.reshape(())) is e
    np.testing.assert_array_equal(x.ravel()(x=data), data.ravel())
    for mode in MODES:
        jacobian = tc.jacobian(e, x, mode=mode)(x=data)
        unit = np.eye(data.size).reshape(wanted.shape + shape)
        np.testing.assert_array_equal(jacobian, unit)
        gradient = tc.grad(tc.sum(tc.exp(e)), x, mode=mode)(x=data)
        np.testing.assert_allclose(gradient, np.exp(data), rtol=1e-14)


def test_reshape_between_named_dimensions() -> None:
    x = tc.var("x", (2, 3, "m", 1, 4, "n"))
    data = RNG.normal(size=(2, 3, 5, 1, 4, 2))
    for target, sizes in [
        ((6, "m", 2, 2, "n"), (6, 5, 2, 2, 2)),
        ((3, 2, 1, "m", 4, "n", 1), (3, 2, 1, 5, 4, 2, 1)),
        ((-1, "m", 4, "n"), (6, 5, 4, 2)),
        ((2, 3, -1, 4, "n"), (2, 3, 5, 4, 2)),
        ((6, "n", 4, "m"), (6, 2, 4, 5)),
        ((24, "m", "n"), (24, 5, 2)),
        ((-1,), (240,)),
        (("3*m", "8*n"), (15, 16)),
        (("2*n", -1), (4, 60)),
        ((-1, "m*n"), (24, 10)),
    ]:
        e = x.reshape(target)
        assert len(e.shape) == len(sizes)
        np.testing.assert_array_equal(e(x=data), data.reshape(sizes))
    for wrong in ((6, "k", 4, "n"), ("m", "n"), ("m*n", 23), (-1, "k"), (-1, "m*m"), (-1, 5)):
        with pytest.raises(tc.ShapeError, match=r"numbers of entries differ|do not divide"):
            x.reshape(wrong)
    assert x.ravel().shape == ("24*m*n",)


@pytest.mark.parametrize(
    ("target", "words"),
    [((7,), "numbers of entries differ"), ((-1, 4), "do not divide"), ((-1, -1), "only one"),
     ((-2, 3), "negative"), ((-1, 0), "do not divide")],
)  # fmt: skip
def test_reshapes_that_do_not_fit(target: tuple[int, ...], words: str) -> None:
    with pytest.raises(tc.ShapeError, match=words):
        tc.var("x", (2, 3)).reshape(target)


def test_printed_forms(tmp_path: Any) -> None:
    assert str(la.extracttrian(M, -1)) == "extracttrian(M, -1, True)"
    assert tc.to_latex(la.extracttrian(M)) == r"\operatorname{extracttrian}_{0, \mathrm{True}}(M)"
    assert tc.to_latex(la.makediag(v, 2)) == r"\operatorname{makediag}_{2}(v)"
    assert str(M.reshape(2, 8)) == "reshape(M, (2, 8))"
    for e in (
        la.extracttrian(M, 1),
        la.maketrian(v, -2),
        la.maketrian(la.extracttrian(M)),
        la.extractdiag(M, 1),
        la.makediag(v, -2),
        tc.kron(M, v),
        M.reshape(2, -1),
        tc.grad(tc.sum(tc.kron(M, M) ** 2), M),
    ):
        f = loaded(tc.to_code(e, "numpy"), tmp_path)
        given = [DATA[name] for name in e.variables]
        np.testing.assert_allclose(f(*given), value(e), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("offset", OFFSETS[1:-1])
def test_c_moves_the_same_entries(
    offset: int, lower: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of batches, and of views that lie otherwise, without a step that is NumPy's."""
    many = tc.var("T", (2, 3, 4, 4))
    packed = la.extracttrian(tc.exp(many).mT, offset, lower)
    whole = la.maketrian(2 * packed, offset, lower) + 1
    step = tc.compile([packed, whole], backend="c")
    data = RNG.normal(size=(2, 3, 4, 4)).astype(dtype)
    step(T=data)
    left: list[int] = []
    monkeypatch.setattr(CompiledSteps, "_step", lambda self, v, number: left.append(number))
    found, back = step(T=data)
    assert not left
    triangle = (
        np.tri(4, k=offset)
        if offset < 0 or (lower and not offset)
        else np.triu(np.ones((4, 4)), offset)
    )
    turned = np.exp(data).swapaxes(-1, -2)
    rtol = 1e-14 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(found, turned[..., triangle > 0], rtol=rtol)
    np.testing.assert_allclose(back, 1 + 2 * turned * triangle, rtol=rtol)
