"""What few programs enter, of loops: states that stay, late names, ranges, short loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

x, a, k = tc.var("x", "n"), tc.var("a"), tc.var("k", integer=True)
DATA = np.array([0.5, -0.2, 0.7, 1.1, 0.3])


@pytest.mark.parametrize("at", [0, 2, 4, 5, -1])
def test_one_change_beside_states_that_stay(at: int) -> None:
    """At one step a state changes, by one that no step changes; at none where the place is none."""
    first, second = tc.fold(
        lambda s, i: (tc.where(tc.equal(i, k), x[i] * s[1] + s[0], s[0]), s[1]), (a, 2 * a), "n"
    )
    wanted = 1.5 * (1 + (2 * DATA[at] if 0 <= at < 5 else 0))
    np.testing.assert_allclose(first(x=DATA, a=1.5, k=at), wanted)
    np.testing.assert_allclose(second(x=DATA, a=1.5, k=at), 3)
    np.testing.assert_allclose(tc.grad(first, a)(x=DATA, a=1.5, k=at), wanted / 1.5)
    for length in (0, 1):
        found = first(x=DATA[:length], a=1.5, k=at)
        np.testing.assert_allclose(found, 1.5 * (1 + 2 * DATA[0] * (0 <= at < length)))


def test_bodies_that_read_names_given_later() -> None:
    """A body may close over a name that has no value yet, beside arrays that its index reads."""

    def outer() -> Any:
        def body(s: Any, i: Any) -> Any:
            return tc.tanh(s) + weights[i] * x5[i] if i is not None else later(s)

        weights, x5 = DATA, tc.var("x5", (5,))
        found = tc.fold(body, 0.5, 5)
        later = abs
        return found

    s = 0.5
    for w in DATA:
        s = np.tanh(s) + w * w
    np.testing.assert_allclose(outer()(x5=DATA), s)


@pytest.mark.parametrize(("shape", "key", "told"), [
    ((4, 4), lambda i: (i, i + 1), "an index ["), ((4, 4), lambda i: (i - 1, i), "an index ["),
])  # fmt: skip
def test_unit_matrices_are_read_in_range(shape: tuple[int, int], key: Any, told: str) -> None:
    wrong = -1 if key(0)[0] < 0 else shape[1]
    with pytest.raises(tc.RangeError) as error:
        tc.build(4, lambda i: tc.eye(*shape)[key(i)])
    assert str(error.value).startswith(told)
    assert str(error.value).endswith(f": index {wrong} is out of range for an axis of extent 4")
    found = tc.build(3, lambda i: tc.eye(4)[i, i + 1] + tc.eye(4)[i + 1, i + 1])
    np.testing.assert_array_equal(found(), np.ones(3))


@pytest.mark.parametrize("extent", [0, 1])
def test_no_index_is_out_of_range_where_there_is_none(extent: int) -> None:
    five = tc.var("five", (5,))
    found = tc.build(extent, lambda i: five[i + 4 if extent else i + 7])
    np.testing.assert_array_equal(found(five=DATA), DATA[4:] if extent else [])
    if extent:
        with pytest.raises(tc.RangeError) as error:
            tc.build(extent, lambda i: five[i + 7])
        assert str(error.value) == "five[i+7]: index 7 is out of range for an axis of extent 5"


@pytest.mark.parametrize(("steps", "held"), [(10, 23), (15, 30), (40, 35)])
def test_short_loops_hold_all_their_states(steps: int, held: int) -> None:
    """Under a bound of memory a long loop is derived by stretches, a short one as it stands."""
    y, t = tc.var("y", "m"), tc.var("t", "s")
    e = tc.sum(tc.fold(lambda s, i: tc.tanh(1.5 * s + t[i]), y, "s"))
    m = 4000
    times, values = np.linspace(-1, 1, steps), np.linspace(-2, 2, m)
    s, slope = values, np.ones(m)
    for time in times:
        s = np.tanh(1.5 * s + time)
        slope = slope * 1.5 * (1 - s**2)
    tight = tc.compile(tc.grad(e, y), memory_limit=held * m * 8)
    if steps < 16:
        with pytest.raises(tc.MemoryLimitError, match=r"the largest step is .* = fold"):
            tight(y=values, t=times)
    else:
        np.testing.assert_allclose(tight(y=values, t=times), slope, rtol=1e-9, atol=1e-15)
    wide = tc.compile(tc.grad(e, y), memory_limit=4 * (steps + 8) * m * 8)
    np.testing.assert_allclose(wide(y=values, t=times), slope, rtol=1e-9, atol=1e-15)
