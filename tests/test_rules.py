"""Every rewrite rule: both sides at special and random points, and it fires on its own left side.

Both sides are evaluated as they stand (not simplified) in double precision, and at 50 digits where
the double is not finite: a rule may turn an overflow into the right number, never into a wrong one.
"""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.numpy.program import BACKEND
from tcalc.graph.nodes import Apply, postorder
from tcalc.graph.normal import einsum, sum_as_given
from tcalc.plan.lowering.make import make_plan
from tcalc.rules import strategy
from tcalc.rules.strategy import ALL_RULES, Rule, simplify
from tests import oracle

SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-310, 2.3e-308, 1e-16, -1e-16, 1.0, -1.0, 0.5]
SPECIAL += [
    36.0,
    -36.0,
    40.0,
    -40.0,
    709.0,
    -709.0,
    745.0,
    -745.0,
    800.0,
    -800.0,
    1e5,
    -1e5,
    1e154,
    -1e154,
]
SPECIAL += [1e160, -1e160, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan]

#: Random points at which doubles differ that are judged in many digits, beside all special ones.
JUDGED = 200

RULES = [pytest.param(r, id=r.name) for r in ALL_RULES]
SCALAR = [pytest.param(r, id=r.name) for r in ALL_RULES if not r.shape]
SHAPED = [pytest.param(r, id=r.name) for r in ALL_RULES if r.shape]


def inside(rule: Rule, x: float) -> bool:
    return np.isnan(x) or rule.domain[0] <= x <= rule.domain[1]


def samples(rule: Rule) -> np.ndarray:
    """Points of the domain: all special ones (in pairs where there are two), and random ones."""
    rng = np.random.default_rng(11)
    special = [x for x in SPECIAL if inside(rule, x)]
    rows = list(itertools.product(special, repeat=rule.arity()))
    scale = 10.0 ** rng.uniform(-3, 2.5, size=(5000, 1))
    spread = rng.normal(size=(5000, rule.arity())) * scale
    rows += [row for row in spread.tolist() if all(inside(rule, x) for x in row)]
    rows += [np.abs(row).tolist() for row in spread if all(inside(rule, x) for x in np.abs(row))]
    return np.array(rows)


def both_sides(rule: Rule, count: int = 3) -> tuple[tc.Expr, tc.Expr, list[str]]:
    names = [f"a{k}" for k in range(rule.arity())]
    known = {"nonnegative": True} if rule.given else {}
    variables = [tc.var(name, rule.shape or count, **known) for name in names]
    left, right = rule.sides(*variables)
    return left, right, names


