"""The algebra of sums: terms, distribution, and what terms share."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import tcalc as tc
from tcalc.graph.nodes import Add, Einsum, Expr
from tcalc.graph.normal import add, bare, distribute, einsum, terms_of, view
from tcalc.graph.sums import collected, flattened, lone_factors, most_shared

x, y, z, w = (tc.var(name, ("n",)) for name in "xyzw")
A, B, C = (tc.var(name, ("n", "n")) for name in "ABC")
S = tc.var("S", ("n", "n"), symmetric=True)


def inner(e):
    return e.args if isinstance(e, Add) else None


def test_a_product_is_distributed_over_one_sum_or_several():
    e = (x + y) * (z - w)
    assert isinstance(e, Einsum)
    sums = {k: arg.args for k, arg in enumerate(e.args)}
    assert len(distribute(e, {0: sums[0]})) == 2
    assert set(distribute(e, sums)) == {x * z, y * z, -(x * w), -(y * w)}
    assert add(distribute(e, sums)) is bare(tc.expand(e))


def test_sums_in_sums_stay_shut_where_there_are_too_many_terms():
    nested = tc.exp(x) + (y + (z + w) * 2) * 2
    opened = flattened(nested, lambda e: t if len(t := terms_of(e)) > 1 else None)
    assert set(opened) == {tc.exp(x), 2 * y, 4 * z, 4 * w}
    assert flattened(nested, lambda e: terms_of(e) if len(terms_of(e)) > 1 else None, 1) == list(
        inner(nested)
    )


def test_equal_terms_are_merged_and_what_cancels_goes():
    assert collected([x, y, x, -y]) == [2 * x]
    assert collected([x, -x]) == []


def test_the_factor_that_most_terms_share():
    terms = [tc.outer(x, y), tc.outer(x, z), tc.outer(w, y), A]
    found = most_shared(map(lone_factors, terms), lambda shared: shared.factor.order)
    assert found is not None
    assert (found[0].factor, found[1]) == (x, [0, 1])
    assert most_shared([[1, 2], [3]], int) is None


def test_random_sums_in_any_order_of_terms_and_axes_are_one_node() -> None:
    """150 sums of products of the same operands, which their labels alone tell apart."""
    rng = random.Random(0)
    for _ in range(150):
        ops = rng.choice([[A, x], [A, A], [x, y, A], [S, B]])
        axes = sum(op.ndim for op in ops)
        out = tuple(range(min(axes, 3)))

        def term(ops: list[Any] = ops, axes: int = axes, out: tuple[int, ...] = out) -> Expr:
            places = iter(rng.sample(range(axes), axes))
            words = [tuple(next(places) % len(out) for _ in op.shape) for op in ops]
            return einsum(ops, words, out, extents=dict.fromkeys(out, "n"))

        terms = [term() for _ in range(rng.randint(2, 3))]
        whole = add(terms)
        for order in permutations(terms):
            for perm in permutations(out):
                other = add([view(e, perm) for e in order])
                assert other is view(whole, perm), (terms, perm)
