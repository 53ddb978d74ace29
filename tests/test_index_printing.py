"""What `to_index` prints: the paper's form, and texts that parse back to equal values."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.normal import bare
from tests.cases import CASES, EXTENTS, Case
from tests.index_programs import OutsideError
from tests.index_random import Maker
from tests.test_index_language import PAPER, SHAPES

FIRST = "exp(-sum[l=0..4](c[{0}, {0}]*(a[{0}, l] + b[{1}, l])^2 + d[{2}]^3))"
BATCHES, EACH = 8, 15


def equal(e: tc.Expr, data: dict[str, Any], shapes: dict[str, Any] | None = None) -> bool:
    """Does the text parse back to the same values? The result says whether to the same node."""
    text = tc.to_index(e, computed=True)
    found = tc.parse_index(text, **(shapes or {}), **(e.variables if shapes is None else {}))
    wanted = e(data)
    values = found(data)
    assert values.shape == wanted.shape
    scale = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    np.testing.assert_allclose(values, wanted, rtol=1e-8, atol=1e-9 * scale)
    return found is bare(e)


# --- the paper ------------------------------------------------------------------------------------


def test_derivatives_of_the_paper() -> None:
    f = tc.parse_index(PAPER, **SHAPES)
    df = tc.var("df", (3, 4))
    da, db, dc, dd = [tc.to_index(tc.vjp(f, name, df)) for name in "abcd"]
    first = FIRST.format("i", "k", "i+l")
    assert tc.to_index(f) == (
        "f[i=0..2, j=0..3] = "
        "exp(-sum[k=0..4](c[i, i]*(a[i, k] + b[j, k])^2 + d[i+k]^3))"
    )  # fmt: skip
    assert da == (
        "f[i=0..2, j=0..4] = "
        f"-2*c[i, i]*sum[k=0..3](df[i, k]*(a[i, j] + b[k, j])*{first})"
    )  # fmt: skip
    assert db == (
        "f[i=0..3, j=0..4] = "
        f"-2*sum[k=0..2](c[k, k]*df[k, i]*(a[k, j] + b[i, j])*{FIRST.format('k', 'i', 'k+l')})"
    )
    assert dc == (
        "f[i=0..2, j=0..2] = -[i == j]*sum[k=0..3, l=0..4]"
        f"(df[i, k]*(a[i, l] + b[k, l])^2*{first.replace('l', 'm')})"
    )
    assert dd == (
        "f[i=0..7] = -3*sum[j=max(0,i-2)..min(4,i)]"
        f"(d[i]^2*sum[k=0..3](df[i-j, k]*{FIRST.format('i-j', 'k', 'i+l-j')}))"
    )
    rng = np.random.default_rng(3)
    data = {name: 0.3 * rng.normal(size=shape) for name, shape in SHAPES.items()}
    data["df"] = rng.normal(size=(3, 4))
    for name in SHAPES:
        assert equal(tc.vjp(f, name, df), data) or name == "d"
        assert equal(tc.hessian(tc.sum(f), name), data) or name == "d"


def test_quotients_are_written_with_a_line_and_signs_once() -> None:
    w, y = tc.var("w", "n"), tc.var("y", "n")
    assert tc.to_index(-w / -y) == "f[i=0..n-1] = w[i]/y[i]"
    assert tc.to_index(w / (2 * (1 - y) ** 2)) == "f[i=0..n-1] = w[i]/(2*(1 - y[i])^2)"
    assert tc.to_index(-3 * w / 4 / tc.norm(y)) == "f[i=0..n-1] = -3*w[i]/(4*norm2[j=0..n-1](y[j]))"
    assert tc.to_index(w / -tc.exp(y) * 2) == "f[i=0..n-1] = -2*w[i]/exp(y[i])"
    computed = tc.to_index(tc.grad(tc.norm(w), w), computed=True)
    assert computed == "f[i=0..n-1] = w[i]*reciprocal0(norm2[j=0..n-1](w[j]))"


def guarded_quotients() -> list[tc.Expr]:
    x, y, a = tc.var("x", "n"), tc.var("y", "n"), tc.var("a")
    ratio = tc.sum(x[1:] / x[:-1])
    return [
        tc.pad(1 / x, 1), tc.pad(x / y, 1), tc.concatenate([x / y, tc.var("z", "m")]),
        tc.grad(ratio, x), tc.hessian(ratio, x), tc.grad(tc.sum(1 / y[1:]), y),
        tc.grad(tc.sum(tc.sqrt(1 + tc.diff(x) ** 2)), x), tc.grad(tc.sum(tc.log(y[1:])), y),
        tc.grad(tc.sum(x[1:] * x[:-1] / (a + x[1:])), x),
    ]  # fmt: skip


@pytest.mark.parametrize("e", guarded_quotients(), ids=str)
def test_guards_protect_what_stands_below_the_line(e: tc.Expr) -> None:
    given = {"x": [0.7, -1.2, 0.4], "y": [0.0, 0.5, -1.5], "z": [1.0, 2.0], "a": 2.0}
    data = {name: given[name] for name in e.variables}
    for write, read in ((tc.to_index, tc.parse_index), (tc.to_einsum, tc.parse_einsum)):
        again = read(write(e), **e.variables)
        np.testing.assert_allclose(again(data), e(data), rtol=1e-12, err_msg=write(e))


# --- texts word by word ---------------------------------------------------------------------------

x, y, w = tc.var("x", "n"), tc.var("y", "m"), tc.var("w", 3)
A, s = tc.var("A", ("n", "n")), tc.var("s")
idx = tc.var("idx", "k", integer=True)

TEXTS = [
    (s, "f = s"),
    (2 * s - 1, "f = 2*s - 1"),
    (-(x / s) ** 2, "f[i=0..n-1] = -x[i]^2/s^2"),
    (x[1:] - x[:-1], "f[i=0..n-2] = x[i+1] - x[i]"),
    (x[::-1], "f[i=0..n-1] = x[n-i-1]"),
    (A.T, "f[i=0..n-1, j=0..n-1] = A[j, i]"),
    (tc.eye("n"), "f[i=0..n-1, j=0..n-1] = [i == j]"),
    (tc.trace(A), "f = sum[i=0..n-1](A[i, i])"),
    (A @ x, "f[i=0..n-1] = sum[j=0..n-1](A[i, j]*x[j])"),
    (tc.mean(x), "f = sum[i=0..n-1](x[i])/n"),
    (tc.maximum(x, 0), "f[i=0..n-1] = maximum(x[i], 0)"),
    (tc.max(A, axis=1), "f[i=0..n-1] = max[j=0..n-1](A[i, j])"),
    (tc.where(x > 0, x, 2), "f[i=0..n-1] = where([0 < x[i]], x[i], 2)"),
    (tc.zeros(("n", 2)), "f[i=0..n-1, j=0..1] = 0"),
    (w * np.array([1.0, 0.0, -2.0]), "f[i=0..2] = w[i]*([i == 0] - 2*[i == 2])"),
    (tc.vjp(w[::2], "w", tc.var("u", 2)),
     "f[i=0..2] = sum[j=ceil(i/2)..floor(i/2)](u[j])"),
    (tc.take(x, idx), "f[i=0..k-1] = x[idx[i]]"),
    (tc.linalg.inv(A), "f[i=0..n-1, j=0..n-1] = inv(A)[i, j]"),
    (tc.linalg.det(A @ A),
     "f = det(A)^2"),
    (tc.logsumexp(x) + tc.norm(y), None),
    (tc.cumsum(x), "f[i=0..n-1] = cumsum(x)[i]"),
    (tc.linalg.svd(tc.var("M", (4, 3)))[1], "f[i=0..2] = svd_s(M, raise)[i]"),
]  # fmt: skip


@pytest.mark.parametrize(("e", "text"), TEXTS, ids=[str(k) for k, _ in enumerate(TEXTS)])
def test_texts(e: tc.Expr, text: str | None) -> None:
    printed = tc.to_index(e)
    assert text is None or printed == text
    rng = np.random.default_rng(4)
    shapes = {"x": "n", "y": "m", "idx": idx} | e.variables
    sizes = {"n": 5, "m": 4, "k": 6}
    data: dict[str, Any] = {
        name: rng.uniform(0.5, 2, [sizes.get(n, n) for n in v.shape])  # type: ignore[call-overload]
        for name, v in e.variables.items()
    }
    data |= {"idx": np.array([0, 4, 1, 1, 3, 0])}
    found = tc.parse_index(printed, **shapes)
    np.testing.assert_allclose(found(sizes | data), e(sizes | data), rtol=1e-10)


def test_names_that_are_taken() -> None:
    f, i = tc.var("f", "j"), tc.var("i", ())
    assert tc.to_index(f * i) == "f1[k=0..j-1] = f[k]*i"
    with pytest.raises(tc.UnsupportedError, match="sum binds indices"):
        tc.to_index(tc.var("sum", 3) * 2)
    with pytest.raises(tc.UnsupportedError, match=r"constant array of shape \(100,\)"):
        tc.to_index(tc.const(np.arange(100.0)) * tc.var("x", 100))
    with pytest.raises(TypeError, match="one expression"):
        tc.to_index({f, i})  # type: ignore[arg-type]


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_parse_back(case: Case) -> None:
    e, data = case.expression(), {**EXTENTS, **case.sample()}
    equal(e, data)
    for name in [n for n in case.targets if n in e.variables][:2]:
        jacobian = tc.jacobian(e, name)
        equal(jacobian, data)
        if case.order > 1:
            equal(tc.jacobian(jacobian, name), data)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_parse_back(batch: int) -> None:
    for seed in range(1000 + EACH * batch, 1000 + EACH * (batch + 1)):
        p = Maker(seed).program()
        if not p.sound:
            continue
        data: dict[str, Any] = {**p.values(np.random.default_rng(seed)), **p.sizes}
        try:
            e = tc.parse_index(p.text, **p.shapes())
            e(data)
        except (tc.ShapeError, OutsideError):
            continue
        held = tc.var("held", e.shape)
        data["held"] = np.random.default_rng(seed).normal(size=e(data).shape)
        shapes = {**p.shapes(), "held": held}
        try:
            equal(e, data, shapes)
            for name in e.variables:
                gradient = tc.grad(tc.sum(held * e), e.variables[name])
                equal(gradient if seed % 2 else tc.jacobian(e, name), data, shapes)
        except Exception as error:
            error.add_note(f"seed {seed}\n{p.text}\n{p.shapes()} {p.sizes}")
            raise


def test_shared_and_deep_expressions() -> None:
    e: tc.Expr = x
    for _ in range(40):
        e = e * tc.sin(e)
    text = tc.to_index(e)
    assert len(text) < 10_000
    data = {"x": np.linspace(0.1, 1, 5)}
    np.testing.assert_allclose(tc.parse_index(text, x="n")(data), e(data), rtol=1e-12)
    e = x
    for _ in range(5_000):
        e = tc.tanh(e) + 1
    text = tc.to_index(e)
    with tc.limits(nodes=1_000_000, steps=1_000_000_000):
        read = tc.parse_index(text, x="n")
    np.testing.assert_allclose(read(data), e(data), rtol=1e-12)


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("weight", [3.0, -1.0])
def test_sums_are_compared_as_they_are_written_where_indices_are_equal(
    name: str, weight: float
) -> None:
    """`x + 3*x` is rounded otherwise than `4*x`, `(x - 1) + 1` otherwise than `x`."""
    data = {"x": np.array([0.1, 0.7, 1.3, 2.9])}
    row, column = tc.expand_dims(x, 1), tc.expand_dims(x, 0)
    pick = getattr(tc, name)
    for e in (row + weight * column, tc.diag(tc.cos(x) - 1) + 1, 0.1 + weight * row * column):
        found = tc.diag(e == tc.expand_dims(pick(e, axis=1), 1))
        np.testing.assert_array_equal(tc.parse_index(tc.to_index(found), x="n")(data), found(data))
        by = tc.jacobian(pick(e, axis=1), "x")
        np.testing.assert_allclose(
            tc.parse_index(tc.to_index(by), x="n")(data), by(data), atol=1e-12
        )


def test_texts_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import tcalc as tc; f = tc.parse_index("
        f"'{PAPER}', a=(3,5), b=(4,5), c=(3,3), d=8); "
        "print(tc.to_index(tc.hessian(tc.sum(f), 'd')))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("f = sum[i,j]([i < j]/A[i,j])", "f = sum[i=0..n-2, j=i+1..n-1](1/A[i, j])"),
        ("f = sum[i,j]([i < j]/(x[i]*x[j]))", "f = sum[i=0..n-2, j=i+1..n-1](1/(x[i]*x[j]))"),
        ("f = sum[i](exp(sum[j]([i < j]/A[i,j])))",
         "f = sum[i=0..n-1](exp(sum[j=i+1..n-1](1/A[i, j])))"),
        ("f[i] = 2*[i < n-1]/x[i]", "f[i=0..n-1] = 2*[n >= i+2]/x[i]"),
    ],
)  # fmt: skip
def test_conditions_over_a_line_are_kept(text: str, shown: str) -> None:
    e = tc.parse_index(text, A=("n", "n"), x="n")
    assert tc.to_index(e) == shown
    at = {
        v: np.random.default_rng(0).uniform(0.5, 2, (4,) * e.variables[v].ndim) for v in e.variables
    }
    np.testing.assert_allclose(
        tc.parse_index(shown, A=("n", "n"), x="n")(**at), e(**at), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sum(ndtr(x))", "f[i=0..n-1] = exp(-x[i]^2/2)/sqrt(2*pi)"),
        ("sum(erf(x))", "f[i=0..n-1] = 2*exp(-x[i]^2)/sqrt(pi)"),
        ("sum(log2(x))", "f[i=0..n-1] = 1/(log(2)*x[i])"),
        ("sum(sin(pi*x/180))", "f[i=0..n-1] = pi*cos(pi*x[i]/180)/180"),
    ],
)
def test_constants_are_written_by_their_names(text: str, shown: str) -> None:
    slope = tc.grad(tc.parse(text, x="n"), "x")
    assert tc.to_index(slope) == shown
    at = np.array([0.3, 1.7])
    np.testing.assert_allclose(tc.parse_index(shown, x="n")(x=at), slope(x=at), rtol=1e-15)


def test_a_variable_named_pi_is_no_number() -> None:
    e = tc.grad(tc.parse("pi*sum(ndtr(x))", pi=(), x="n"), "x")
    at = {"pi": 0.25, "x": np.array([0.3, -1.1])}
    texts = tc.parse(str(e), pi=(), x="n"), tc.parse_index(tc.to_index(e), pi=(), x="n")
    for read in (*texts, tc.parse_einsum(tc.to_einsum(e), pi=(), x="n")):
        np.testing.assert_allclose(read(at), e(at), rtol=1e-15)
    assert "0.39894" in tc.to_latex(e)
