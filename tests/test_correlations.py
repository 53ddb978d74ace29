"""The kernel of sums over overlapping windows against einsum, on every way that it goes."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.numpy import correlations as kernel

Array = np.ndarray
windows_of = np.lib.stride_tricks.sliding_window_view
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def _agree(found: Array, expected: Array) -> None:
    bound = 1e-4 if found.dtype == SINGLE else 1e-11
    np.testing.assert_allclose(found, expected, bound, bound * np.abs(expected).max(initial=0))


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("n", "m"), [(5, 1), (5, 5), (400, 12), (385, 13), (1000, 64), (1000, 300), (40000, 20)]
)
def test_windows_of_a_vector(n: int, m: int, backward: bool, dtype: np.dtype) -> None:
    rng = np.random.default_rng(n + m)
    line, weights = (rng.standard_normal(k).astype(dtype) for k in (n, m))
    held = windows_of(line, m)
    held = held[:, ::-1] if backward else held
    out = np.empty(len(held), dtype)
    kernel._over_few(held.T, weights, out, 1)
    _agree(out, held @ weights)
    errors = rng.standard_normal(len(held)).astype(dtype)
    lags = np.empty(m, dtype)
    kernel._over_many(held.T, errors, lags, 1)
    _agree(lags, errors @ held)


def test_entries_that_are_not_finite_stay_in_their_windows() -> None:
    rng = np.random.default_rng(0)
    line, weights = rng.standard_normal(2000), rng.standard_normal(40)
    line[77], line[900] = np.inf, np.nan
    held = windows_of(line, 40)
    out = np.empty(len(held))
    kernel._over_few(held.T, weights, out, 1)
    bad = np.flatnonzero(~np.isfinite(out))
    assert bad.tolist() == [*range(77 - 39, 78), *range(900 - 39, 901)]


@pytest.mark.parametrize("step", [1, 3])
def test_windows_of_an_image_with_channels(step: int) -> None:
    rng = np.random.default_rng(step)
    image, weights = rng.standard_normal((3, 40, 50)), rng.standard_normal((4, 3, 5, 2))
    held = windows_of(image, (5, 2), (1, 2))[:, ::step, ::step].transpose(0, 3, 4, 1, 2)
    out = np.empty((4, *held.shape[3:]))
    kernel._over_few(held, weights, out, 3)
    _agree(out, np.einsum("qabij,oqab->oij", held, weights))
    errors, grad = rng.standard_normal(out.shape), np.empty(weights.shape)
    kernel._over_many(held, errors, grad, 3)
    _agree(grad, np.einsum("qabij,oij->oqab", held, errors))
    curvature = np.empty((3, 5, 2, 3, 5, 2))
    kernel._over_many(held, held, curvature, 3)
    _agree(curvature, np.einsum("qabij,pcdij->pcdqab", held, held))
    _agree(curvature, np.einsum("pcdqab->qabpcd", curvature))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("even", [True, False])
def test_inner_products_of_windows(same: bool, even: bool) -> None:
    """Where one window is much smaller than another, digits would cancel in the quick way."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal(3000)
    if not even:
        one[:3] = 1e9
    other = one if same else rng.standard_normal(2997)
    x, y = windows_of(one, 20).T, windows_of(other, 20 if same else 17).T
    out = np.empty((len(y), len(x)))
    assert kernel._by_lags(x, y, out.copy()) is even
    kernel._over_many(x, y, out, 1)
    for k, row in enumerate(out):
        np.testing.assert_allclose(row, x @ y[k], 1e-9, 1e-10)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("turned", [(), (-2,), (-2, -1)])