def as_it_stands(e: tc.Expr, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The value without simplification, which evaluating would do first."""
    plan = make_plan([e], {})
    return BACKEND.bind(plan, np.dtype(float))([arrays[name] for name in plan.inputs])[0]


@pytest.mark.parametrize("rule", SCALAR)
def test_both_sides_agree(rule: Rule) -> None:
    points = samples(rule)
    left, right, names = both_sides(rule, len(points))
    assert len(points) > 1000
    arrays = {name: np.ascontiguousarray(points[:, k]) for k, name in enumerate(names)}
    before, after = as_it_stands(left, arrays), as_it_stands(right, arrays)
    finite = np.isfinite(before) & np.isfinite(after)
    scalars = [tc.var(name) for name in names]
    exact_left = rule.sides(*scalars)[0]
    with np.errstate(invalid="ignore"):
        close = np.abs(before - after) <= 1e-13 * np.maximum(np.abs(before), np.abs(after))
    differing = np.flatnonzero(~(finite & close))
    special = len([x for x in SPECIAL if inside(rule, x)]) ** rule.arity()
    drawn = differing[differing >= special]
    judged = [*differing[differing < special], *drawn[:: 1 + len(drawn) // JUDGED]]
    with mp.workdps(60), mp.workprec(3000):
        for i in judged:
            at = dict(zip(names, points[i].tolist(), strict=True))
            exact = oracle.evaluate(exact_left, at)
            missing = bool(np.any(np.isnan(points[i])))
            dropped = rule.finite and not np.all(np.isfinite(points[i]))
            fine = dropped or right_at(after[i], before[i], exact, missing)
            assert fine, (at, before[i], after[i], mp.nstr(exact))


def right_at(after: float, before: float, exact: mp.mpf, missing: bool) -> bool:
    """Is the right side correct, or at least no worse than the left one?

    Where the left side has no value (infinity times 0), the right one may be its limit; nan stays
    nan.
    """
    if np.isnan(before) and (np.isnan(after) or (mp.isnan(exact) and not missing)):
        return True
    if mp.isnan(exact):
        return bool(after == before)
    if abs(exact) > mp.mpf(1.797e308):
        return bool(abs(after) > 1.79e308 and (after > 0) == (exact > 0))
    tiny = mp.mpf(1e-307)
    error = abs(mp.mpf(float(after)) - exact) if np.isfinite(after) else mp.inf
    worst = abs(mp.mpf(float(before)) - exact) if np.isfinite(before) else mp.inf
    return bool(error <= 1e-12 * abs(exact) + tiny or error <= 2 * worst)


#: Of small matrices a determinant is 0, and what it divides infinite; the right side is finite.
UNDERFLOWS = {"adjugate-over-determinant"}


@pytest.mark.parametrize("rule", SHAPED)
def test_both_sides_agree_on_arrays(rule: Rule) -> None:
    left, right, names = both_sides(rule)
    rng = np.random.default_rng(5)
    for scale in (1e-3 if rule.name in UNDERFLOWS else 1e-150, 1e-3, 1.0, 30.0):
        for _ in range(60):
            arrays = {name: scale * rng.normal(size=rule.shape) for name in names}
            found, wanted = as_it_stands(right, arrays), as_it_stands(left, arrays)
            np.testing.assert_allclose(
                found, wanted, rtol=1e-12, atol=1e-14 + 1e-10 * np.max(np.abs(wanted))
            )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("place", ["alone", "scaled", "inside a sum", "in a batch"])
def test_fires_on_its_own_left_side(rule: Rule, place: str) -> None:
    front = ("m",) if place == "in a batch" and not rule.shape else ()
    known = {"nonnegative": True} if rule.given else {}
    variables = [tc.var(f"a{k}", front + rule.shape, **known) for k in range(rule.arity())]
    left, right = rule.sides(*variables)
    wrap = {
        "alone": lambda e: e,
        "scaled": lambda e: 3 * e,
        "inside a sum": lambda e: tc.cos(e) + 1,
        "in a batch": lambda e: e,
    }[place]
    fired: Counter[str] = Counter()
    found = simplify(wrap(left), fired)
    if left is right:
        pytest.skip("the normal form does it already")
    if rule.name not in fired:
        assert sum(fired.values()), "no rule fires"
        assert found is simplify(wrap(right))
    else:
        assert found is simplify(wrap(right))


def test_the_trace_of_a_matrix_times_its_inverse_is_its_extent() -> None:
    A, batch = tc.var("A", ("n", "n")), tc.var("B", (2, "n", "n"))
    data = np.eye(3) * 2 + np.ones((3, 3))
    for e in (
        tc.trace(tc.linalg.solve(A, A)),
        tc.trace(A @ tc.linalg.inv(A)),
        tc.sum(tc.linalg.inv(A) * A.T),
    ):
        np.testing.assert_allclose(e(A=data), 3, rtol=1e-14)
    both = tc.sum(tc.linalg.inv(batch) * batch.mT, axis=(1, 2))
    np.testing.assert_allclose(both(B=np.stack([data, 2 * data])), [3, 3], rtol=1e-14)


def test_inverses_of_multiples_cancel_also_in_sums() -> None:
    A, B = tc.var("A0", ("k", "n", "n")), tc.var("B0", ("n", "n"))
    s, t = tc.var("s0"), tc.var("t0", "k")
    data, other = np.eye(3) * 2 + np.arange(9.0).reshape(3, 3) % 4, np.arange(9.0).reshape(3, 3)
    values = {
        "A0": np.stack([data, data.T + 1]),
        "B0": other,
        "s0": -3.0,
        "t0": np.array([2.0, -5.0]),
    }
    many, (one, two) = tc.linalg.inv(-2 * t[:, None, None] * A), values["A0"]
    cases = {
        tc.trace(tc.linalg.inv(s * B) @ B) * s: 3,
        tc.linalg.inv(B @ B / s) @ (B @ B): -3 * np.eye(3),
        tc.sum(many * A.mT, axis=(1, 2)): [-3 / 4, 3 / 10],
        tc.trace(tc.linalg.inv(B) @ (B + B @ B)): 3 + np.trace(other),
        tc.trace((tc.linalg.inv(s * B.T) - B).T @ B): -1 - np.trace(other.T @ other),
        tc.sum(A @ (many + B), axis=0): -np.eye(3) / 4 + np.eye(3) / 10 + (one + two) @ other,
    }
    for e, wanted in cases.items():
        found, fired = simplify(e), Counter[str]()
        simplify(e, fired)
        assert {"inverse-times-matrix", "inverse-times-sum"} & fired.keys(), str(e)
        assert not any(
            node.op.name == "inv" for node in postorder([found]) if isinstance(node, Apply)
        )
        np.testing.assert_allclose(found(values), wanted, rtol=1e-12)


@pytest.mark.parametrize("out", ["i", "bi", "ib", "b", ""])
def test_a_batch_may_be_summed_along_a_diagonal_of_its_items(out: str) -> None:
    """The column of an item that is its own number: i is b, and neither is summed twice."""
    B, x = tc.var("B1", ("n", "n", "n")), tc.var("x1", "n")
    items = np.eye(3) * 3 + np.arange(27.0).reshape(3, 3, 3) % 5
    values = {"B1": items, "x1": np.array([1.0, 2.0, 4.0])}
    inverses = np.linalg.inv(items)
    plain = tc.einsum(f"bij,bjb->{out}", tc.linalg.inv(B), B)
    scaled = tc.einsum(f"bij,bjb->{out}", tc.linalg.inv(x[:, None, None] * B), B)
    wanted = np.einsum(f"bij,bjb->{out}", inverses, items)
    np.testing.assert_allclose(plain(values), wanted, atol=1e-13)
    wanted = np.einsum(f"bij,bjb,b->{out}", inverses, items, 1 / values["x1"])
    np.testing.assert_allclose(scaled(values), wanted, atol=1e-13)


def test_inverses_of_other_products_stay() -> None:
    """Scales of rows or columns, entrywise products and other items of a batch do not cancel."""
    A, B = tc.var("A2", ("k", "n", "n")), tc.var("B2", ("n", "n"))
    v, t, u = tc.var("v2", "n"), tc.var("t2", "k"), tc.var("u2", "k")
    data = np.eye(3) * 3 + np.arange(9.0).reshape(3, 3) % 4
    values = {
        "A2": np.stack([data, data.T + 1, data + 2]), "B2": data, "u2": np.array([1.0, 2.0, 3.0]),
        "v2": np.array([2.0, -3.0, 5.0]), "t2": np.array([2.0, -5.0, 0.5]),
    }  # fmt: skip
    a, b, w, s = (values[name] for name in ("A2", "B2", "v2", "t2"))
    cases = {
        tc.linalg.inv(B * v) @ B: np.linalg.inv(b * w) @ b,
        tc.linalg.inv(B / v[:, None]) @ B: np.linalg.inv(b / w[:, None]) @ b,
        tc.linalg.inv(B * B.T) @ B: np.linalg.inv(b * b.T) @ b,
        tc.linalg.inv(B * tc.diagonal(B)) @ B: np.linalg.inv(b * np.diag(b)) @ b,
        tc.trace(tc.linalg.inv(B * v) @ (B + B @ B)): np.trace(np.linalg.inv(b * w) @ (b + b @ b)),
        tc.einsum("kij,lji->", tc.linalg.inv(t[:, None, None] * A), A): sum(
            [np.trace(np.linalg.inv(x * y) @ z) for x, y in zip(s, a, strict=True) for z in a]
        ),
    }
    for e, wanted in cases.items():
        np.testing.assert_allclose(simplify(e)(values), wanted, rtol=1e-11, atol=1e-13)
    divided = tc.einsum("k,kij,kji->", u, tc.linalg.inv(A / t[:, None, None]), A)
    assert not any(isinstance(node, Apply) for node in postorder([simplify(divided)]))
    np.testing.assert_allclose(simplify(divided)(values), 3 * (values["u2"] @ s), rtol=1e-12)


#: Of all rules: one that is gone is tested by nothing else.
NAMES = """
    abs-of-positive abs-squared adjugate-over-determinant cholesky-of-diagonal collect-powers
    det-of-diagonal entries-at-places exp-of-log exp-times-exp-of-minus exp-times-sigmoid
    exponentials-in-a-product factor-of-what-cancels inv-of-diagonal inverse-from-factors
    inverse-of-definite inverse-of-definite-diagonal inverse-of-triangle
    inverse-of-triangular-diagonal inverse-times-matrix inverse-times-sum log-diagonal-of-factor
    log-of-exp log-of-exponentials log-of-power log-of-product log10-of-exponentials
    log1p-of-exponentials log2-of-exponentials logdet-of-definite logdet-of-definite-diagonal
    logdet-of-diagonal logdet-of-triangle logsumexp-of-merged matrix-from-factors max-of-merged
    min-of-merged norm-squared norm2-of-merged normal-density-over-distribution one-minus-erf
    one-minus-normal one-minus-sigmoid one-minus-tanh one-minus-tanh-squared one-plus-erf
    one-plus-tanh over-exponentials power-of-exponentials power-of-power prod-of-merged
    product-by-places product-of-merged pythagoras root-of-squares shares shift-of-log-sum sigmoid
    sigmoid-difference sign-of-diagonal sign-times-abs spectral spectral-trace split-of-merged
    sqrt-of-square sqrt-squared sum-of-merged sum-of-shares sum-of-split times-its-choice
    times-its-sign
"""


def test_names_are_unique_and_rules_are_reached() -> None:
    assert sorted(r.name for r in ALL_RULES) == NAMES.split()
    assert len({r.name for r in ALL_RULES}) == len(ALL_RULES)
    registered = [r for group in strategy.RULES_BY_ROOT.values() for r in group]
    assert sorted(r.name for r in registered) == sorted(r.name for r in ALL_RULES)


@pytest.mark.parametrize("rule", RULES)
def test_simplify_is_idempotent_and_pickles(rule: Rule) -> None:
    left, _, _ = both_sides(rule)
    once = simplify(left)
    assert simplify(once) is once
    assert pickle.loads(pickle.dumps(once)) is once


def test_products_of_many_sums_are_compared_once() -> None:
    """Not once for each of their factors, which took minutes."""
    sums = [tc.var(f"many{k}") + 1 for k in range(400)]
    words: list[tuple[int, ...]] = [()] * (len(sums) + 1)
    terms = [einsum([*sums, tc.sin(tc.var(f"own{k}"))], words, ()) for k in range(30)]
    e = sum_as_given(terms)
    assert simplify(e) is e


def test_an_expression_remembers_what_rules_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    e = tc.sin(tc.sqrt(tc.var("remembered", "n") ** 2)) + tc.var("remembered", "n")
    (first,), began, one_pass = strategy.simplified([e]), list[Any](), strategy._one_pass
    assert first is not e

    def counted(roots: Any, *more: Any) -> Any:
        began.extend(roots)
        return one_pass(roots, *more)

    monkeypatch.setattr(strategy, "_one_pass", counted)
    assert strategy.simplified([e])[0] is strategy.simplified([first])[0] is first
    assert all(root is first for root in began)
    assert len(began) == 2


#: What must be found, in several spellings: text and the node that all of them become.
STABLE = [
    (lambda x: tc.log(1 + tc.exp(x)), tc.softplus),
    (lambda x: tc.log1p(tc.exp(x)), tc.softplus),
    (lambda x: tc.log(tc.exp(x) + 1), tc.softplus),
    (lambda x: 1 / (1 + tc.exp(-x)), tc.sigmoid),
    (lambda x: tc.exp(x) / (1 + tc.exp(x)), tc.sigmoid),
    (lambda x: 1 - tc.sigmoid(-x), tc.sigmoid),
    (lambda x: tc.log(1 / (1 + tc.exp(-x))), lambda x: -tc.softplus(-x)),
    (lambda x: tc.log(tc.sigmoid(x)), lambda x: -tc.softplus(-x)),
    (lambda x: tc.log(tc.sum(tc.exp(x))), tc.logsumexp),
    (lambda x: tc.exp(x) / tc.sum(tc.exp(x)), tc.softmax),
]


@pytest.mark.parametrize(("spelling", "stable"), STABLE)
def test_unstable_spellings_become_one_stable_node(spelling, stable) -> None:
    x = tc.var("x", "n")
    assert simplify(spelling(x)) is simplify(stable(x))


#: Stable forms inside derivatives: finite at arguments where the formula as written is not.
FINITE = [
    ("log(1 + exp(x))", lambda x: tc.sum(tc.log(1 + tc.exp(x)))),
    ("log sigmoid", lambda x: tc.sum(tc.log(1 / (1 + tc.exp(-x))))),
    ("logsumexp", lambda x: tc.log(tc.sum(tc.exp(x)))),
    ("logistic with labels", lambda x: tc.sum(tc.log(1 + tc.exp(-tc.const([1.0, -1, 1]) * x)))),
    ("softmax", lambda x: tc.sum(tc.exp(x) / tc.sum(tc.exp(x)) * tc.const([1.0, 2, 3]))),
    ("norm at zero", lambda x: tc.norm(0 * x + x) ** 2),
    ("sigmoid", lambda x: tc.sum(1 / (1 + tc.exp(-x)))),
]


@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
@pytest.mark.parametrize(("name", "build"), FINITE)
def test_derivatives_of_unstable_spellings_are_finite(name: str, build, mode: str) -> None:
    x = tc.var("x", 3)
    f = build(x)
    for at in ([800.0, -800.0, 0.0], [0.0, 0.0, 0.0], [1e4, 1e4, -1e4], [-750.0, -760.0, -770.0]):
        for order in (1, 2, 3):
            assert np.all(np.isfinite(tc.derivative(f, x, order, mode)(x=np.array(at)))), (
                at,
                order,
            )


def test_sums_of_exponentials_stay_where_nothing_below_them_is_alike() -> None:
    """A product of kernels is one whatever its scale is, and no mean of weights."""
    W, x, y = tc.var("W", ("m", "n")), tc.var("x", "n"), tc.var("y", "m")
    a, b, c = tc.var("a"), tc.var("b"), tc.var("c")
    exp = tc.exp
    for e, text in (
        (exp(-W) @ x / exp(c), "exp(-c)*exp(-W)*x"),
        (W @ exp(x) / (1 + exp(y)), "(W*exp(x)) .* sigmoid(-y)"),
        ((x @ exp(x)) ** 2 / (1 + exp(c)) ** 2, "sigmoid(-c)^2*(x'*exp(x))^2"),
        (x @ exp(x) / tc.sqrt(1 + exp(c)), "exp(-softplus(c)/2)*x'*exp(x)"),
        (W @ exp(x) / tc.sum(exp(x)), "W*softmax(x)"),
        (tc.sum(exp(x)) / tc.sum(exp(y)), "exp(logsumexp(x) - logsumexp(y))"),
        (
            x @ exp(-(x**2)) / tc.sum(exp(x)),
            "exp(logsumexp(-x.^2) - logsumexp(x))*x'*softmax(-x.^2)",
        ),
        (x @ exp(x) * exp(a) / exp(b), "exp(a - b)*x'*exp(x)"),
        (
            exp(a) * (exp(-c * exp(b)) - exp(-c * exp(a))) / (exp(a) - exp(b)),
            "exp(a)*(exp(-c*exp(b)) - exp(-c*exp(a)))/(exp(a) - exp(b))",
        ),
    ):
        assert str(simplify(e)) == text
