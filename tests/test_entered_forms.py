"""What few programs enter, of rules, laws of forms, extents and groups of axes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.forms.laws import LAWS
from tcalc.graph.applications import root_of
from tcalc.graph.canonical import closure
from tcalc.graph.extent_equations import exactly_divided
from tcalc.graph.extent_forms import (
    is_exact,
    is_nonnegative,
    never_less,
    parsed,
    text_of,
    times,
    value_of,
)
from tcalc.graph.extents import solved_for
from tcalc.graph.nodes import Expr, postorder
from tcalc.graph.normal import bare
from tcalc.integers.affine import Affine, Quotient
from tcalc.integers.elimination import Range
from tcalc.ops.matrix.spectral import trace_function

# The choice among forms, imported for the laws that it puts into their table.
from tcalc.forms.choose import chosen  # isort: skip

A, B, C = (tc.var(name, ("n", "n")) for name in "ABC")
S = tc.var("S", ("n", "n"), symmetric=True)
x, y, z = (tc.var(name, "n") for name in "xyz")
a, b, c = (tc.var(name) for name in "abc")
F = tc.var("F", (2, 3))

_RNG = np.random.default_rng(3)
ROOT = _RNG.uniform(0.3, 1.2, (3, 3))
DATA: dict[str, Any] = {
    **{name: _RNG.uniform(0.3, 1.2, (3, 3)) + 2 * np.eye(3) for name in "ABC"},
    **{name: _RNG.uniform(0.3, 1.2, 3) for name in "xyz"},
    **{name: _RNG.uniform(0.3, 1.2) for name in "abc"},
    "S": ROOT @ ROOT.T + np.eye(3),
    "F": _RNG.normal(size=(2, 3)),
}
D = {name: np.asarray(value) for name, value in DATA.items()}


def value(e: Expr, **changed: Any) -> Any:
    data = DATA | changed
    return e(**{name: data[name] for name in e.variables}, n=3)


def made(name: str, e: Expr) -> list[tuple[Expr, Expr]]:
    """What the law makes of nodes of an expression, beside each."""
    (law,) = [row for row in LAWS if row.name == name]
    nodes = [node for node in postorder([bare(e)]) if root_of(node) in law.on]
    return [(node, new) for node in nodes for new in law.rewrite(node)
            if new is not None and new is not node]  # fmt: skip


def _spectral(g: Callable[[Any], Any]) -> Any:
    w, v = np.linalg.eigh(D["S"])
    return (v * g(w)) @ v.T


def _sym(matrix: Any) -> Any:
    return (matrix + matrix.T) / 2


#: An expression, a law, whether it makes something of it, and the value of the expression.
FORMS: list[tuple[Expr, str, bool, Any]] = [
    (tc.xlogy(A, tc.broadcast_to(tc.exp(x), ("n", "n"))), "xlogy-of-exp", True, D["A"] * D["x"]),
    (tc.xlogy(A, tc.exp(B).T), "xlogy-of-exp", True, D["A"] * D["B"].T),
    (tc.xlogy(A, 2 * tc.exp(B)), "xlogy-of-exp", False, D["A"] * (D["B"] + np.log(2))),
    (x * tc.less(y, z) + x * tc.equal(y, z) / 2, "tie", True, D["x"] * (D["y"] < D["z"])),
    (x * tc.less(y, z) + 3 * tc.equal(y, z) / 2, "tie", False, D["x"] * (D["y"] < D["z"])),
    (x * tc.less(y, z) + z * tc.equal(y, z) / 2, "tie", False, D["x"] * (D["y"] < D["z"])),
    (x * tc.less(y, z) - x * tc.equal(y, z) / 2, "tie", False, D["x"] * (D["y"] < D["z"])),
    (tc.reshape(tc.reshape(F, 6), (3, 2)), "split-of-merged", False, D["F"].reshape(3, 2)),
    (tc.exp(x) * (a + b + c + x + y + z + 1) ** 3 + y * tc.exp(x), "multiples-of-one-exponential",
     False, np.exp(D["x"]) * ((D["a"] + D["b"] + D["c"] + D["x"] + D["y"] + D["z"] + 1) ** 3
                              + D["y"])),
    (tc.linalg.det(tc.einsum("ij,jk,ij->ik", A, A, A)), "det-of-power", False,
     np.linalg.det(D["A"] ** 2 @ D["A"])),
    (tc.linalg.det(A @ A @ A), "det-of-power", True, np.linalg.det(D["A"]) ** 3),
    (tc.linalg.det(tc.einsum("ij,jj->ij", A, A)), "det-of-power", False,
     np.linalg.det(D["A"] * np.diag(D["A"]))),
    (tc.inv(tc.einsum("ij,jk,jk->ik", A, B, A)), "inverse-of-product", False,
     np.linalg.inv(D["A"] @ (D["B"] * D["A"]))),
    (tc.inv(tc.einsum("ij,jj,jk->ik", A, B, C)), "inverse-of-product", False,
     np.linalg.inv(D["A"] * np.diag(D["B"]) @ D["C"])),
    (tc.inv(A.T @ B), "inverse-of-product", True, np.linalg.inv(D["A"].T @ D["B"])),
    (tc.linalg.sym(A @ B @ C), "congruence", False, _sym(D["A"] @ D["B"] @ D["C"])),
    (tc.linalg.sym(A @ B.T), "congruence", False, _sym(D["A"] @ D["B"].T)),
    (tc.linalg.sym(tc.einsum("ik,jk,k->ij", A, B, x)), "congruence", False,
     _sym(D["A"] * D["x"] @ D["B"].T)),
    (tc.linalg.slogdet(c * A)[1], "logdet-of-multiple", False,
     np.linalg.slogdet(D["c"] * D["A"])[1]),
    (tc.linalg.slogdet(-3 * A)[1], "logdet-of-multiple", True, np.linalg.slogdet(3 * D["A"])[1]),
    (tc.linalg.matrix_function(S, lambda t: t * tc.exp(t)), "named-matrix-function", True,
     _spectral(lambda w: w * np.exp(w))),
    (tc.linalg.matrix_function(S, lambda t: tc.sin(t) * tc.exp(t)), "named-matrix-function", False,
     _spectral(lambda w: np.sin(w) * np.exp(w))),
    (trace_function(S, tc.sqrt), "named-trace-function", True, np.trace(_spectral(np.sqrt))),
    (trace_function(S, lambda t: t * tc.exp(t)), "named-trace-function", True,
     np.trace(_spectral(lambda w: w * np.exp(w)))),
    (trace_function(S, tc.log), "named-trace-function", True, np.linalg.slogdet(D["S"])[1]),
    (trace_function(S, tc.sin), "named-trace-function", False, np.trace(_spectral(np.sin))),
]  # fmt: skip


@pytest.mark.parametrize(("e", "law", "applies", "wanted"), FORMS)
def test_laws_apply_where_they_hold(e: Expr, law: str, applies: bool, wanted: Any) -> None:
    np.testing.assert_allclose(value(e), wanted, rtol=1e-10)
    found = made(law, e)
    assert bool(found) == applies
    for node, new in found:
        assert new.shape == node.shape
        np.testing.assert_allclose(value(new), value(node), rtol=1e-10)
    np.testing.assert_allclose(value(chosen(e)), wanted, rtol=1e-10)


def test_logarithms_of_negative_multiples_are_not_opened() -> None:
    """log(-2 y) exists for negative y, where log(2) and log(y) do not both."""
    e = tc.exp(x * tc.log(-2 * y)) + z * tc.exp(x * tc.log(-2 * y))
    at = -D["y"]
    wanted = (1 + D["z"]) * (-2 * at) ** D["x"]
    np.testing.assert_allclose(value(e, y=at), wanted)
    for _, new in made("multiples-of-one-exponential", e):
        np.testing.assert_allclose(value(new, y=at), wanted)
    np.testing.assert_allclose(value(chosen(e), y=at), wanted)


# --- rules ----------------------------------------------------------------------------------------

W, V = np.linalg.eigvalsh(D["A"] @ D["A"].T), np.linalg.eigvalsh(D["A"] + D["A"].T)
_w, _v = tc.linalg.eigvalsh(A @ A.T), tc.linalg.eigvalsh(A + A.T)
_factor = tc.linalg.cholesky(A @ A.T)


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.sum(tc.log(tc.diag(_factor)) + (tc.log(x) + 2 * tc.log(y))),
     np.log(abs(np.linalg.det(D["A"]))) + np.log(D["x"] * D["y"] ** 2).sum()),
    (tc.sum(x * y + (tc.log(x) - tc.log(y))), (D["x"] * D["y"] + np.log(D["x"] / D["y"])).sum()),
    (tc.einsum("kk,ik->i", _factor, _factor),
     np.linalg.cholesky(D["A"] @ D["A"].T) @ np.diag(np.linalg.cholesky(D["A"] @ D["A"].T))),
    (tc.sum(tc.sqrt(_w + _v**2)), np.sqrt(W + V**2).sum()),
    (tc.sum(_w / (9 - _v)), (W / (9 - V)).sum()),
    (tc.sum(_w * tc.exp(-_w)), (W * np.exp(-W)).sum()),
    (tc.exp(y - 2 * tc.logcosh(x)), np.exp(D["y"]) / np.cosh(D["x"]) ** 2),
    (tc.exp(-3 * tc.logcosh(x)), 1 / np.cosh(D["x"]) ** 3),
])  # fmt: skip
def test_rules_keep_values(e: Expr, wanted: Any) -> None:
    np.testing.assert_allclose(value(e), wanted, rtol=1e-9)
    np.testing.assert_allclose(value(tc.simplify(e)), wanted, rtol=1e-9)


N = tc.parse("extent(n)")


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.log(1 + 1 / (3 * (tc.exp(x) + tc.exp(y)))), [0, np.log(7 / 6), 800 - np.log(6)]),
    (tc.log(1 + (3 * (tc.exp(x) + tc.exp(y))) ** 2), [1600 + 2 * np.log(6), np.log(37), 0]),
    (tc.log(1 + (1e9 * (tc.exp(x) + tc.exp(y))) ** 2),
     [1600 + 2 * np.log(2e9), np.log1p(4e18), 0]),
    (tc.log(1 + (N * (tc.exp(x) + tc.exp(y))) ** 2),
     [1600 + 2 * np.log(6), np.log1p(36), 0]),
    (tc.log(1 + tc.sqrt(N * (tc.exp(x) + tc.exp(y)))),
     [400 + np.log(6) / 2, np.log1p(np.sqrt(6)), np.sqrt(6) * np.exp(-400)]),
    (tc.log(tc.exp(x) + 2 + N), [800, np.log(6), np.log(5)]),
    (tc.log(tc.exp(x) + tc.exp(y) + 2 + N + 1 / N),
     [800 + np.log(2), np.log(7 + 1 / 3), np.log(5 + 1 / 3)]),
    (tc.log(tc.exp(x) + (y + 801) + 2), [800, np.log(804), np.log(3)]),
])  # fmt: skip
def test_logarithms_of_sums_far_out(e: Expr, wanted: Any) -> None:
    """Numbers beside sums of exponentials that are infinite, 1, or zero."""
    at = np.array([800.0, 0, -800])
    np.testing.assert_allclose(value(e, x=at, y=at), wanted, rtol=1e-12, atol=1e-300)


def test_sums_of_many_exponentials() -> None:
    """More terms than are taken apart, at points where all are numbers."""
    e = tc.log(sum((tc.exp(k * x) * (k + 1) for k in range(70)), tc.const(0)))
    at = np.array([0.3, 1.5, -4.0])
    terms = np.arange(70)[:, None]
    wanted = scipy.special.logsumexp(terms * at, 0, terms + 1)
    np.testing.assert_allclose(value(e, x=at), wanted, rtol=1e-12)


@pytest.mark.parametrize("other", [(2, 3), (3, 2), (6,), (1,)])
def test_functions_of_axes_that_are_merged(other: tuple[int, ...]) -> None:
    """The same way in both operands, in another one, or in one of them only."""
    given = np.cos(np.arange(float(np.prod(other)))).reshape(other)
    G = tc.var("G", other)
    e = tc.maximum(tc.reshape(F, 6), tc.reshape(G, given.size)) - tc.exp(tc.reshape(F, 6))
    wanted = np.maximum(D["F"].reshape(6), given.reshape(-1)) - np.exp(D["F"].reshape(6))
    np.testing.assert_allclose(e(F=DATA["F"], G=given), wanted)


# --- extents --------------------------------------------------------------------------------------


def _spelled(rng: random.Random, depth: int) -> str:
    """A random extent, of parts that may be negative."""
    if not depth or rng.random() < 0.2:
        return rng.choice(["m", "n", "2*m", "m*n", "n*(n-1)", "3", "n+1", "m-2", "4-n", "1-m"])
    one, two = _spelled(rng, depth - 1), _spelled(rng, depth - 1)
    least = f"min({rng.choice([one, _spelled(rng, 0)])},{_spelled(rng, 0)})"
    ways = [f"({one})//2", f"({one})//3", least, f"{one}+{two}", f"{one}-({two})"]
    ways += [f"2*(({one})//2)+{two}"]
    ways.append(f"({one})*({rng.choice(['m', '2', 'n+1'])})")
    ways.append(f"{rng.choice('234')}*min({_spelled(rng, 0)},{_spelled(rng, 0)})*m")
    return rng.choice(ways)


SIZES = [{"m": m, "n": n} for m, n in itertools.product(range(7), repeat=2)]


def test_bounds_of_extents_hold() -> None:
    """Of random extents: values, text, divisions, and what is said of all sizes."""
    rng = random.Random(11)
    sure = exact = 0
    for _ in range(1000):
        text = _spelled(rng, 3)
        form = parsed(text)
        values = [eval(text, {"min": min}, dict(sizes)) for sizes in SIZES]
        assert [value_of(form, sizes) for sizes in SIZES] == values, text
        assert [value_of(parsed(text_of(form)), sizes) for sizes in SIZES] == values, text
        tops = [value_of(never_less(form), sizes) for sizes in SIZES]
        assert all(top >= max(0, v) for top, v in zip(tops, values, strict=True)), text
        if is_nonnegative(form):
            sure += 1
            assert min(values) >= 0, text
        for divisor in (2, 3):
            if is_exact(form, divisor):
                exact += 1
                assert not any(v % divisor for v in values), text
        other = rng.choice(["n+1", "m-2", "n*m+3", "2*m+n-1", "3"])
        product = times(form, parsed(other))
        found = exactly_divided(product, parsed(other))
        assert found == form, text
        assert exactly_divided(times(parsed(other), Affine.of("q")) + 1, parsed("q")) is None
    assert min(sure, exact) > 30


@pytest.mark.parametrize(("text", "number"), [
    ("2*n+1", 7), ("n*(n-1)//2", 10), ("min(n,3)", 2), ("min(n,3)", 3), ("min(n,3)", 5),
    ("n//2", 4), ("m*n", 12), ("m*n", 0),
])  # fmt: skip
def test_extents_solved_for_one_dimension(text: str, number: int) -> None:
    """Where exactly one size gives the number it is found."""
    values = [eval(text, {"min": min}, {"m": 3, "n": n}) for n in range(50)]
    found = solved_for(text, number, {"m": 3})
    places = [n for n, v in enumerate(values) if v == number]
    assert found == ({"n": places[0]} if len(places) == 1 else {})


def test_ends_of_ranges_beyond_machine_integers() -> None:
    """Beside arrays of values: Python's integers, entry by entry."""
    name, low = Affine.of("i"), Affine.of("j")
    bounds = Range("k", (Quotient(name, 2), Quotient(Affine((), -(2**70)))),
                   (Quotient(name * 3 + low, 4), Quotient(Affine((), 2**65))))  # fmt: skip
    values = np.array([-9, 4, 2**40])
    first, last = bounds.bounds({"i": values, "j": 2**62})
    wanted = [(-(-i // 2), min((3 * i + 2**62) // 4, 2**65)) for i in values.tolist()]
    assert list(zip(np.asarray(first).tolist(), np.asarray(last).tolist(), strict=True)) == wanted
    far = Range("k", (Quotient(name), Quotient(Affine((), 2**64))), (Quotient(Affine((), 2**66)),))
    assert [int(v) for v in np.asarray(far.bounds({"i": values})[0])] == [2**64] * 3


def test_groups_of_permutations() -> None:
    """All that generators make, without the identity; of groups that are too large none."""
    for n in range(2, 7):
        swap, cycle = (1, 0, *range(2, n)), (*range(1, n), 0)
        everything = set(itertools.permutations(range(n))) - {tuple(range(n))}
        small = len(everything) < 120
        assert closure([swap, cycle]) == (tuple(sorted(everything)) if small else ())
        turns = {tuple((k + shift) % n for k in range(n)) for shift in range(1, n)}
        assert closure([cycle]) == tuple(sorted(turns))


p, q = tc.var("p"), tc.var("q")


@pytest.mark.parametrize(("e", "at", "wanted"), [
    (tc.exp(p - tc.logcosh(p)), {"p": 800.0}, 2.0),
    (tc.exp(2 * p - 2 * tc.logcosh(p)), {"p": 800.0}, 4.0),
    (tc.exp(q - 2 * tc.softplus(p)), {"p": 405.0, "q": 800.0}, np.exp(-10)),
    (tc.log(q * tc.exp(p - 2 * tc.softplus(p)) + 5), {"p": 800.0, "q": 800.0}, np.log(5)),
    (1 / (q * tc.exp(p - 2 * tc.softplus(p + 1)) + 5), {"p": 800.0, "q": 800.0}, 0.2),
    (tc.exp(q - p * p / 2 - tc.log_ndtr(p)), {"p": 40.0, "q": 800.0}, 1.0),
])  # fmt: skip
def test_exponents_that_cancel_stay_together(
    e: tc.Expr, at: dict[str, float], wanted: float
) -> None:
    """As factors one of them would be infinite and the other 0."""
    at = {name: np.float64(value) for name, value in at.items()}
    for found in (e, tc.simplify(e), tc.simplify(tc.simplify(e) * 1)):
        np.testing.assert_allclose(found(**at), wanted, rtol=1e-11)
    slope = tc.derivative(e, p)(**at)
    assert np.isfinite(slope)
    points = at["p"] + 1e-4 * np.array([-1, 1])
    low, high = (float(e(**{**at, "p": v})) for v in points)
    np.testing.assert_allclose(slope, (high - low) / 2e-4, rtol=1e-4, atol=1e-8)
