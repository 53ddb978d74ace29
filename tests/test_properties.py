"""Properties of variables: what follows from a row of their table, and that a row is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.graph.properties import PROPERTIES, Property, sample, subspace
from tcalc.graph.subspaces import Slot, projected

#: Properties that tcalc does not have: each is these words and no more.
TOYS = (
    Property("skew", mirror=-1),
    Property("hollow", free="!="),
    Property("strictly_upper", free="<"),
    Property("stochastic", test=lambda a: bool((abs(a.sum(-1) - 1) < 1e-9).all()),
             inside=lambda a: abs(a) / abs(a).sum(-1, keepdims=True),
             step=lambda v, a: v - v.mean(-1, keepdims=True), nonnegative=True),
)  # fmt: skip
CASES = [*[(name,) for name in PROPERTIES], *[(toy.name,) for toy in TOYS]]
CASES += [
    ("symmetric", "lower"), ("positive_definite", "diagonal"), ("symmetric", "hollow"),
    ("lower", "nonnegative"), ("symmetric", "skew"), ("symmetric", "nonnegative"),
]  # fmt: skip
N = 4
RNG = np.random.default_rng(5)
B = tc.var("B", ("n", "n"))


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for toy in TOYS:
        monkeypatch.setitem(PROPERTIES, toy.name, toy)


@pytest.fixture(params=CASES, ids="+".join)
def names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


def declared(names: tuple[str, ...]) -> tc.Expr:
    return tc.var("V", ("n", "n"), **dict.fromkeys(names, True))


def function(v: tc.Expr) -> tc.Expr:
    """Neither symmetric in its variable, nor its Hessian a Kronecker product."""
    return tc.sum(tc.sin(v * B)) + tc.sum((v @ B) ** 2) + 3 * tc.sum(v**2)


def data_of(names: tuple[str, ...], shape: tuple[int, ...] = (N, N)) -> dict[str, Any]:
    v = tc.var("V", shape, **dict.fromkeys(names, True))
    return {"V": sample(RNG.normal(size=shape), v.properties), "B": RNG.normal(size=(N, N))}


def inside(a: np.ndarray, v: Any) -> np.ndarray:
    onto = subspace(v.properties)
    return projected(a, Slot(a.ndim - 2, a.ndim - 1, onto)) if onto else a


def basis(v: Any) -> np.ndarray:
    """Orthonormal columns: the image of the projector, which must be one."""
    units = np.eye(N * N).reshape(N * N, N, N)
    projector = inside(units, v).reshape(N * N, N * N)
    np.testing.assert_allclose(projector, projector.T)
    np.testing.assert_allclose(projector @ projector, projector)
    values, vectors = np.linalg.eigh(projector)
    return vectors[:, values > 0.5]


def test_samples_have_the_property_and_batches_of_them(names: tuple[str, ...]) -> None:
    for shape in ((N, N), (3, N, N)):
        tc.compile(tc.sum(tc.var("V", shape, **dict.fromkeys(names, True))))(data_of(names, shape))


def test_data_without_it_are_refused(names: tuple[str, ...]) -> None:
    wrong = -0.5 - np.arange(N * N).reshape(N, N)
    words = "|".join([f"declared {name.replace('_', ' ')}, but|{name} variable" for name in names])
    with pytest.raises((ValueError, TypeError), match=words):
        tc.compile(tc.sum(declared(names)))(V=wrong)


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_agree_with_differences(names: tuple[str, ...], order: int) -> None:
    v = declared(names)
    if "integer" in names:
        with pytest.raises(TypeError, match="integer"):
            tc.derivative(function(v), v, order)
        return
    assert tc.check(function(v), v, order).passed
    data = data_of(names)
    found = tc.derivative(function(v), v, order)
    value, shape = found(data), (N, N) * order
    np.testing.assert_allclose(value, inside(value, v), atol=1e-12)
    # as an operand of an expression, where the projection is an expression too
    np.testing.assert_allclose((found + tc.zeros(("n", "n") * order))(data), value, atol=1e-9)
    assert value.shape == shape


def test_solves_are_inside_the_subspace(names: tuple[str, ...]) -> None:
    if "integer" in names:
        return
    v, data = declared(names), data_of(names)
    columns = basis(v)
    H = tc.hessian(function(v), v)
    held = tc.compile(H, structured=True)(data)
    plain = tc.var("V", ("n", "n"))
    whole = tc.hessian(function(plain), plain)(data).reshape(N * N, N * N)
    small, g = columns.T @ whole @ columns, RNG.normal(size=(N, N))
    expected = columns @ np.linalg.solve(small, columns.T @ g.ravel())
    np.testing.assert_allclose(held.solve(g).ravel(), expected, 1e-8, 1e-9)
    np.testing.assert_allclose(held.logdet(), np.linalg.slogdet(small)[1], 1e-9, 1e-9)
    matrix = columns @ small @ columns.T
    np.testing.assert_allclose(held.tomatrix(), matrix, 1e-9, 1e-9)
    np.testing.assert_allclose(held.tosparse().toarray(), matrix, 1e-9, 1e-9)
    np.testing.assert_allclose(held @ g, (matrix @ g.ravel()).reshape(N, N), 1e-9, 1e-9)


@pytest.mark.parametrize(("shape", "order"), [(("n", "n"), 1), (("n", "n"), 2), ((2, 3, 3), 1)])
def test_printed_source_checks_itself(
    names: tuple[str, ...], shape: tuple[Any, ...], order: int, tmp_path: Path
) -> None:
    v = tc.var("V", shape, **dict.fromkeys(names, True))
    f = function(v) if len(shape) == 2 else tc.sum(tc.sum(tc.exp(v), axis=2) ** 2)
    e = f if "integer" in names else tc.derivative(f, v, order)
    path = tmp_path / "checked.py"
    path.write_text(tc.to_code(e, check=True))
    result = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_command_line_knows_it(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["derive", "sum(B)", "--var", "B=n,n:" + ",".join(names)]) == 0
    assert "sum(B)" in capsys.readouterr().out
    assert main(["derive", "sum(B)", "--var", "B=n,n:unheard"]) != 0
    told = capsys.readouterr().err
    assert all(name in told for name in names)


def test_transposes_that_are_the_matrix_itself() -> None:
    for name, same in (("symmetric", True), ("diagonal", True), ("skew", False), ("hollow", False)):
        v = declared((name,))
        assert (v.T is v) is same


def test_documentation_lists_the_rows() -> None:
    toys = {toy.name for toy in TOYS}
    assert all(f"`{name}`" in (tc.var.__doc__ or "") for name in PROPERTIES.keys() - toys)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [3, 63, 64, 65, 130, 200])
def test_matrices_of_any_size_are_looked_at_whole(n: int, dtype: Any) -> None:
    """One entry is off by rounding or by more, in any block; an eigenvalue is below zero."""
    rng = np.random.default_rng(n)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    given = ((q * np.linspace(1, 2, n)) @ q.T).astype(dtype)
    given = (given + given.T) / 2
    near = given.copy()
    near[n - 1, 0] += np.finfo(dtype).eps
    within = [given, np.asfortranarray(given), np.stack([given, near]), near]
    gone = ((q * np.linspace(0, 2, n)) @ q.T - 0.01 * np.eye(n)).astype(dtype)
    outside = [(gone + gone.T) / 2, np.stack([given, -given]), given - 3 * np.eye(n, dtype=dtype)]
    for at in ((0, n - 1), (n - 1, 0), (n // 2, n // 2 - 1), (n - 1, n - 2)):
        apart, unknown = given.copy(), given.copy()
        apart[at] += 0.01
        unknown[at] = np.nan
        outside += [apart, unknown]
    for a in within:
        V = tc.var("V", a.shape, positive_definite=True)
        kept = a.copy()
        np.testing.assert_allclose(tc.compile(tc.sum(V))(V=a), a.sum(dtype=float), rtol=1e-3)
        np.testing.assert_array_equal(a, kept)
    for a in outside:
        V = tc.var("V", a.shape, positive_definite=True)
        with pytest.raises(ValueError, match="V is declared positive definite"):
            tc.compile(tc.sum(V))(V=a)
