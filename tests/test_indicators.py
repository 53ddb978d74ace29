"""Products with indicators of affine conditions against arrays of zeros and ones."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import normal
from tcalc.graph.extents import ONE, Extent, extent_from, form_of
from tcalc.integers.affine import Affine, Congruence, Constraint, Guard
from tcalc.integers.boxes import index
from tcalc.ops.indicator import CheckedAccess, indicator
from tests.shared import run_source

SEEDS = 60
PER_SEED = 10


class Random:
    """A random product under conditions, and the same with arrays of zeros and ones."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.extents = [int(n) for n in self.rng.integers(1, 6, size=self.rng.integers(2, 6))]
        self.ops: list[tc.Expr] = []
        self.words: list[tuple[int, ...]] = []
        self.dense: list[np.ndarray] = [np.ones(self.extents)]
        self.places = [tuple(range(len(self.extents)))]
        self.values: dict[str, np.ndarray] = {}
        for k in range(self.rng.integers(0, 4)):
            self.array(f"x{k}")
        for _ in range(self.rng.integers(1, 4)):
            self.condition()

    def labels(self, repeat: bool) -> list[int]:
        count = self.rng.integers(1, min(4, len(self.extents) + 1))
        return [int(k) for k in self.rng.choice(len(self.extents), size=count, replace=repeat)]

    def array(self, name: str) -> None:
        word = tuple(self.labels(bool(self.rng.random() < 0.2)))
        shape = tuple(self.extents[k] for k in word)
        self.values[name] = self.rng.integers(1, 9, size=shape).astype(float)
        self.ops.append(tc.var(name, shape))
        self.words.append(word)
        self.dense.append(self.values[name])
        self.places.append(word)

    def condition(self) -> None:
        form = Affine((), int(self.rng.integers(-3, 4)))
        for label in self.labels(False):
            form += index(label) * int(self.rng.choice([-3, -2, -1, -1, -1, 1, 1, 1, 2, 3]))
        kind, modulus = self.rng.random(), int(self.rng.integers(2, 4))
        guard: Guard = Congruence(form, modulus)
        if kind < 0.85:
            guard = Constraint(form, bool(kind < 0.6))
        for op, word in indicator(dict(enumerate(self.extents)), [guard]):
            self.ops.append(op)
            self.words.append(word)
        full = range(len(self.extents))
        grids = np.meshgrid(*[np.arange(n) for n in self.extents], indexing="ij")
        whole = guard.holds({f"#{k}": grids[k] for k in full})
        self.dense.append(np.broadcast_to(whole, self.extents).astype(float))
        self.places.append(tuple(full))

    def check(self) -> None:
        present = sorted({label for word in self.words for label in word})
        count = int(self.rng.integers(0, len(present) + 1))
        out = [int(k) for k in self.rng.permutation(present)[:count]]
        args: list[object] = []
        for array, word in zip(self.dense, self.places, strict=True):
            args += [array, list(word)]
        wanted = np.einsum(*args, out)  # type: ignore[call-overload]
        for label in set(range(len(self.extents))) - set(present):
            wanted = wanted / self.extents[label]
        extents: dict[int, Extent] = {k: self.extents[k] for k in present}
        e = normal.einsum(self.ops, self.words, out, ONE, extents)
        np.testing.assert_allclose(e(self.values), wanted, rtol=1e-12)
        assert pickle.loads(pickle.dumps(e)) is e


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_products(seed: int) -> None:
    for k in range(PER_SEED):
        Random(PER_SEED * seed + k).check()


def test_indicator_alone() -> None:
    (held,) = indicator({0: "n", 1: 4}, [Constraint(index(1) - index(0) - 1)])
    found = normal.einsum([held[0]], [held[1]], (0, 1))(n=3)
    np.testing.assert_array_equal(found, np.triu(np.ones((3, 4)), 1))
    assert (found + held[0]).shape == (3, 4) if held[0].shape == (3, 4) else True
    np.testing.assert_array_equal((2 * tc.exp(held[0]))(n=3).max(), 2 * np.e)


def test_what_is_no_indicator() -> None:
    i, j = index(0), index(1)
    ((unit, word),) = indicator({0: "n", 1: "n"}, [Constraint(i - j, True)])
    assert unit is tc.eye("n")
    assert word == (0, 1)
    assert indicator({0: 3}, [Constraint(i - i)]) == []
    ((zero, word),) = indicator({0: 3}, [Constraint(i - i - 1)])
    assert (str(zero), word) == ("0", ())
    first = indicator({3: 4, 7: "n"}, [Constraint(index(7) - index(3) - 2, True)])
    second = indicator({9: 4, 2: "n"}, [Constraint(index(9) + 2 - index(2), True)])
    assert first[0][0] is second[0][0]


