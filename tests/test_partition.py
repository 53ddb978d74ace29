"""Which expressions parts of the rows give: passes run by hand, part by part, give their values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Derivative, Var
from tcalc.graph.operators import Op
from tcalc.partition.combinations import COMBINATIONS
from tcalc.partition.found import ByRows
from tcalc.partition.passes import Passes
from tcalc.partition.split import split
from tests import row_models
from tests.row_models import CASES, REFUSED, ROWS


def value_of(e: tc.Expr) -> tc.Expr:
    return e.inner if isinstance(e, Derivative) else tc.simplify(e)


def passes_of(*roots: tc.Expr) -> Passes:
    values = [value_of(root) for root in roots]
    found = {v: v.shape.index("m") for e in values for v in e.variables.values() if "m" in v.shape}
    return split(values, found)


def run_by_hand(passes: Passes, values: dict[str, Any], bounds: list[int]) -> list[Any]:
    """The passes part by part, each expression evaluated by itself."""
    axes = {v.name: axis for v, axis in passes.rows.items()}
    env = {name: value for name, value in values.items() if name not in axes} | {"m": bounds[-1]}
    slices = list(pairwise(bounds))

    def part(value: Any, axis: int, k: int) -> Any:
        return np.take(value, range(*slices[k]), axis)

    def evaluated(e: tc.Expr, k: int) -> Any:
        known: dict[str, Any] = dict(env)
        known |= {name: part(values[name], axis, k) for name, axis in axes.items()}
        for v, one in passes.made.items():
            if v.name in e.variables:
                known[v.name] = evaluated(one.expr, k)
        for v in passes.needed([e]):
            known[v.name] = passes.value_of(v).expr(**env)
            if v in passes.sliced:
                known[v.name] = part(known[v.name], passes.sliced[v].axis, k)
                if passes.sliced[v].places:
                    (known[v.name],) = np.nonzero(known[v.name])
        return e(**known)

    for number in range(passes.number):
        results: dict[str, Any] = {}
        for r in passes.reduced_in(number):
            parts = [tuple([evaluated(e, k) for e in r.parts]) for k in range(len(slices))]
            whole = parts[0]
            for more in parts[1:]:
                whole = COMBINATIONS[r.op].combine(whole, more, False)
            results |= {v.name: found for v, found in zip(r.results, whole, strict=True)}
        env |= results
    return [
        np.concatenate([evaluated(one.expr, k) for k in range(len(slices))], one.axis)
        if isinstance(one, ByRows)
        else one.expr(**env)
        for one in passes.outputs
    ]


@pytest.mark.parametrize("op", COMBINATIONS, ids=str)
def test_parts_are_written_to_only_where_they_are_owned(op: Op | None) -> None:
    rng = np.random.default_rng(0)
    one, other = [tuple([rng.uniform(1, 2, (3, 4)) for _ in range(2)]) for _ in range(2)]
    before = [a.copy() for a in (*one, *other)]
    apart = COMBINATIONS[op].combine(one, other, False)
    assert all(map(np.array_equal, (*one, *other), before))
    owned = COMBINATIONS[op].combine(one, other, True)
    assert all(map(np.array_equal, owned, apart))
    assert all(map(np.array_equal, other, before[2:]))


@pytest.mark.parametrize("name", CASES)
def test_passes_over_parts_of_the_rows_give_the_value(name: str) -> None:
    e, values = CASES[name], row_models.data()
    rows = row_models.by_rows(values, value_of(e))
    if not rows:
        pytest.skip("nothing of it is by rows")
    used = {k: v for k, v in values.items() if k in [*e.variables, "g"]}
    extents = {
        name: n
        for v in e.variables.values()
        for name, n in zip(v.shape, np.shape(values[v.name]), strict=True)
        if isinstance(name, str)
    }
    for bounds in ([0, ROWS], [0, 1, 9, ROWS]):
        (found,) = run_by_hand(passes_of(e), used | extents, bounds)
        np.testing.assert_allclose(found, e(**used), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_part_gives_is_refused_by_name(name: str) -> None:
    e, node, why = REFUSED[name]
    with pytest.raises(tc.PartitionError) as caught:
        passes_of(e)
    assert isinstance(caught.value, TypeError)
    assert node in str(caught.value).partition(" cannot be computed from parts")[0]
    assert why in str(caught.value)
    assert "the rows (m)" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("logistic, hessian", 1), ("softmax, hessian", 1), ("solve", 1), ("mean of squares", 1),
        ("variance", 2), ("slopes of logsumexp", 2), ("standardised", 2), ("predictions", 0),
        ("slopes of the largest", 2), ("groups' sums", 1), ("without data", 0),
    ],
)  # fmt: skip
def test_passes_are_as_few_as_the_formula_allows(name: str, passes: int) -> None:
    e = value_of(CASES[name])
    if "m" not in [n for v in e.variables.values() for n in v.shape]:
        assert passes == 0
        return
    assert passes_of(e).number == passes


def test_value_gradient_and_hessian_share_one_pass() -> None:
    found = passes_of(*row_models.derivatives("logistic").values())
    assert found.number == 1
    assert len(found.reductions) == 3


def test_terms_without_the_data_are_not_sent_to_its_parts() -> None:
    found = passes_of(row_models.derivatives("ridge")["value"])
    (reduction,) = found.reductions
    assert "c" not in reduction.parts[0].variables


def test_the_mean_divides_by_the_count_of_all_rows() -> None:
    (reduction,) = passes_of(tc.mean(row_models.y)).reductions
    assert "rows" not in str(reduction.parts[0])


def test_a_dimension_in_numbers_is_cut_as_one_with_a_name() -> None:
    A, v = tc.var("A", (12, 3)), tc.var("v", (12,))
    passes = split([tc.simplify(tc.mean(v) + tc.sum(tc.exp(A)))], {A: 0, v: 0})
    rng = np.random.default_rng(1)
    values = {"A": rng.normal(size=(12, 3)), "v": rng.normal(size=12)}
    (found,) = run_by_hand(passes, values, [0, 5, 12])
    np.testing.assert_allclose(found, values["v"].mean() + np.exp(values["A"]).sum(), rtol=1e-13)


def test_weights_of_zero_and_large_exponents_combine() -> None:
    x, v = tc.var("x", ("m",)), tc.var("v", ("m",))
    e = tc.weighted_logsumexp(x, v)
    values = {"x": np.array([1e4, 900.0, -5e3, 899.0]), "v": np.array([0.0, 2.0, 1.0, -1.0])}
    (found,) = run_by_hand(split([e], {x: 0, v: 0}), values, [0, 1, 2, 4])
    np.testing.assert_allclose(found, 900 + np.log(2 - np.exp(-1.0)), rtol=1e-14)


def test_passes_say_what_they_compute() -> None:
    text = str(passes_of(CASES["solve"], CASES["variance"]))
    assert "2 passes over the rows (m) of X, y" in text
    assert "X'*X" in text
    assert "at last: inv(" in text


def test_variables_of_parts_have_names_of_their_own() -> None:
    rows, result = tc.var("rows", ("m",)), tc.var("result", ("m",))
    passes = split([tc.sum(rows * result)], {rows: 0, result: 0})
    names = {v.name for r in passes.reductions for v in r.results} | {passes.extent}
    assert names.isdisjoint({"rows", "result", "m"})
    assert all(isinstance(v, Var) for v in passes.rows)
