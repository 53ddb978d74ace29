"""Binding, errors, memory limits, aliasing, threads and pickling of compiled functions."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import tcalc as tc
from tcalc.plan.schedule import memory
from tcalc.support import machine
from tcalc.support.errors import MemoryLimitError, ShapeError

X, y, w = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
A = tc.var("A", ("n", "n"))
RNG = np.random.default_rng(0)
XV, YV, WV = RNG.standard_normal((6, 4)), RNG.standard_normal(6), RNG.standard_normal(4)
AV = RNG.standard_normal((4, 4))


# --- calling --------------------------------------------------------------------------------------


def test_nesting_is_kept():
    f = tc.compile({"f": X @ w, "parts": [w, (y @ X, 2 * w)]})
    r = f(X=XV, y=YV, w=WV)
    np.testing.assert_allclose(r["f"], XV @ WV)
    assert isinstance(r["parts"], list)
    assert isinstance(r["parts"][1], tuple)
    np.testing.assert_allclose(r["parts"][1][0], YV @ XV)


def test_ways_to_pass_values():
    e = X @ w
    expected = XV @ WV
    np.testing.assert_allclose(tc.compile(e, args=("w", X))(WV, XV), expected)
    np.testing.assert_allclose(tc.compile(e, args=("w",))(WV, X=XV), expected)
    np.testing.assert_allclose(tc.compile(e)({"X": XV, "w": WV}), expected)
    np.testing.assert_allclose(tc.compile(e, data={"X": XV})(w=WV), expected)
    np.testing.assert_allclose(e(X=XV, w=WV, unused="anything"), expected)
    np.testing.assert_allclose(e({"X": XV}, w=WV), expected)


def test_variables_are_keys_too():
    e, expected = X @ w, XV @ WV
    np.testing.assert_allclose(e({X: XV, w: WV}), expected)
    np.testing.assert_allclose(e({X: XV}, w=WV), expected)
    np.testing.assert_allclose(tc.compile(e)({X: XV, "w": WV}), expected)
    np.testing.assert_allclose(tc.compile(e, data={X: XV})({w: WV}), expected)


@pytest.mark.parametrize("name", ["self", "e", "mapping", "values", "arguments", "roots", "µ"])
def test_any_name_is_a_name(name):
    v = tc.var(name, "n")
    f, value = 2 * v, {name: WV}
    again = tc.compile(f)
    for found in (f(**value), f(value), again(**value), again(value), f({v: WV})):
        np.testing.assert_array_equal(found, 2 * WV)
    for made in (tc.compile(f, data=value)(), tc.compile(f, args=(name,))(WV)):
        np.testing.assert_array_equal(made, 2 * WV)
    s = tc.compile(tc.hessian(v @ v, v), structured=True)
    assert s(**value).shape == (4, 4)
    for plan_for in (again.plan_for, s.plan_for):
        assert str(plan_for(**{name: 4})) == str(plan_for(**{name: (4,)}))


def test_what_depends_on_bound_data_only_is_computed_once():
    r = X @ w - y
    outputs = [tc.hessian(r @ r, w), r @ r, tc.exp(y), X.T, y, tc.sum(tc.exp(X)) * w]
    f = tc.compile(outputs, data={"X": XV, "y": YV})
    expected = [2 * XV.T @ XV, (XV @ WV - YV) @ (XV @ WV - YV), np.exp(YV), XV.T, YV]
    expected.append(np.exp(XV).sum() * WV)
    for _ in range(3):
        for found, right in zip(f(w=WV), expected, strict=True):
            np.testing.assert_allclose(found, right)
            if found.ndim:
                assert not np.shares_memory(found, XV)
                found += 1
    assert "once" in str(f.plan)
    assert "once" not in str(tc.compile(outputs).plan)


def test_calls_that_are_wrong():
    with pytest.raises(TypeError, match="X is bound by data= already"):
        tc.compile(X @ w, data={"X": XV})(X=XV, w=WV)
    f = tc.compile(X @ w, args=("w",))
    with pytest.raises(TypeError, match="X is missing"):
        f(w=WV)
    with pytest.raises(TypeError, match="by position and by keyword"):
        f(WV, w=WV)
    with pytest.raises(TypeError, match="2 positional"):
        f(WV, XV)
    with pytest.raises(ValueError, match="'numpy'"):
        tc.compile(w, backend="abacus")


def test_a_dimension_by_name():
    np.testing.assert_array_equal(tc.eye("n")(n=3), np.eye(3))
    with pytest.raises(TypeError, match="dimension n is not known: pass n="):
        tc.eye("n")()
    with pytest.raises(TypeError, match="whole number"):
        tc.eye("n")(n=2.5)
    with pytest.raises(ShapeError, match="n=3 has extent 3, but w has extent 4"):
        w(w=WV, n=3)


def test_a_variable_that_cancelled_binds_and_is_checked():
    g = tc.grad(tc.trace(A), A)
    np.testing.assert_array_equal(g(A=np.ones((3, 3))), np.eye(3))
    np.testing.assert_array_equal(g(n=3), np.eye(3))
    with pytest.raises(ShapeError):
        g(A=np.ones((3, 2)))
    with pytest.raises(TypeError, match="pass A or n="):
        g()


# --- data -----------------------------------------------------------------------------------------


def test_conversion():
    assert (w + 1)(w=[1, 2]).dtype == np.float64
    assert (w * 2)(w=np.array([True, False])).dtype == np.float64
    np.testing.assert_array_equal((w * 2)(w=np.array([1, 2], ">f8")), [2.0, 4.0])
    np.testing.assert_array_equal((A @ w)(A=AV[::-1, ::-1], w=WV[::-1]), (AV @ WV)[::-1])


def test_dtype_rule():
    c = tc.var("c")
    x32 = WV.astype(np.float32)
    assert (c * w + 1)(c=2.5, w=x32).dtype == np.float32
    assert (c * w)(c=np.float64(2.5), w=x32).dtype == np.float64
    four = tc.var("four", 4)
    assert (four + tc.const([1.0, 2, 3, 4]))(four=x32).dtype == np.float64
    assert (four + tc.const(np.ones(4, np.float32)))(four=x32).dtype == np.float32
    assert (A @ w)(A=AV, w=x32).dtype == np.float64
    assert (w @ w)(w=x32).dtype == np.float32
    assert tc.hessian(tc.sum(w), w)(w=x32).dtype == np.float32


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(4, complex), "w is complex"),
        (np.array([None] * 4), "w is of dtype object"),
        (np.ma.masked_array(np.ones(4)), "w is a masked array"),
        (np.array(list("abcd")), "w is of dtype <U1"),
        ([[1.0], [1.0, 2.0]], "w is not an array"),
        (y, "w is an expression"),
    ],
)
def test_data_that_are_not_numbers(value, message):
    with pytest.raises(TypeError, match=message):
        (2 * w)(w=value)


def test_shapes_that_disagree():
    with pytest.raises(ShapeError, match=r"dimension n: w has extent 3 .* but X has extent 4"):
        (X @ w)(X=XV, w=np.ones(3))
    with pytest.raises(ShapeError, match=r"w has shape \(2, 2\), expected \(n,\)"):
        w(w=np.ones((2, 2)))
    fixed = tc.var("v", 3)
    with pytest.raises(ShapeError, match="v has extent 1 at index 0, expected 3"):
        fixed(v=[1.0])
    with pytest.raises(ShapeError):
        (X @ w)(X=XV, w=np.ones(1))


@pytest.mark.parametrize(
    ("prop", "good", "bad"),
    [
        ("symmetric", AV + AV.T, AV),
        ("positive_definite", AV @ AV.T + np.eye(4), -np.eye(4)),
        ("lower", np.tril(AV), AV),
        ("upper", np.triu(AV), AV),
        ("diagonal", np.diag(WV), AV),
        ("nonnegative", np.abs(AV), AV),
    ],
)
def test_properties_are_checked(prop, good, bad):
    M = tc.var("M", ("n", "n"), **{prop: True})
    np.testing.assert_allclose((M @ w)(M=good, w=WV), good @ WV)
    with pytest.raises(ValueError, match=f"M is declared {prop.replace('_', ' ')}"):
        (M @ w)(M=bad, w=WV)
    with pytest.raises(ValueError, match="M is declared"):
        tc.compile(M @ w, data={"M": bad})
    unchecked = tc.compile(M @ w, check=False)
    np.testing.assert_allclose(unchecked(M=bad, w=WV), bad @ WV)


def test_gradients_are_projected():
    S = tc.var("S", ("n", "n"), symmetric=True)
    L = tc.var("L", ("n", "n"), lower=True)
    s, low = AV + AV.T, np.tril(AV)
    v = tc.var("v", "n")
    outer = np.outer(WV, np.arange(4.0))
    found = tc.grad(w @ S @ v, S)(S=s, w=WV, v=np.arange(4.0))
    np.testing.assert_allclose(found, (outer + outer.T) / 2)
    found = tc.grad(w @ L @ v, L)(L=low, w=WV, v=np.arange(4.0))
    np.testing.assert_allclose(found, np.tril(outer))


# --- results --------------------------------------------------------------------------------------


def test_results_are_fresh_writable_and_unaliased():
    before = AV.copy()
    outputs = [A, A, A.T, 2 * A, A + A.T, tc.zeros(("n", "n")), tc.zeros(("n", "n")), A @ A]
    outputs += [tc.eye("n"), tc.diag(tc.diag(A)), tc.diag(A), A @ A, (A @ A).T]
    results = tc.compile(outputs)(A=AV)
    for k, r in enumerate(results):
        assert r.flags.writeable
        assert not np.shares_memory(r, AV)
        for other in results[:k]:
            assert not np.shares_memory(r, other)
    for r in results:
        r += 1
    np.testing.assert_array_equal(AV, before)


def test_results_do_not_change_with_the_next_call():
    f = tc.compile([X @ w, tc.exp(X @ w), tc.exp(w).T])
    first = f(X=XV, w=WV)
    kept = [r.copy() for r in first]
    f(X=2 * XV, w=-WV)
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)


def test_scalars_are_numpy_scalars():
    c = tc.var("c")
    for e in (w @ w, tc.sum(tc.exp(w)), w @ w + 1):
        assert isinstance(e(w=WV), np.float64)
    assert isinstance((c * 2)(c=1), np.float64)
    assert isinstance(c(c=1.0), np.float64)


def test_read_only_data():
    locked = AV.copy()
    locked.flags.writeable = False
    np.testing.assert_allclose((A @ A + A)(A=locked), AV @ AV + AV)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(tc.log(w)(w=-np.ones(2))).all()
        assert np.isinf((1 / w)(w=np.zeros(2))).all()
        assert np.isinf(tc.exp(w)(w=np.full(2, 1e4))).all()


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("n", [0, 1])
def test_empty_and_single(m, n):
    x, v = np.ones((m, n)), np.ones(n)
    f = tc.sum(tc.exp(X @ w)) + w @ w
    results = tc.compile([f, tc.grad(f, w), tc.hessian(f, w), X @ w, X.T @ X])(X=x, w=v)
    weights = np.exp(x @ v)
    expected = [weights.sum() + v @ v, x.T @ weights + 2 * v]
    expected += [x.T @ np.diag(weights) @ x + 2 * np.eye(n), x @ v, x.T @ x]
    for found, right in zip(results, expected, strict=True):
        assert np.shape(found) == np.shape(right)
        np.testing.assert_allclose(found, right)


# --- limits, threads, pickles, caches -------------------------------------------------------------


@pytest.mark.parametrize(("limit", "count"), [("2GiB", 2**31), ("500MB", 5 * 10**8), (1024, 1024)])
def test_memory_limits_as_text(limit, count):
    fits = int(count**0.5 / 4)
    f = tc.compile(A @ A, memory_limit=limit)
    assert f.plan_for(A=(fits, fits)).peak_bytes <= count
    f(A=np.ones((4, 4)))


def test_over_the_memory_limit():
    f = tc.compile(tc.outer(y, w), memory_limit="1MB")
    with pytest.raises(MemoryLimitError, match=r"7.63 MiB needed.*multiply"):
        f(y=np.ones(1000), w=np.ones(1000))
    with pytest.raises(ValueError, match="memory_limit"):
        tc.compile(w, memory_limit="much")


def test_without_a_limit_the_machine_is_one(monkeypatch):
    f, value = tc.outer(y, w), {"y": np.ones(1000), "w": np.ones(1000)}
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**6)
    message = r"7.6. MiB needed, 977 KiB available; .*multiply.*1000×1000; .*memory_limit="
    for call in (f, tc.compile(f), tc.compile([w, f])):
        with pytest.raises(MemoryLimitError, match=message):
            call(**value)
    assert tc.compile(f, memory_limit="8MB")(**value).shape == (1000, 1000)
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    assert f(**value).shape == (1000, 1000)


def test_memory_of_the_machine(tmp_path):
    files = {
        "memory.max": "max",
        "job/memory.max": "500\n",
        "job/part/memory.max": "max\n",
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/old/memory.limit_in_bytes": "700\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    member = tmp_path / "cgroup"
    member.write_text("9:cpu,memory:/old/inner\n4:cpuset:/job\n0::/job/part\n")
    assert list(machine.group_limits(member, tmp_path)) == [700, 9223372036854771712, 500]
    assert list(machine.group_limits(tmp_path / "none", tmp_path)) == []
    found = machine.machine_memory()
    assert found is None or 2**26 < found < 2**60


def test_threads():
    f = tc.compile([tc.exp(X @ w) * y, X.T @ (y * (X @ w)), tc.hessian(tc.sum(tc.exp(X @ w)), w)])
    cases = []
    for k in range(16):
        rng = np.random.default_rng(k)
        m, n = 20 + k % 3, 5
        values = {"X": rng.random((m, n)), "w": rng.random(n), "y": rng.random(m)}
        cases.append((values, tc.compile(f._outputs)(values)))
    wrong = []

    def work(values, expected):
        for _ in range(50):
            for found, right in zip(f(values), expected, strict=True):
                if not np.array_equal(found, right):
                    wrong.append(values)

    threads = [threading.Thread(target=work, args=case) for case in cases]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_pickle():
    f = tc.compile({"g": tc.grad(tc.sum(tc.exp(X @ w)), w)}, args=("w",), data={"X": XV})
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again(WV)["g"], f(WV)["g"])


def test_evaluation_keeps_no_expression_alive():
    e = tc.exp(w) * 17 + tc.sin(w)
    e(w=WV)
    alive = weakref.ref(e)
    del e
    gc.collect()
    assert alive() is None


def test_plan_for():
    f = tc.compile(X @ w, data={"X": XV})
    assert f.plan.flops == 2 * 6 * 4
    g = tc.compile(X @ w)
    assert "assuming m = 100, n = 100" in str(g.plan)
    plan = g.plan_for(X=(2000, 1000), w=(1000,))
    assert plan.flops == 4e6
    assert "assuming" not in str(plan)
    with pytest.raises(ShapeError):
        g.plan_for(X=(20, 10), w=(11,))
    r = tc.var("B", (2, 3)) @ tc.var("v", 3) - tc.var("u", 2)
    compressed = tc.compile(tc.hessian(r @ r, "v"), structured=True)
    assert compressed.plan_for(B=(2, 3), v=3, u=2).flops == compressed.plan.flops


def test_a_compiled_function_tells_its_arguments_and_results() -> None:
    compiled = tc.compile({"f": X @ w, "g": (w, tc.sum(w))}, args=("w",), data={"X": XV})
    assert repr(compiled) == "<Compiled {'f': (m,), 'g': [(n,), ()]} of w (n,), bound: X>"
    assert repr(tc.compile(X @ w, args=("w",))) == "<Compiled (m,) of w (n,), X (m, n)>"
    assert repr(tc.compile(tc.eye(3))) == "<Compiled (3, 3) of no variables>"