def test_accesses_are_checked() -> None:
    i = index(0)
    with pytest.raises(IndexError, match=r"x.i.1.: index 3 is out of range .* extent 3"):
        indicator({0: 3}, [], [CheckedAccess(i + 1, 3, "x[i+1]")])
    guard = Constraint(1 - i)
    assert indicator({0: 3}, [guard], [CheckedAccess(i + 1, 3, "x[i+1]")])
    ((held, word),) = indicator({0: "m"}, [guard], [CheckedAccess(i + 1, "n", "x[i+1]")])
    e = normal.einsum([held], [word], ())
    assert e(m=5, n=3) == 2
    with pytest.raises(tc.ShapeError, match="index 2 is out of range"):
        e(m=5, n=2)


def test_axes_of_one_entry_are_checked_and_those_of_none_are_not() -> None:
    u = tc.var("u", 5)
    e = tc.build("m", lambda i: tc.build("n", lambda j: u[i + j]))
    given = np.arange(5.0)
    for m, n in ((1, 6), (2, 5), (6, 1)):
        with pytest.raises(IndexError, match=r"index [56] is out of range"):
            e(u=given, m=m, n=n)
    for m, n in ((0, 9), (9, 0), (1, 5), (5, 1)):
        wanted = np.array([[given[i + j] for j in range(n)] for i in range(m)]).reshape(m, n)
        np.testing.assert_array_equal(e(u=given, m=m, n=n), wanted)


# --- sums of shifted reads ------------------------------------------------------------------------


def correlated(x: tc.Expr, w: tc.Expr, step: int = 1) -> tc.Expr:
    """sum over k of x[step*i+k] w[k], over as many axes as the arrays have."""
    d = x.ndim
    rows, inner, outer = range(d), range(d, 2 * d), range(2 * d, 3 * d)
    extents: dict[int, Extent] = {}
    ops, words = [x, w], [tuple(outer), tuple(inner)]
    for i, k, j in zip(rows, inner, outer, strict=True):
        extents[j], extents[k] = x.shape[j - 2 * d], w.shape[k - d]
        span = form_of(extents[j]) - form_of(extents[k])
        extents[i] = extent_from(span + 1) if step == 1 else int(str(span)) // step + 1
        form = index(j) - index(i) * step - index(k)
        for op, word in indicator(extents, [Constraint(form, True)]):
            ops.append(op)
            words.append(word)
    return normal.einsum(ops, words, rows, ONE, extents)