@pytest.mark.parametrize("left", [(), (1,), (3,), (2, 2)])
@pytest.mark.parametrize(
    ("rows", "columns", "size"),
    [(41, 70, (3, 3)), (40, 64, (2, 5)), (6, 900, (6, 1)), (5, 40, (2, 2))],
)
def test_windows_that_slide_over_lines(
    rows: int, columns: int, size: tuple[int, int], left: tuple[int, ...], turned: tuple[int, ...],
    dtype: np.dtype, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(kernel, "LINES", 2000)
    rng = np.random.default_rng(rows)
    image = rng.standard_normal((rows, columns)).astype(dtype)
    weights = rng.standard_normal((*left, *size)).astype(dtype)
    held = np.flip(windows_of(image, size), turned).transpose(2, 3, 0, 1)
    out = np.empty((*left, *held.shape[2:]), dtype)
    kernel._over_few(held, weights, out, 2)
    _agree(out, np.einsum("abij,...ab->...ij", held.astype(float), weights).astype(dtype))
    errors, grad = rng.standard_normal(out.shape).astype(dtype), np.empty(weights.shape, dtype)
    kernel._over_many(held, errors, grad, 2)
    _agree(grad, np.einsum("abij,...ij->...ab", held.astype(float), errors).astype(dtype))


def test_entries_that_are_not_finite_stay_in_their_windows_of_an_image() -> None:
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((60, 70)), rng.standard_normal((3, 3))
    image[20, 30], image[44, 5] = np.inf, np.nan
    held = windows_of(image, (3, 3)).transpose(2, 3, 0, 1)
    out = np.empty(held.shape[2:])
    kernel._over_few(held, weights, out, 2)
    expected = np.zeros(out.shape, bool)
    expected[18:21, 28:31] = expected[42:45, 3:6] = True
    assert (~np.isfinite(out) == expected).all()


# --- in C -----------------------------------------------------------------------------------------

#: An expression by entries, the shapes of x and w, and what of it is taken.
IN_C = {
    "signal": ("f[i=0..{n}] = sum[k](x[i+k]*w[k])", (9000,), (13,)),
    "short signal": ("f[i=0..{n}] = sum[k](x[i+k]*w[k])", (300,), (40,)),
    "backwards": ("f[i=0..{n}] = sum[k=0..{m}](x[i+{m}-k]*w[k])", (777,), (21,)),
    "image": ("f[i=0..{n}, j=0..{q}] = sum[a,b](x[i+a, j+b]*w[a, b])", (40, 129), (3, 5)),
    "channels": (
        "f[o,i=0..{n},j=0..{q}] = sum[c,a,b](x[c,i+a,j+b]*w[o,c,a,b])",
        (3, 30, 95),
        (5, 3, 2, 3),
    ),
    "batch": ("f[s,i=0..{n},j=0..{q}] = sum[a,b](x[s,i+a,j+b]*w[a,b])", (4, 20, 130), (3, 3)),
}


def _program(name: str) -> tuple[tc.Expr, dict[str, Array]]:
    text, x, w = IN_C[name]
    ends = {"n": x[-1] - w[-1], "m": w[-1] - 1, "q": x[-1] - w[-1]}
    if len(x) > 1:
        ends["n"] = x[-2] - w[-2]
    rng = np.random.default_rng(len(name))
    data = {"x": rng.standard_normal(x), "w": rng.standard_normal(w)}
    return tc.parse_index(text.format(**ends), x=x, w=w), data


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("name", IN_C)
def test_c_reads_windows_where_they_lie(
    name: str, dtype: np.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and both pullbacks, which are sums over few places and over many."""
    e, data = _program(name)
    out = tc.var("u", e.shape)
    data["u"] = np.random.default_rng(3).standard_normal(e.shape)
    found = {"f": e, "x": tc.vjp(e, "x", out), "w": tc.vjp(e, "w", out)}
    wanted = {k: tc.compile(v, backend="functional")(data) for k, v in found.items()}
    given = {k: a.astype(dtype) for k, a in data.items()}

    def refused(*_: object) -> None:
        raise AssertionError("left to NumPy")

    monkeypatch.setattr(kernel, "_over_few", refused)
    monkeypatch.setattr(kernel, "_over_many", refused)
    for k, v in found.items():
        step = tc.compile(v, backend="c")
        kinds = {s.kind for s in step.plan_for(**{n: given[n].shape for n in v.variables}).steps}
        assert "correlate" in kinds
        for threads in (1, 2):
            result = tc.compile(v, backend="c", threads=threads)({n: given[n] for n in v.variables})
            assert result.dtype == dtype
            _agree(result, wanted[k].astype(dtype))


@pytest.mark.parametrize("name", IN_C)
def test_c_keeps_entries_that_are_not_finite_in_their_windows(name: str) -> None:
    e, data = _program(name)
    data["x"].flat[-1], data["x"].flat[data["x"].size // 2] = np.inf, np.nan
    data["u"] = np.ones(e.shape)
    for v in (e, tc.vjp(e, "w", tc.var("u", e.shape))):
        given = {n: data[n] for n in v.variables}
        found = tc.compile(v, backend="c")(given)
        wanted = tc.compile(v, backend="functional")(given)
        assert (np.isfinite(found) == np.isfinite(wanted)).all()
