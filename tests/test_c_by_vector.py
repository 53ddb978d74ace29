"""Matrices by vectors in C: summed in the loops that make the entries, by no routine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.functions import CompiledSteps
from tcalc.backends.c.tiles import CompiledTiles
from tests.shared import plan_for_machine
from tests.test_tiny_tiles import TINY

A, B = tc.var("A", ("n", "m")), tc.var("B", ("n", "m"))
T, S = tc.var("T", ("b", "n", "m")), tc.var("S", ("b", "m", "n"))
u, v, W = tc.var("u", "n"), tc.var("v", "m"), tc.var("W", ("b", "n"))
#: The expression, and what it is by NumPy: entries that are made there, times a vector.
PRODUCTS: dict[str, tuple[Any, Callable[[dict[str, Any]], Any]]] = {
    "rows": (tc.sin(A * B) @ v, lambda d: np.sin(d["A"] * d["B"]) @ d["v"]),
    "columns": (u @ tc.sin(A * B), lambda d: d["u"] @ np.sin(d["A"] * d["B"])),
    "turned": (tc.sin(A * B).T @ u, lambda d: np.sin(d["A"] * d["B"]).T @ d["u"]),
    "a vector that is made too": (
        tc.sin(A) @ tc.cos(v), lambda d: np.sin(d["A"]) @ np.cos(d["v"]),
    ),
    "rows of a batch": (
        tc.einsum("bnm,bn->bm", tc.sin(T), W),
        lambda d: np.einsum("bnm,bn->bm", np.sin(d["T"]), d["W"]),
    ),
    "columns of a batch": (
        tc.einsum("bnm,m->bn", tc.sin(T), v),
        lambda d: np.einsum("bnm,m->bn", np.sin(d["T"]), d["v"]),
    ),
    "with what is read across": (
        tc.einsum("bnm,m->bn", T * S.transpose((0, 2, 1)), v),
        lambda d: np.einsum("bnm,bmn,m->bn", d["T"], d["S"], d["v"]),
    ),
    "weighted squares of differences": (
        (A[:, None, :] - B[None, :, :]) ** 2 @ v,
        lambda d: ((d["A"][:, None, :] - d["B"][None, :, :]) ** 2) @ d["v"],
    ),
}  # fmt: skip


def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The C that is written from here on."""
    written: list[str] = []
    for kind in (CompiledSteps, CompiledTiles):
        text = kind.text

        def kept(self: Any, *given: Any, text: Any = text) -> str | None:
            found: str | None = text(self, *given)
            written.append(found or "left to Python")
            return found

        monkeypatch.setattr(kind, "text", kept)
    return written


@pytest.mark.parametrize("tiny", [False, True], ids=["whole", "tiles"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", [(2, 33, 47), (3, 40, 5), (2, 6, 70), (1, 9, 8)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_entries_are_summed_where_they_are_made(
    name: str, sizes: tuple[int, int, int], dtype: Any, tiny: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    b, n, m = sizes
    rng = np.random.default_rng(n)
    shapes = {"A": (n, m), "B": (n, m), "T": (b, n, m), "S": (b, m, n), "u": n, "v": m, "W": (b, n)}
    e, by_numpy = PRODUCTS[name]
    data = {k: rng.normal(size=shapes[k]).astype(dtype) for k in e.variables}
    if tiny:
        plan_for_machine(monkeypatch, **TINY)
    written = texts(monkeypatch)
    found = tc.compile(e, backend="c")(**data)
    wanted = by_numpy({k: a.astype(float) for k, a in data.items()})
    size = max(1.0, np.abs(wanted).max())
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, atol=size * (1e-13 if dtype is np.float64 else 1e-5))
    assert written
    assert not [text for text in written if " product(" in text or "left" in text]


def test_what_is_only_read_is_left_to_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    written = texts(monkeypatch)
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(90, 80)), rng.normal(size=80)
    np.testing.assert_allclose(tc.compile(A @ v, backend="c")(A=a, v=x), a @ x, atol=1e-12)
    assert "product(" in "".join(written)


def test_distances_of_short_rows_have_one_plan() -> None:
    """By inner products as by differences: the same steps on the way to the same numbers."""
    scaled = A * tc.exp(v)
    lengths = tc.sum(scaled * scaled, axis=1)
    gram = tc.exp(2 * scaled @ scaled.T - lengths[:, None] - lengths)
    apart = tc.exp(-tc.sum((scaled[:, None] - scaled) ** 2, axis=2))
    for m, alike in ((4, True), (40, False)):
        kinds = [
            {step.kind for step in tc.compile(e, backend="c").plan_for(A=(500, m), v=m).steps}
            for e in (gram, apart)
        ]
        assert ("gram" in kinds[0] or "dot" in kinds[0]) is not alike
        assert "gram" not in kinds[1]