def windows(x: np.ndarray, w: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The result of `correlated`, and its Jacobian in x, by loops."""
    counts = [(n - k) // step + 1 for n, k in zip(x.shape, w.shape, strict=True)]
    value, slope = np.zeros(counts), np.zeros((*counts, *x.shape))
    for i in np.ndindex(*counts):
        for k in np.ndindex(*w.shape):
            at = tuple(step * a + b for a, b in zip(i, k, strict=True))
            value[i] += x[at] * w[k]
            slope[(*i, *at)] += w[k]
    return value, slope


@pytest.mark.parametrize(("n", "k", "step"), [
    ((9,), (3,), 1), ((9,), (9,), 1), ((9,), (3,), 2), ((11,), (2,), 3),
    ((5, 6), (2, 3), 1), ((7, 5), (3, 1), 2),
])  # fmt: skip
def test_correlations(n: tuple[int, ...], k: tuple[int, ...], step: int) -> None:
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(size=n), "w": rng.normal(size=k)}
    x, w = tc.var("x", n), tc.var("w", k)
    y = correlated(x, w, step)
    value, slope = windows(data["x"], data["w"], step)
    np.testing.assert_allclose(y(data), value, rtol=1e-12, atol=1e-13)
    axes = value.ndim
    for mode in ("forward", "reverse", "cross-country", "auto"):
        found = tc.derivative(y, x, mode=mode)(data)
        np.testing.assert_allclose(found, slope, rtol=1e-12, atol=1e-13)
        found = tc.derivative(tc.sum(tc.sin(y)), x, 2, mode=mode)(data)
        wanted = np.tensordot(slope, -np.sin(value).reshape(value.shape + (1,) * axes) * slope,
                              (list(range(axes)), list(range(axes))))  # fmt: skip
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
        third = tc.derivative(tc.sum(tc.sin(y)), x, 3, mode=mode)(data)
        letters = "abc"[:axes], "def"[:axes], "ghi"[:axes], "jkl"[:axes]
        spec = (
            f"{letters[0]},{','.join(letters[0] + o for o in letters[1:])}->{''.join(letters[1:])}"
        )
        wanted = np.einsum(spec, -np.cos(value), slope, slope, slope)
        np.testing.assert_allclose(third, wanted, rtol=1e-11, atol=1e-12)
    mixed = tc.jacobian(tc.grad(tc.sum(tc.sin(y)), w), x)(data)
    numeric = np.zeros_like(mixed)
    gradient = tc.compile(tc.grad(tc.sum(tc.sin(y)), w))
    for at in np.ndindex(*n):
        shifted = [{**data, "x": data["x"].copy()} for _ in range(2)]
        for sign, values in zip((1, -1), shifted, strict=True):
            values["x"][at] += sign * 1e-6
        difference = gradient(shifted[0]) - gradient(shifted[1])
        numeric[(..., *at)] = difference / 2e-6
    np.testing.assert_allclose(mixed, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("count", "k", "step", "apart", "behind"), [
    (200, 3, 2, 1, 0), (200, 3, 2, 1, 1), (150, 7, 3, 1, 0), (90, 3, 4, 1, 2), (100, 4, 2, 3, 0),
    (100, 5, 3, 2, 1), (120, 3, 2, 2, 0), (1, 1, 2, 1, 0), (5, 7, 3, 2, 0), (9, 9, 2, 1, 5),
])  # fmt: skip
def test_pullbacks_of_kernels_in_steps(
    count: int, k: int, step: int, apart: int, behind: int, channels: int
) -> None:
    """Along two axes, one of which has no steps: few products more than there are terms."""
    n = step * (count - 1) + apart * (k - 1) + 1 + behind
    text = f"sum[c,a,b](w[o,c,a,b]*x[c,{step}*i+{apart}*a,j+b])"
    e = tc.parse_index(f"y[o=0..1,i=0..{count - 1},j=0..3] = {text}",
                       x=(channels, n, 5), w=(2, channels, k, 2))  # fmt: skip
    rng = np.random.default_rng(count)
    data = {"u": rng.normal(size=(2, count, 4)), "w": rng.normal(size=(2, channels, k, 2))}
    wanted = np.zeros((channels, n, 5))
    for i, a, b in np.ndindex(count, k, 2):
        wanted[:, step * i + apart * a, b : b + 4] += data["w"][:, :, a, b].T @ data["u"][:, i]
    pullback = tc.vjp(e, "x", tc.var("u", e.shape))
    for backend in ("numpy", "c", "functional"):
        found = tc.compile(pullback, backend=backend)
        np.testing.assert_allclose(found(data), wanted, rtol=1e-12, atol=1e-12)
        plan = found.plan_for(**{name: a.shape for name, a in data.items()})
        assert plan.flops <= 8 * (channels * 2 * count * k * 8 + wanted.size + 200)
    printed = run_source(pullback, {**data, "x": wanted})
    np.testing.assert_allclose(printed, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("equality", [False, True])
@pytest.mark.parametrize("form", ["i+j-3", "3-i-j", "2*i+2*j-4", "i-j-1", "2*i+j-4", "i+j-k-2"])
def test_indicators_are_known_as_symmetric_where_their_entries_are(
    form: str, equality: bool
) -> None:
    places = {"i": index(0), "j": index(1), "k": index(2)}
    guard = Constraint(eval(form, {}, places), equality)
    ndim = 3 if "k" in form else 2
    ((held, _),) = indicator(dict.fromkeys(range(ndim), 4), [guard])
    entries = held()
    for perm in permutations(range(ndim)):
        same = np.array_equal(entries, entries.transpose(perm))
        assert (normal.view(held, perm) is held) == same


@pytest.mark.parametrize(("step", "apart"), [(2, 1), (3, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize(("m", "p"), [(50, 3), (2, 5), (1, 1), (9, 8)])
def test_printed_pullbacks_of_kernels_in_steps_are_right_for_all_extents(
    step: int, apart: int, m: int, p: int
) -> None:
    text = f"y[i=0..m-1] = sum[k](w[k]*x[{step}*i+{apart}*k])"
    e = tc.parse_index(text, x=f"{step}*m+{apart}*p-{step + apart - 1}", w="p")
    rng = np.random.default_rng(m)
    data = {"u": rng.normal(size=m), "w": rng.normal(size=p)}
    wanted = np.zeros(step * (m - 1) + apart * (p - 1) + 1)
    for i, k in np.ndindex(m, p):
        wanted[step * i + apart * k] += data["u"][i] * data["w"][k]
    pullback = tc.vjp(e, "x", tc.var("u", "m"))
    data["x"] = np.zeros(len(wanted))
    found = run_source(pullback, {name: data[name] for name in pullback.variables})
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_hessians_of_correlations_stay_narrow() -> None:
    x, w = tc.var("x", "n"), tc.var("w", "k")
    hessian = tc.compile(tc.hessian(tc.sum(tc.tanh(correlated(x, w)) ** 2), x))
    plan = hessian.plan_for(x=(1000,), w=(3,))
    large = [step for step in plan.steps if np.prod(step.shape) > 20_000]
    assert [step.kind for step in large] == ["place"]
    assert plan.flops < 110_000
    assert plan.peak_bytes < 8_200_000
