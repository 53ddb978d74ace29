"""Gathers and sums by segments: NumPy's meaning, products of all kinds, errors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.extents import ONE
from tcalc.graph.normal import einsum
from tcalc.ops.selection import selection

X, x = tc.var("X", ("m", "n")), tc.var("x", "n")
idx, rows, y = (tc.var(name, "k", integer=True) for name in ("idx", "rows", "y"))
words = tc.var("words", ("s", "r"), integer=True)
LETTERS = "abcdef"


# --- NumPy's meaning ------------------------------------------------------------------------------


def random_key(rng: np.random.Generator, shape: tuple[int, ...], named: bool) -> Any:
    """An index for expressions, the same for arrays, and the values of its variables."""
    batch = tuple(rng.integers(1, 4, size=rng.integers(0, 3)))
    key: list[Any] = []
    plain: list[Any] = []
    values = {}
    for axis, n in enumerate(shape):
        kind = rng.choice(["none", "slice", "part", "int", "array", "variable"])
        if kind == "none":
            key.append(None)
            plain.append(None)
        if kind == "slice" or (kind == "part" and named):
            key.append(slice(None))
        elif kind == "part":
            ends = [None if rng.random() < 0.4 else int(rng.integers(-6, 6)) for _ in range(2)]
            key.append(slice(*ends, [None, 1, 2, -1, -2][rng.integers(5)]))
        elif kind in ("none", "int"):
            key.append(int(rng.integers(-n, n)))
        else:
            own = tuple(1 if rng.random() < 0.2 else b for b in batch[rng.integers(3) :])
            key.append(rng.integers(-n, n, size=own))
        plain.append(key[-1])
        if kind == "variable":
            key[-1] = tc.var(f"i{axis}", own, integer=True)
            values[f"i{axis}"] = plain[-1]
    return tuple(key), tuple(plain), values


@pytest.mark.parametrize("seed", range(150))
def test_indexing_is_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, size=rng.integers(1, 4)))
    named = bool(rng.random() < 0.5)
    key, plain, values = random_key(rng, shape, named)
    a = tc.var("a", tuple(LETTERS[: len(shape)]) if named else shape)
    array = rng.normal(size=shape)
    e, wanted = a[key], array[plain]
    assert e.ndim == wanted.ndim
    np.testing.assert_array_equal(e(a=array, **values), wanted)
    units = np.eye(array.size).reshape(array.size, *shape)
    columns = [unit[plain] for unit in units]
    jacobian = np.stack(columns, -1).reshape(wanted.shape + shape)
    found = tc.jacobian(tc.sin(e), a)(a=array, **values)
    slope = np.cos(wanted).reshape(wanted.shape + (1,) * len(shape))
    np.testing.assert_allclose(found, slope * jacobian, rtol=1e-14)
    assert str(e)
    assert tc.to_latex(e)


def test_take_and_segment_sum() -> None:
    a, r = np.arange(12.0).reshape(3, 4), np.arange(6.0).reshape(3, 2)
    for axis in (0, 1, -1):
        wanted = np.take(a, [[0, 2], [1, -1]], axis)
        indices = tc.var("p", (2, 2), integer=True)
        for take in (tc.take, np.take):
            found = take(X, indices, axis=axis)(X=a, p=[[0, 2], [1, -1]])
            np.testing.assert_array_equal(found, wanted)
    summed = tc.segment_sum(tc.var("r", ("k", 2)), idx, 4)(r=r, idx=[1, -1, 1])
    np.testing.assert_array_equal(summed, np.asarray([[0, 0], [4, 6], [0, 0], [2, 3]]))
    whole = tc.segment_sum(X, tc.var("g", ("m", "n"), integer=True), "q")
    np.testing.assert_array_equal(whole(X=a, g=np.arange(12).reshape(3, 4) % 2, q=2), [30, 36])
    np.testing.assert_array_equal(tc.take([1.0, 2.0, 3.0], idx)(idx=[2, 0]), [3, 1])


# --- products against arrays of zeros and ones ----------------------------------------------------


class Random:
    """A random product with selection tensors, and the same with the tensors as arrays."""

    def __init__(self, seed: int, smallest: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.extents = [int(n) for n in rng.integers(smallest, 4, size=6)]
        self.ops: list[tc.Expr] = []
        self.words: list[tuple[int, ...]] = []
        self.dense: list[np.ndarray] = []
        self.values: dict[str, np.ndarray] = {}
        for k in range(rng.integers(1, 4)):
            word = tuple(rng.integers(0, 6, size=rng.integers(1, 4)))
            shape, n = tuple(self.extents[i] for i in word[:-1]), self.extents[word[-1]]
            name = f"g{k if rng.random() < 0.7 else 0}_{'_'.join(map(str, (*shape, n)))}"
            empty = not n and np.prod(shape)
            shape = (0,) if empty else shape
            word = (word[0], word[-1]) if empty else word
            if empty and self.extents[word[0]]:
                continue
            g = tc.var(name, shape, integer=True)
            values = self.values.setdefault(name, rng.integers(-n, max(n, 1), size=shape))
            one = (values % max(n, 1))[..., None] == np.arange(n)
            self.add(selection(g, n), word, one.astype(np.float64))
        for k in range(rng.integers(0, 7 if seed % 5 == 0 else 4)):
            word = tuple(rng.integers(0, 6, size=rng.integers(0, 4)))
            shape = tuple(self.extents[i] for i in word)
            self.values[f"x{k}"] = rng.normal(size=shape)
            self.add(tc.var(f"x{k}", shape), word, self.values[f"x{k}"])
        present = sorted({label for word in self.words for label in word})
        self.out = [label for label in present if rng.random() < 0.45]
        rng.shuffle(self.out)

    def add(self, op: tc.Expr, word: tuple[int, ...], array: np.ndarray) -> None:
        self.ops.append(op)
        self.words.append(word)
        self.dense.append(array)

    def wanted(self) -> np.ndarray:
        spelled = ",".join("".join(LETTERS[i] for i in word) for word in self.words)
        out = "".join(LETTERS[i] for i in self.out)
        return np.asarray(np.einsum(f"{spelled}->{out}", *self.dense))


@pytest.mark.parametrize("seed", range(300))
def test_products_with_selections(seed: int) -> None:
    given = Random(seed, smallest=int(seed >= 40))
    e, wanted = einsum(given.ops, given.words, given.out), given.wanted()
    np.testing.assert_allclose(e(given.values), wanted, rtol=1e-12, atol=1e-12)
    nested = tc.sum(tc.exp(0.1 * e) * e)
    total = (np.exp(0.1 * wanted) * wanted).sum()
    np.testing.assert_allclose(nested(given.values), total, rtol=1e-12, atol=1e-12)
    single = {
        k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in given.values.items()
    }
    found = e(single)
    if any(name.startswith("x") for name in e.variables):
        assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


# --- what is wrong --------------------------------------------------------------------------------

five = tc.var("five", 5)

WRONG: list[tuple[Callable[[], Any], type[Exception], list[str]]] = [
    (lambda: x[idx](x=[1.0, 2.0], idx=[0, 5]), tc.ShapeError, ["idx", "5 at 1", "extent 2"]),
    (lambda: x[idx](x=[1.0, 2.0], idx=[-3]), IndexError, ["idx", "-3", "extent 2"]),
    (lambda: tc.grad(tc.sum(x[idx] ** 2), x)(x=[1.0], idx=[1]), IndexError, ["idx", "1 at 0"]),
    (lambda: x[[0, 7]](x=[1.0, 2.0]), IndexError, ["[0, 7]", "7 at 1", "extent 2"]),
    (lambda: five[[0, 7]], tc.ShapeError, ["[0, 7]", "7 at 1", "extent 5"]),
    (lambda: five[5], IndexError, ["index 5", "extent 5"]),
    (lambda: five[-6], IndexError, ["index -6"]),
    (lambda: x[idx](x=np.zeros(0), idx=[0]), IndexError, ["extent 0"]),
    (lambda: x[np.uint64([2**63])], IndexError, ["9223372036854775808"]),
    (lambda: x[x > 0], TypeError, ["mask", "where"]),
    (lambda: tc.var("w", 3)[[True, False]], IndexError, ["mask", "(2,)", "(3,)"]),
    (lambda: x[True], TypeError, ["mask", "where"]),
    (lambda: x[1.5], TypeError, ["integers", "1.5"]),
    (lambda: x["i"], TypeError, ["integers", "'i'"]),
    (lambda: x[[[1], [2, 3]]], TypeError, ["integers"]),
    (lambda: x[np.ma.masked_array([1, 2])], TypeError, ["masked"]),
    (lambda: x[x], TypeError, ["x", "integer=True"]),
    (lambda: x[idx / 2], TypeError, ["idx/2", "integer variable"]),
    (lambda: x[0, 0], IndexError, ["2 indices", "(n,)"]),
    (lambda: X[..., 0, ...], IndexError, ["ellipsis"]),
    (lambda: X[idx, words], tc.ShapeError, ["broadcast"]),
    (lambda: tc.take(X, idx, 2), tc.ShapeError, ["axis 2"]),
    (lambda: tc.segment_sum(X, idx, 3), tc.ShapeError, ["(m, n)", "(k,)"]),
    (lambda: tc.segment_sum(x, 0, 3), tc.ShapeError, ["()"]),
    (lambda: tc.grad(tc.sum(x[idx]), idx), TypeError, ["idx", "integer variable"]),
    (lambda: tc.grad(tc.sum(x[idx]), "idx"), TypeError, ["idx", "no derivative"]),
    (lambda: x[idx](x=[1.0], idx=[0.5]), TypeError, ["idx", "integer variable", "0.5"]),
]


@pytest.mark.parametrize(("call", "kind", "parts"), WRONG)
def test_errors(call: Callable[[], Any], kind: type[Exception], parts: list[str]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_data_and_edges() -> None:
    e = x[idx]
    assert e(x=[1.0, 2.0], idx=np.array([1, 0], np.uint8)).tolist() == [2, 1]
    assert e(x=[1.0, 2.0], idx=[1.0, -1.0]).tolist() == [2, 2]
    assert e(x=np.zeros(0), idx=[]).shape == (0,)
    assert tc.grad(tc.sum(e), x)(x=np.ones(3), idx=[]).tolist() == [0, 0, 0]
    k = tc.var("k", integer=True)
    assert x[k](x=[1.0, 2.0], k=1) == 2
    assert tc.grad(x[k] ** 2, x)(x=[1.0, 2.0], k=-1).tolist() == [0, 4]
    assert tc.grad(tc.sum(e**2), x)(x=np.float32([1, 2]), idx=[1, 1]).dtype == np.float32
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert X[idx](X=turned, idx=[1])[0].tolist() == [3, 4, 5]
    assert e.subs({idx: tc.var("j", "k", integer=True)})(x=[1.0, 2.0], j=[1]).tolist() == [2]


def test_sums_with_selections_add_at_places() -> None:
    rng = np.random.default_rng(5)
    A, j = tc.var("A", ("a", "b", "c")), tc.var("j", ("a", "c"), integer=True)
    p, q = tc.var("p", "b", integer=True), tc.var("q", "b", integer=True)
    data = {"A": rng.normal(size=(2, 3, 4)), "j": rng.integers(0, 3, (2, 4))}
    data |= {"p": rng.integers(0, 4, 3), "q": rng.integers(0, 2, 3)}
    one = (data["j"][..., None] == np.arange(3)).transpose(0, 2, 1)
    last = data["p"][:, None] == np.arange(4)
    both = np.einsum("bc,ba->abc", last, data["q"][:, None] == np.arange(2))
    S, P, Q = selection(j, "b").transpose((0, 2, 1)), selection(p, "c"), selection(q, "a")
    pair = einsum([P, Q], [(0, 1), (0, 2)], (2, 0, 1))
    cases = [
        (A - 2 * S, data["A"] - 2 * one),
        (tc.exp(A) + 3 * pair - S, np.exp(data["A"]) + 3 * both - one),
        (1 - A - S, 1 - data["A"] - one),
        (tc.sum(A, axis=0) - P, data["A"].sum(0) - last),
        (P + 1, last + 1.0),
        (A * 0 + tc.sum(A, axis=0)[None] - S, data["A"].sum(0)[None] - one),
    ]
    before = data["A"].copy()
    for e, wanted in cases:
        found = e({k: v for k, v in data.items() if k in e.variables} | {"c": 4})
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(data["A"], before)
    assert [s.kind for s in tc.compile(A - 2 * S).plan.steps].count("onehot") == 0


def test_indices_in_another_order() -> None:
    given, array = np.array([[0, 2], [1, 1], [2, 0]]), np.arange(3.0)
    turned, stretched = x[words.T], x[idx[:, None]]
    np.testing.assert_array_equal(turned(x=array, words=given), array[given.T])
    np.testing.assert_array_equal(stretched(x=array, idx=[2, 0]), [[2], [0]])
    square = tc.var("square", ("s", "s"), integer=True)
    found = x[tc.diagonal(square)](x=array, square=[[2, 0], [0, 1]])
    np.testing.assert_array_equal(found, [2, 1])
    assert X.take(idx, axis=1) is X[:, idx]
    assert tc.check(tc.sum(tc.exp(tc.var("a", 4)[idx])), "a", 2).passed


def test_expressions_and_functions_pickle() -> None:
    e = tc.grad(tc.sum(x[idx] ** 3), x)
    assert pickle.loads(pickle.dumps(x[idx])) is x[idx]
    assert pickle.loads(pickle.dumps(x[[0, 1]])) is x[[0, 1]]
    compiled = pickle.loads(pickle.dumps(tc.compile(e)))
    data = {"x": [1.0, 2.0, 3.0], "idx": [0, -1, 2]}
    np.testing.assert_array_equal(compiled(data), e(data))


def test_long_chains_and_shared_gathers() -> None:
    e: tc.Expr = x
    for _ in range(3000):
        e = tc.sin(e)[[1, 0]]
    value, wanted = np.array([0.3, 0.4]), np.array([0.3, 0.4])
    for _ in range(3000):
        wanted = np.sin(wanted)[[1, 0]]
    np.testing.assert_allclose(e(x=value), wanted, rtol=1e-12)
    gradient = tc.grad(tc.sum(e), x)
    assert np.isfinite(gradient(x=value)).all()


@pytest.mark.parametrize("seed", range(12))
def test_long_products_with_tables(seed: int) -> None:
    """More operands than all trees are searched for: tables are met from either side."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(9, 12))
    tables = rng.choice(count, 2, replace=False)
    data: dict[str, np.ndarray] = {}
    ops, dense, words = [], [], []
    for k in range(count):
        word = (k, int(rng.integers(k + 1, count + 1)))
        if k in tables:
            data[f"i{k}"] = rng.integers(0, 3, 3)
            ops.append(selection(tc.var(f"i{k}", 3, integer=True), 3))
            dense.append(np.eye(3)[data[f"i{k}"]])
        else:
            word = (
                *word,
                *[int(n) for n in rng.integers(0, k + 1, int(rng.random() < 0.3)) if n < k],
            )
            data[f"v{k}"] = rng.normal(size=(3,) * len(word))
            ops.append(tc.var(f"v{k}", data[f"v{k}"].shape))
            dense.append(data[f"v{k}"])
        words.append(word)
    uses = np.bincount([label for word in words for label in word])
    out = [int(label) for label in np.flatnonzero(uses == 1)[:2]]
    e = einsum(ops, words, out, ONE, {int(k): 3 for k in np.flatnonzero(uses)})
    args = [arg for pair in zip(dense, words, strict=True) for arg in pair]
    wanted = np.einsum(*args, out, optimize=True)
    found = e(**{k: v for k, v in data.items() if k in e.variables})
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * abs(wanted).max())


