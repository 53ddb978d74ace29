"""Numbers in expressions: folded without loss, and told apart by their bits."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.extents import canonical_number, doubles_of, product_of, quotient_of, sum_of

a, x = tc.var("a"), tc.var("x", "n")
EXTREME = [1e-308, 1e-308, 1e308, 1e308, 3.0, -2.0]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_a_product_does_not_depend_on_the_order_of_its_constants(order: tuple[int, ...]) -> None:
    for place in range(5):
        e = a
        for k in order[:place]:
            e = e * EXTREME[k]
        rest: tc.Expr | float = 1.0
        for k in order[place:]:
            rest = tc.const(EXTREME[k]) * rest
        assert (e * rest)(a=1.0) == pytest.approx(1.0, rel=1e-15)
    assert 1e-308 * (1e-308 * a) * 1e308 * 1e308 is a


def test_random_products_and_quotients_of_constants_are_exact_to_rounding() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        factors = rng.normal(size=8) * 10.0 ** rng.integers(-307, 307, size=8)
        e, wanted = a, mp.mpf(1)
        for k, factor in enumerate(factors.tolist()):
            by = 1 / mp.mpf(factor) if k % 3 == 2 else mp.mpf(factor)
            e, wanted = (e / factor if k % 3 == 2 else e * factor), wanted * by
        while not 1e-9 < abs(wanted) < 1e9:
            last = 1e-9 if abs(wanted) > 1 else 1e9
            e, wanted = e * last, wanted * last
        np.testing.assert_allclose(e(a=1.0), float(wanted), rtol=1e-13)


def test_sums_of_large_constants_are_not_infinite_where_later_factors_make_them_small() -> None:
    np.testing.assert_allclose(((1e308 * a + 1e308 * a) * 1e-308)(a=1.0), 2.0, rtol=1e-15)
    assert ((1e308 * x + 1e308 * x) * 1e-308) is 2 * x
    assert (1e-200 * x) / tc.const(1e-200) / 1e-320 * tc.const(1e-320) is x


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_coefficients_beyond_doubles_are_multiplied_in_parts(backend: str) -> None:
    huge, tiny = np.array([1e-200, -1e-300]), np.array([1e200, -1e300])
    for e, at, wanted in (
        (x / 1e-320, huge, huge / 1e-320),
        (x * 1e200 * 1e200, huge, huge * 1e200 * 1e200),
        (x * 1e-200 * 1e-200, tiny, tiny * 1e-200 * 1e-200),
        (1e200 * (1e200 * x + 1), huge, 1e200 * (1e200 * huge + 1)),
        (tc.arctan(1e200 * (1e200 * x)), huge * 1e-110, np.arctan(huge * 1e-110 * 1e200 * 1e200)),
        (1e160 * (1e160 * tc.sum(x)), huge, 1e160 * (1e160 * np.sum(huge))),
    ):
        found = tc.compile(e, backend=backend)(x=at)
        np.testing.assert_allclose(found, np.reshape(wanted, found.shape), rtol=1e-14)


@pytest.mark.parametrize("text", ["1e-308*1e-308*a", "1e308*1e308*1e308*a", "-1e-300*1e-200*a^2"])
def test_coefficients_beyond_doubles_read_back(text: str) -> None:
    e = tc.parse(text, a=())
    assert tc.parse(str(e), a=()) is e
    assert tc.parse_index(tc.to_index(e), a=()) is e
    assert pickle.loads(pickle.dumps(e)) is e
    assert r"\cdot" in tc.to_latex(e)
    assert not np.isnan(e(a=1.0))


def test_numbers_stay_doubles_where_doubles_hold_them() -> None:
    values = [0, -0.0, 1, -3, 0.5, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan, 1 / 3, 0.7]
    for p, q in itertools.product(values, repeat=2):
        for found, wanted in ((product_of(p, q), p * q), (sum_of(p, q), p + q)):
            if isinstance(found, Decimal):
                assert abs(wanted) in (0, math.inf) or abs(wanted) < 2.3e-308
            else:
                assert math.copysign(1, found) == math.copysign(1, wanted) or math.isnan(wanted)
                np.testing.assert_allclose(found, wanted, rtol=3e-16)
    assert isinstance(product_of(1e-200, 1e-200), Decimal)
    assert isinstance(canonical_number(Decimal(3)), int)
    assert quotient_of(1, 4) == 0.25
    assert math.prod(doubles_of(product_of(1e200, 1e200))) == math.inf


WIDE = [Decimal("1e400"), Decimal("-1e400"), Decimal("1e-400"), Decimal("-3e-320")]
SPECIAL = [*WIDE, math.nan, math.inf, -math.inf, 0, -0.0, 1e308, 5e-324, -2]


@pytest.mark.parametrize(("one", "two"), [*itertools.product(SPECIAL, WIDE)], ids=str)
def test_numbers_beyond_doubles_meet_those_that_are_none(one: Any, two: Decimal) -> None:
    """As doubles of the same signs do, where a number is infinite or nan; else as mpmath does."""
    special = isinstance(one, float) and not math.isfinite(one)
    numbers = [mp.mpf(v if isinstance(v, float) else str(v)) for v in (one, two)]
    p, q = (one, math.copysign(2, two)) if special else numbers
    cases = [
        (product_of(one, two), p * q), (product_of(two, one), p * q), (sum_of(one, two), p + q),
        (sum_of(two, one), p + q), (quotient_of(one, two), p / q),
    ]  # fmt: skip
    cases += [(quotient_of(two, one), q / p)] if one else []
    for found, wanted in cases:
        if special:
            np.testing.assert_array_equal(float(found), wanted)
        else:
            assert abs(mp.mpf(str(found)) - wanted) <= abs(wanted) * 1e-15


@pytest.mark.parametrize("nan", ["0/0", "nan"])
@pytest.mark.parametrize("beyond", ["1e-300*1e-300", "1e300*1e300", "1e-300/1e20"])
@pytest.mark.parametrize("read", [tc.parse, tc.parse_einsum, lambda t: tc.parse_index(f"f = {t}")])
def test_texts_where_numbers_beyond_doubles_meet_nan(read: Any, beyond: str, nan: str) -> None:
    for operator in "+-*/":
        for text in (f"{beyond}{operator}({nan})", f"({nan}){operator}({beyond})"):
            if "nan" not in text or read is not tc.parse:
                assert np.isnan(read(text)()), text


@pytest.mark.parametrize("powers", [(1, -3), (-2, -1), (2, -4), (-2, 4), (3, -5), (0, -3)], ids=str)
def test_monomials_of_long_extents_are_numbers(powers: tuple[int, int]) -> None:
    n, m = 10**200, 10**120
    e, wanted = tc.parse_einsum("1.5"), mp.mpf(1.5)
    for name, size, power in zip("nm", (n, m), powers, strict=True):
        extent = tc.parse_einsum(f"extent({name})")
        wanted *= mp.mpf(size) ** power
        for _ in range(abs(power)):
            e = e * extent if power > 0 else e / extent
    np.testing.assert_allclose(e(n=n, m=m), float(wanted), rtol=1e-14)


@pytest.mark.parametrize("text", ["extent(n*n+1)", "1/extent((n*n)//3)", "1/extent(n*n-n)"])
def test_extents_that_are_too_long_are_refused_when_they_are_computed(text: str) -> None:
    with pytest.raises(tc.LimitError, match="more than 300 digits in one integer"):
        tc.parse_einsum(text)(n=10**200)


# --- bits -----------------------------------------------------------------------------------------


def test_negative_zero_is_another_number_than_zero() -> None:
    zero, other = tc.const(0.0), tc.const(-0.0)
    assert zero is not other
    assert tc.const(-0.0) is other
    assert tc.const([-0.0]) is not tc.const([0.0])
    v = tc.var("v", 2)
    for e in (tc.arctan2(-0.0, v), tc.arctan2(other, v), tc.arctan2(np.array([-0.0, -0.0]), v)):
        for f in (e, tc.simplify(e)):
            np.testing.assert_array_equal(f(v=[-1.0, 1.0]), np.arctan2(-0.0, [-1.0, 1.0]))
        both = tc.compile(e, backend="c")(v=[-1.0, 1.0])
        np.testing.assert_array_equal(np.signbit(both), [True, True])
    np.testing.assert_array_equal(tc.arctan2(0.0, v)(v=[-1.0, 1.0]), np.arctan2(0.0, [-1.0, 1.0]))


def test_negative_zero_is_printed_and_read() -> None:
    e = tc.arctan2(-0.0, a)
    assert str(e) == "arctan2(-0.0, a)"
    assert tc.parse(str(e), a=()) is e
    assert tc.parse_index(tc.to_index(e), a=()) is e
    space: dict[str, object] = {}
    exec(tc.to_code(e, "numpy"), space)
    assert space["f"](-1.0) == -math.pi  # type: ignore[operator]


def test_a_negative_zero_that_is_added_or_multiplied_goes() -> None:
    assert x + tc.const(-0.0) is x
    assert x * -0.0 is tc.zeros("n")


def test_all_nans_are_one() -> None:
    payload = np.array([0x7FF8000000000123, 0xFFF8000000000001], np.uint64).view(float)
    assert tc.const(payload) is tc.const([np.nan, np.nan])
    assert tc.const(math.nan) is tc.const(-math.nan)
