"""The index language against loops over numbers: values, gradients, Hessians, in all modes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.index_programs import Array, Loops, Num, OutsideError, Program
from tests.index_random import Maker

PAPER = "f[i,j] = exp(-sum[k=0..4]((a[i,k] + b[j,k])^2 * c[i,i] + d[i+k]^3))"
SHAPES = {"a": (3, 5), "b": (4, 5), "c": (3, 3), "d": (8,)}
MODES = ("auto", "forward", "reverse", "cross-country")
BATCHES, EACH = 14, 20


# --- the example of the paper ---------------------------------------------------------------------


def paper(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Urban and van der Smagt (2017), section 6, by loops."""
    f = np.empty((3, 4), complex)
    for i, j in np.ndindex(3, 4):
        total = 0
        for k in range(5):
            total += (a[i, k] + b[j, k]) ** 2 * c[i, i] + d[i + k] ** 3
        f[i, j] = np.exp(-total)
    return f


def paper_data() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {name: 0.3 * rng.normal(size=shape) for name, shape in SHAPES.items()}


def test_example_of_the_paper() -> None:
    data = paper_data()
    f = tc.parse_index(PAPER, **SHAPES)
    assert f.shape == (3, 4)
    np.testing.assert_allclose(f(data), paper(**data).real, rtol=1e-13)
    for name, mode in itertools.product(SHAPES, MODES):
        found = tc.derivative(f, name, mode=mode)(data)
        for place in np.ndindex(*SHAPES[name]):
            moved = {key: value.astype(complex) for key, value in data.items()}
            moved[name][place] += 1e-30j
            wanted = paper(**moved).imag / 1e-30
            np.testing.assert_allclose(found[(..., *place)], wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("pair", [*itertools.combinations_with_replacement("abcd", 2)])
def test_hessians_of_the_example(pair: tuple[str, str]) -> None:
    one, two = pair
    data, rng = paper_data(), np.random.default_rng(1)
    weight = rng.normal(size=(3, 4))
    e = tc.sum(tc.parse_index(PAPER, **SHAPES) * tc.const(weight))
    mode = MODES[(ord(one) + ord(two)) % 4]
    hessian = tc.derivative(tc.derivative(e, one, mode=mode), two, mode=mode)(data)
    gradient = tc.compile(tc.grad(e, one))
    for place in np.ndindex(*SHAPES[two]):  # by the gradient, which is checked above
        moved = [{key: value.copy() for key, value in data.items()} for _ in range(2)]
        for sign, values in zip((1, -1), moved, strict=True):
            values[two][place] += sign * 1e-5
        wanted = (gradient(moved[0]) - gradient(moved[1])) / 2e-5
        np.testing.assert_allclose(hessian[(..., *place)], wanted, rtol=1e-6, atol=1e-8)


# --- forms of access, written out -----------------------------------------------------------------

X, Y, A, B, S = (np.random.default_rng(k).normal(size=s) for k, s in enumerate(
    [(5,), (7,), (5, 5), (5, 4), ()]
))  # fmt: skip
GIVEN = {"x": X, "y": Y, "A": A, "B": B, "s": S}
NAMED: dict[str, Any] = {"x": "n", "y": "m", "A": ("n", "n"), "B": ("n", "k"), "s": ()}
N = range(5)

FORMS: list[tuple[str, Callable[[], Any]]] = [
    ("f = 3", lambda: 3),
    ("s*2 - -s", lambda: 3 * S),
    ("f[i] = x[i]", lambda: X),
    ("f[i,j] = A[j,i]", lambda: A.T),
    ("f[i] = A[i,i]", lambda: np.diag(A)),
    ("f = sum[i](A[i,i])", lambda: np.trace(A)),
    ("f[i,j=0..2] = x[i]", lambda: np.outer(X, np.ones(3))),
    ("f[i=0..4] = x[0]", lambda: np.full(5, X[0])),
    ("f[i=0..n-1] = x[n-1-i]", lambda: X[::-1]),
    ("f[i=0..4, j=0..2] = y[i+j]", lambda: [[Y[i + j] for j in range(3)] for i in N]),
    ("f[i=0..4, j=0..2] = y[i-j+2]", lambda: [[Y[i - j + 2] for j in range(3)] for i in N]),
    ("f[i=0..1, j=0..1] = y[2*i+3*j]", lambda: Y[[[0, 3], [2, 5]]]),
    ("f[i=0..2, j=0..1] = A[i+j, 2*i]", lambda: A[[[0, 1], [1, 2], [2, 3]], [[0], [2], [4]]]),
    ("f[i=0..2, j=0..1] = A[i+j, i+j]", lambda: np.diag(A)[[[0, 1], [1, 2], [2, 3]]]),
    ("f[i=0..n-1] = x[mod(i+2, n)]", lambda: np.roll(X, -2)),
    ("f[i=0..n-1] = x[mod(-3*i, n)]", lambda: [X[-3 * i % 5] for i in N]),
    ("f[i=0..n-1] = y[mod(i, 3)]", lambda: [Y[i % 3] for i in N]),
    ("f[i=1..n-2] = x[i-1] - 2*x[i] + x[i+1]", lambda: X[:-2] - 2 * X[1:-1] + X[2:]),
    ("f[i=1..n-2] = x[i+1]; g[i=2..n-2] = f[i-1]*f[i]", lambda: [X[2] * X[3], X[3] * X[4]]),
    ("f[i=-1..1] = i", lambda: [-1, 0, 1]),
    ("f[i,j] = A[i,j]*[i==j]", lambda: np.diag(np.diag(A))),
    ("f[i,j] = A[i,j]*[i<=j]", lambda: np.triu(A)),
    ("f[i,j] = A[i,j]*[i!=j]", lambda: A - np.diag(np.diag(A))),
    ("f[i,j] = A[i,j]*[i<j, j<=3]", lambda: np.triu(A, 1) * (np.arange(5) <= 3)),
    ("f[i,j] = A[i,j]*[~(i<j) & (i==0 | j==1)]",
     lambda: A * [[i >= j and (i == 0 or j == 1) for j in N] for i in N]),
    ("f[i,j] = A[i,j]*[mod(i+j, 2) == 1]", lambda: A * [[(i + j) % 2 for j in N] for i in N]),
    ("f[i] = [x[i] > 0]*x[i]", lambda: np.maximum(X, 0)),
    ("f[i=0..n-1] = where(i>0, x[i-1], s)", lambda: np.concatenate([[S], X[:-1]])),
    ("f[i] = x[i] + [i<n-1]*x[i+1]", lambda: X + np.append(X[1:], 0)),
    ("f[i] = x[i]*i + n", lambda: X * np.arange(5) + 5),
    ("f = sum[k=1..0](x[k])", lambda: 0),
    ("f = prod[k=3..2](x[k])", lambda: 1),
    ("f[i=0..n-1] = sum[k=0..i](x[k])", lambda: np.cumsum(X)),
    ("f[i=0..n-1] = prod[k=i..n-1](x[k])", lambda: [X[i:].prod() for i in N]),
    ("f[i=0..n-1] = max[k=0..i](x[k])", lambda: np.maximum.accumulate(X)),
    ("f[i=0..n-1] = min[k=max(0,i-1)..min(i+1,n-1)](x[k])",
     lambda: [X[max(0, i - 1) : i + 2].min() for i in N]),
    ("f[i=0..n-1] = sum[k=min(i,2)..max(i,2)](x[k])",
     lambda: [X[min(i, 2) : max(i, 2) + 1].sum() for i in N]),
    ("f[i=0..n-1] = sum[k=ceil(i/2)..floor((i+3)/2)](x[k])",
     lambda: [X[-(-i // 2) : (i + 3) // 2 + 1].sum() for i in N]),
    ("f = sum[k, l=0..k](A[k,l])", lambda: np.tril(A).sum()),
    ("f = sum[k=0..floor(n/2)](x[2*k])", lambda: X[::2].sum()),
    ("f[i=0..m-n] = sum[k](x[k]*y[i+k])", lambda: np.correlate(Y, X, "valid")),
    ("f[i=0..n+m-2] = sum[k=max(0,i-m+1)..min(i,n-1)](x[k]*y[i-k])", lambda: np.convolve(X, Y)),
    ("f[i=0..n-1] = sum[k=i-n+1..i](x[i-k])", lambda: np.full(5, X.sum())),
    ("f[i,j] = max(A[i,j], x[i], 0)", lambda: np.maximum(A, np.maximum(X, 0)[:, None])),
    ("t = sum[i](x[i]^2)\nf[i] = x[i]/t # a comment\n", lambda: X / (X @ X)),
    ("f[i] = sum[k](A[i,k]*x[k]); g[i] = tanh(f[i]); h = sum[i](g[i]*x[i])",
     lambda: np.tanh(A @ X) @ X),
    ("f[i,j] = sum[k](B[i,k]*B[j,k])", lambda: B @ B.T),
    ("f[i] = logsumexp[k](A[i,k])", lambda: np.log(np.exp(A).sum(1))),
    ("f[i] = -x[i]^2 + ceil(x[i]) + pi", lambda: -(X**2) + np.ceil(X) + np.pi),
]  # fmt: skip


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("text", "wanted"), FORMS, ids=[text for text, _ in FORMS])
def test_forms(text: str, wanted: Callable[[], Any], named: bool) -> None:
    shapes: dict[str, Any] = NAMED if named else {k: np.shape(v) for k, v in GIVEN.items()}
    if not named:
        for name, size in (("n", "5"), ("m", "7")):  # dimensions by their numbers
            text = re.sub(rf"(?<!\w){name}(?!\w)", size, text)
    found = tc.parse_index(text, **shapes)(GIVEN | {"n": 5, "m": 7, "k": 4} if named else GIVEN)
    np.testing.assert_allclose(found, wanted(), rtol=1e-12, atol=1e-14)
    back = tc.parse_index(text, **shapes)
    assert back is tc.parse_index(text, **shapes)


def test_empty_ranges_of_named_extents() -> None:
    e = tc.parse_index("f = sum[i=1..n-2](x[i]) + prod[i=2..n-2](x[i])", x="n")
    for n in (0, 1, 2):
        assert e(x=np.full(n, 3.0)) == 1
    assert e(x=np.full(4, 3.0)) == 9


# --- random programs ------------------------------------------------------------------------------


def stacked(entries: list[Num], total: int) -> tuple[Array, Array, Array]:
    """Values, gradients and Hessians of numbers."""
    v = np.array([x.v for x in entries])
    g = np.array([np.broadcast_to(x.g, (total,)) for x in entries]).reshape(len(entries), total)
    h = [np.broadcast_to(x.h, (total, total)) for x in entries]
    return v, g, np.array(h).reshape(len(entries), total, total)


def compared(found: Any, wanted: Any, bound: float = 1e-9) -> None:
    scale = max(1.0, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=bound * scale)


def run(p: Program, rng: np.random.Generator, mode: str) -> None:
    values = p.values(rng)
    data: dict[str, Any] = {**values, **p.sizes}
    try:
        with np.errstate(all="ignore"):
            shape, entries = Loops(p, values).run()
    except OutsideError:
        with pytest.raises(tc.ShapeError):
            tc.parse_index(p.text, **p.shapes())(data)
        return
    try:
        e = tc.parse_index(p.text, **p.shapes())
    except tc.ShapeError:  # what `!=` says and empty arrays of unknown ranges are not followed up
        assert "!=" in p.text or any(0 in s for s in p.shapes().values())
        return
    total = sum(a.size for a in values.values())
    v, g, h = stacked(entries, total)
    if not np.isfinite(v).all() or np.abs(v).max(initial=0) > 1e8:
        return
    assert e(data).shape == tuple(shape)
    compared(e(data), v.reshape(shape))
    weight = np.asarray(rng.normal(size=shape))
    held = tc.var("held", e.shape)
    whole = tc.sum(e * held)
    bent = np.tensordot(weight.ravel(), h, 1)
    ends = np.cumsum([0, *[a.size for a in values.values()]])
    places = {name: slice(*ends[k : k + 2]) for k, name in enumerate(values)}
    for name in e.variables:
        found = tc.derivative(e, name, mode=mode)(data)
        compared(found, g[:, places[name]].reshape((*shape, *values[name].shape)))
        gradient = tc.derivative(whole, e.variables[name], mode=mode)
        for other in e.variables:
            found = tc.derivative(gradient, e.variables[other], mode=mode)({**data, "held": weight})
            wanted = bent[places[name], places[other]]
            wanted = wanted.reshape(values[name].shape + values[other].shape)
            compared(found, wanted, 1e-7)  # large terms may cancel, as in products with zeros


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs(batch: int) -> None:
    for seed in range(EACH * batch, EACH * (batch + 1)):
        p = Maker(seed).program()
        if p.sound:
            try:
                run(p, np.random.default_rng(seed), MODES[seed % 4])
            except Exception as error:
                error.add_note(f"seed {seed}, shapes {p.shapes()}, sizes {p.sizes}\n{p.text}")
                raise


# --- cost -----------------------------------------------------------------------------------------


def test_convolutions_take_linear_memory() -> None:
    e = tc.parse_index("y[i=0..n-m] = sum[k](w[k]*x[i+k])", x="n", w="m")
    n, m = 100_000, 40
    for whole in (e, tc.grad(tc.sum(tc.tanh(e) ** 2), "x"), tc.grad(tc.sum(tc.tanh(e)), "w")):
        plan = tc.compile(whole).plan_for(x=(n,), w=(m,))
        assert plan.peak_bytes < 8 * 8 * n
        assert plan.flops < 50 * n * m
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=n), rng.normal(size=m)
    np.testing.assert_allclose(e(x=x, w=w), np.correlate(x, w, "valid"), rtol=1e-9, atol=1e-9)


def test_bands_are_not_squares() -> None:
    e = tc.parse_index(
        "f[i=0..n-1] = sum[k=max(0,i-2)..min(i+2,n-1)](exp(x[k])*y[i])", x="n", y="n"
    )
    assert tc.compile(e).plan_for(x=(100_000,), y=(100_000,)).peak_bytes < 100_000_000


def test_structure_of_derivatives_stays() -> None:
    f = tc.parse_index("f = sum[i=0..n-2]((x[i+1] - x[i]^2)^2)", x="n")
    hessian = tc.compile(tc.hessian(f, "x"), structured=True)(x=np.linspace(0, 1, 2000))
    assert hessian.nbytes < 200_000