@pytest.mark.parametrize(
    "take",
    [
        lambda a: a[np.array([True, False, True])],
        lambda a: a[:, [True, False, False, True]],
        lambda a: a[np.arange(12).reshape(3, 4) % 2 == 0],
        lambda a: a[..., np.array([False] * 4)],
        lambda a: a[np.array([False, True, True]), 1:3],
        lambda a: a[None, np.array([True, True, False])],
        lambda a: a[np.array([True, False, True]), np.array([0, 1])],
    ],
)  # fmt: skip
def test_masks_of_numbers_are_the_places_where_they_hold(take: Any) -> None:
    a, weights = np.arange(12.0).reshape(3, 4), np.random.default_rng(0).normal(size=(3, 4))
    X = tc.var("X", (3, 4))
    np.testing.assert_array_equal(take(X)(X=a), take(a))
    wanted = np.zeros((3, 4))
    places = take(np.arange(12).reshape(3, 4))
    np.add.at(wanted.reshape(-1), places.ravel(), 2 * take(a).ravel() * take(weights).ravel())
    found = tc.grad(tc.sum(take(X) ** 2 * take(weights)), X)(X=a)
    np.testing.assert_allclose(found, wanted, atol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_an_index_may_be_what_a_loop_of_integers_ends_with(backend: str) -> None:
    x, follows = tc.var("x", "n"), tc.var("follows", "n", integer=True)
    walk = tc.fold(lambda place, _: follows[place], 0, 3)
    data = {"x": np.arange(3.0) + 5, "follows": np.array([1, 2, 0])}
    step = tc.compile({"entry": x[walk], "slope": tc.grad(x[walk] ** 2, x)}, backend=backend)
    for turn in range(3):
        found = step({**data, "follows": np.roll(data["follows"], turn)})
        place = 0
        for _ in range(3):
            place = np.roll(data["follows"], turn)[place]
        assert found["entry"] == 5 + place
        np.testing.assert_array_equal(found["slope"], 2 * (5 + place) * (np.arange(3) == place))


@pytest.mark.parametrize("language", ["numpy", "torch"])
def test_programs_take_entries_of_products(language: str) -> None:
    """What is not taken is not read: it may be nan."""
    y, w = tc.var("y", 4), tc.var("w", (4, 2))
    places, data = np.array([0, 1, 3, -1]), {"y": np.array([1.0, 2.0, np.nan, 3.0])}
    data["w"] = np.arange(8.0).reshape(4, 2)
    for e, wanted in (
        ((y**2)[places], data["y"][places] ** 2),
        (tc.sum((y**2)[places]), (data["y"][places] ** 2).sum()),
        ((w * y[:, None])[places], (data["w"] * data["y"][:, None])[places]),
    ):
        pytest.importorskip(language)
        program: dict[str, object] = {}
        exec(tc.to_code(e, language, name="f"), program)
        found = program["f"](*[data[name] for name in e.variables])  # type: ignore[operator]
        np.testing.assert_allclose(np.asarray(found), wanted)
        assert "selection" not in str(e)
        assert tc.parse(str(e), **e.variables) is e
