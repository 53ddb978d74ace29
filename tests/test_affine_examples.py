"""Affine forms, equations and inequalities: the cases that accesses and unit tensors ask about."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from tcalc.integers.affine import Affine, Congruence, Constraint, Quotient
from tcalc.integers.elimination import Range, eliminate, solve_in_box
from tcalc.integers.polyhedra import (
    System,
    SystemLimitError,
    feasible,
    integer_point,
    integer_range,
    irredundant,
)
from tcalc.integers.smith import smith_normal_form, solve_equations
from tcalc.support.errors import Error, ShapeError
from tests.test_affine import box, form, verify_smith

HUGE = 10**30
i, j, k, m, n, z = map(Affine.of, "ijkmnz")
NEVER = System([Constraint(Affine((), -1))])


def test_forms_are_canonical_values() -> None:
    form = Affine((("k", 2), ("i", 1), ("k", -2), ("j", 0)), -1)
    assert form == i - 1
    assert hash(form) == hash(i - 1)
    assert (i + 2 * k - 1).names == ("i", "k")
    assert (i + 2 * k - 1).coefficient("k") == 2
    assert (i + 2 * k - 1).coefficient("j") == 0
    assert (4 * i + 6 * k - 1).content == 2
    assert (i - k).substitute({"i": "k", "k": "i"}) == k - i
    assert 3 - (i - k) == Affine((("i", -1), ("k", 1)), 3)
    assert Affine((("i", np.int64(3)),), np.int8(2)).terms == (("i", 3),)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (i + 2 * k - 1, "i+2*k-1"),
        (Affine(), "0"),
        (Affine((), -3), "-3"),
        (-i, "-i"),
        (j - i, "j-i"),
        (3 - i, "3-i"),
        (-i - 3, "-i-3"),
        (n - 2 * z - i + 1, "n-i-2*z+1"),
    ],
)
def test_forms_print(form: Affine, text: str) -> None:
    assert str(form) == text


def test_conditions_print() -> None:
    assert str(Constraint(j - m + 1)) == "j+1 >= m"
    assert str(Constraint(2 * i - 2 * j, True)) == "i == j"
    assert str(Congruence(3 * j, 4)) == "j % 4 == 0"
    assert str(Congruence(2 * i + 2 * j + 2, 4)) == "(i+j+1) % 2 == 0"
    found = Range("z", (Quotient(j - 3, 2), Quotient(Affine())), (Quotient(-j, 2),))
    assert str(found) == "z=max(ceil((j-3)/2),0)..floor(-j/2)"
    assert str(Range("z", (), ())) == "z=-inf..inf"


@pytest.mark.parametrize("bad", [0.5, "2", None])
def test_coefficients_are_integers(bad: object) -> None:
    with pytest.raises(TypeError):
        Affine((("i", bad),))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        i.evaluate({"i": bad})  # type: ignore[dict-item]


def test_arrays_of_labels_do_not_overflow() -> None:
    small = np.arange(120, 128, dtype=np.int8)
    np.testing.assert_array_equal(
        (3 * i + 1).evaluate({"i": small}), [3 * int(a) + 1 for a in small]
    )
    wide = np.array([2**62, -(2**62)])
    assert (8 * i - 1).evaluate({"i": wide}).tolist() == [2**65 - 1, -(2**65) - 1]  # type: ignore[union-attr]
    unsigned = np.array([2**64 - 1], dtype=np.uint64)
    assert (i + 1).evaluate({"i": unsigned}).tolist() == [2**64]  # type: ignore[union-attr]
    grid = (i + 2 * k - 1).evaluate({"i": np.arange(3)[:, None], "k": np.arange(2)})
    np.testing.assert_array_equal(grid, [[-1, 1], [0, 2], [1, 3]])
    assert Quotient(i, HUGE).ceil({"i": np.array([-1, 0, 1])}).tolist() == [0, 0, 1]  # type: ignore[union-attr]
    for last in (2**63 - 1, 2**63):  # the last divisor of 64 bits, and the first that is none
        ends = np.array([-(2**63), -1, 0, 2**63 - 1])
        floors = Quotient(i, last).floor({"i": ends})
        assert floors.tolist() == [int(end) // last for end in ends]  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        i.evaluate({"i": np.array([0.5])})
    bounds = Range("k", (Quotient(Affine()), Quotient(j - HUGE)), (Quotient(j, 2),))
    low, high = bounds.bounds({"j": np.arange(4)})
    assert np.all(low == 0)
    np.testing.assert_array_equal(high, [0, 0, 1, 1])
    np.testing.assert_array_equal(bounds.count({"j": np.arange(-4, 4)}), [0, 0, 0, 0, 1, 1, 2, 2])


def test_partial_sums_of_numbers_and_arrays_do_not_overflow() -> None:
    """Of any sizes: beside Python's integers."""
    rng = np.random.default_rng(0)

    def drawn(bits: int) -> int:
        return int(rng.integers(-(2**30), 2**30)) * 2 ** int(rng.integers(bits))

    for _ in range(200):
        form = Affine((("i", drawn(34)), ("j", drawn(34)), ("k", drawn(34))), drawn(34))
        at: dict[str, Any] = {"i": drawn(30), "j": np.array([drawn(30), 3]), "k": drawn(30)}
        found = form.evaluate(at)
        assert isinstance(found, np.ndarray)
        for place, j in enumerate(at["j"].tolist()):
            assert int(found[place]) == form.evaluate({**at, "j": j})


def test_empty_arrays_of_labels() -> None:
    assert (2 * i).evaluate({"i": np.zeros(0, dtype=int)}).shape == (0,)  # type: ignore[union-attr]


def test_division_by_zero() -> None:
    for make in (Quotient, Congruence):
        with pytest.raises(ZeroDivisionError):
            make(i, 0)


@pytest.mark.parametrize(
    ("a", "columns", "invariants"),
    [
        ([], 0, ()),
        ([], 3, ()),
        ([[], []], 0, ()),
        ([[0, 0], [0, 0]], 2, ()),
        ([[0, 0, 0], [0, -5, 0]], 3, (5,)),
        ([[2, 4, 4], [-6, 6, 12], [10, -4, -16]], 3, (2, 6, 12)),
        ([[6, 0], [0, 4]], 2, (2, 12)),
        ([[HUGE, 0], [0, HUGE + 1]], 2, (1, HUGE * (HUGE + 1))),
        ([[HUGE, 7 * HUGE], [3 * HUGE, HUGE]], 2, (HUGE, 20 * HUGE)),
    ],
)
def test_smith_normal_form(a: list[list[int]], columns: int, invariants: tuple[int, ...]) -> None:
    assert verify_smith(a, columns).invariants == invariants


def test_ragged_matrices() -> None:
    with pytest.raises(ShapeError, match="expected"):
        smith_normal_form([[1, 2], [3]])


def test_labels_that_stay_keep_their_names() -> None:
    found = solve_equations([i + 2 * k - 1 - j], ["i", "k"])
    assert found.labels == ("k",)
    assert dict(found.values)["i"] == Quotient(j - 2 * k + 1)
    found = solve_equations([2 * i + k - j], ["i", "k"])
    assert found.labels == ("i",)
    found = solve_equations([2 * i + 3 * k - z], ["i", "k"])
    assert found.labels == ("z1",)
    for a, b in product((-5, -3, -2, 2, 3, 5), (-7, 7)):
        found = solve_equations([a * i + b * k - z], ["i", "k"])
        assert dict(found.values)["i"].form.coefficient("z1") == 7


def test_systems_are_canonical() -> None:
    one = System([Constraint(i - 1), Constraint(2 * i - 1), Constraint(5 - i)])
    assert one == System([Constraint(5 - i), Constraint(i - 1)])
    assert hash(one) == hash(System(reversed(one.constraints)))  # type: ignore[arg-type]
    assert System([Constraint(i - k), Constraint(k - i)]) == System([Constraint(i - k, True)])
    assert System([Constraint(i - 3), Constraint(2 - i)]) == NEVER
    assert System([Constraint(2 * i - 3, True)]) == NEVER
    assert System([Constraint(i - 2, True), Constraint(i)]) == System([Constraint(i - 2, True)])
    assert System([Constraint(Affine((), 4))]) == System()
    assert not System().impossible
    assert System().holds({})
    assert one.holds({"i": np.arange(7)}).tolist() == [False, True, True, True, True, True, False]


def test_rational_but_not_integer_points() -> None:
    gap = System([Constraint(3 * i - 3 * k - 1), Constraint(2 - 3 * i + 3 * k)])
    assert gap == NEVER  # coprime coefficients show it at once
    gap = System([*box({"i": 9, "k": 9}), Constraint(4 * i - 6 * k - 3 * j - 1, True)])
    gap &= [Constraint(j - 2 * z, True), *box({"z": 9})]
    assert feasible(gap)
    assert integer_point(gap) is None
    assert integer_range(gap, "i") is None


def test_unbounded_systems() -> None:
    ray = System([Constraint(i - 2 * k, True), Constraint(k - 3)])
    assert integer_range(ray, "i") == (6, None)
    assert integer_range(ray, -i) == (None, -6)
    assert integer_range(System(), i + k) == (None, None)
    assert integer_range(System(), Affine((), 7)) == (7, 7)
    assert integer_range(ray, "z") == (None, None)
    assert integer_range(NEVER, "i") is None
    assert integer_point(System()) == {}
    assert integer_point(ray & [Constraint(2 * i - 2 * j - 1, True)]) is None
    found = eliminate(ray, ["i"])
    assert str(found.ranges[0]) == "i=2*k..2*k"
    assert str(eliminate(System([Constraint(i - k)]), ["i", "k"]).ranges[0]) == "k=-inf..inf"
    assert Range("i", (Quotient(k),), ()).count({"k": 0}) is None
    assert Range("i", (Quotient(k),), ()).bounds({"k": 4}) == (4, None)


def test_huge_numbers() -> None:
    given = System(
        [Constraint(i - HUGE), Constraint(7 * HUGE - 3 * i), Constraint(i - 2 * k, True)]
    )
    assert integer_range(given, "i") == (HUGE, 7 * HUGE // 3 // 2 * 2)
    found = solve_in_box([HUGE * i + (HUGE + 1) * k - j], ["i", "k"], {"i": HUGE, "k": HUGE})
    place = {"j": HUGE * 5 + (HUGE + 1) * 8}
    assert list(found.points(place)) == [{"i": 5, "k": 8}]


def test_nothing_to_do() -> None:
    assert feasible(System())
    assert not feasible(NEVER)
    assert irredundant(NEVER) == NEVER
    assert irredundant(System()) == System()
    assert irredundant(System([Constraint(i)]), [Constraint(-i - 1)]) == NEVER
    assert eliminate(System(), []).ranges == ()
    empty = eliminate(NEVER, ["i"])
    assert empty.remainder == NEVER
    assert empty.ranges[0].count({}) == 0
    found = solve_in_box([], [], {})
    assert list(found.points({})) == [{}]
    assert solve_in_box([Affine((), 1)], [], {}).empty
    assert solve_in_box([2 * i - 1], ["i"], {}).empty
    assert list(solve_in_box([2 * i - 1], ["i"], {}).points({})) == []
    assert solve_in_box([i], ["i"], {"i": 0}).empty


def test_bounds_that_hold_anyway_are_left_out() -> None:
    given = System([Constraint(k), Constraint(n - 1 - k), Constraint(m - 1 - k)])
    assert str(eliminate(given, "k").ranges[0]) == "k=0..min(m-1,n-1)"
    assert str(eliminate(given, "k", [Constraint(n - m)]).ranges[0]) == "k=0..m-1"


def test_intervals_in_other_labels() -> None:
    found = solve_in_box([], ["k"], {"i": (-3, 3), "k": (-5, "i")})
    assert str(found.ranges[0]) == "k=-5..i"
    assert list(found.points({"i": -4})) == [{"k": -5}, {"k": -4}]
    found = solve_in_box([k - i], ["k"], {"i": (-3, 3), "k": (0, "i")})
    assert [str(g) for g in found.guards] == ["i >= 0"]
    triangle = solve_in_box([i + k - j], ["i", "k"], {"i": "n", "k": i + 1})
    wanted = [(j - k, k) for j in [4] for k in range(5) if 0 <= j - k < 4 and k <= j - k]
    assert [(p["i"], p["k"]) for p in triangle.points({"j": 4, "n": 4})] == wanted


def test_what_explodes_is_refused() -> None:
    generator = random.Random(0)
    cloud = System([Constraint(form(generator, "abcdef", 3, 0) + 50) for _ in range(30)])
    with pytest.raises(SystemLimitError, match="more than 100") as caught:
        eliminate(cloud, "abcdef", limit=100)
    assert isinstance(caught.value, Error)
    strip = System([Constraint(2 * i - 2 * j + 3 * k - 3 * z - 1)])
    strip &= [Constraint(5 * i - 4 * j - 7 * n), Constraint(1 - 5 * i + 4 * j + 7 * n)]
    with pytest.raises(SystemLimitError):
        integer_range(strip & box(dict.fromkeys("ijk", 10**9)), i + 3 * k - z + n, limit=1)


# What accesses and unit tensors ask


def test_adjoint_of_a_convolution() -> None:
    found = solve_in_box([i + k - j], ["i", "k"], {"i": "m", "k": "n", "j": m + n - 1})
    assert str(found.ranges[0]) == "k=max(0,j-m+1)..min(j,n-1)"
    assert found.guards == ()
    assert not found.empty


def test_adjoint_of_a_strided_access() -> None:
    found = solve_in_box([i + 2 * k - 1 - j], ["i", "k"], {"i": "m", "k": "n", "j": "p"})
    assert str(found.ranges[0]) == "k=max(0,ceil((j-m+2)/2))..min(floor((j+1)/2),n-1)"
    assert found.values == (("i", Quotient(j - 2 * k + 1)), ("k", Quotient(k)))
    assert found.guards == ()


def test_adjoint_of_every_second_entry() -> None:
    found = solve_in_box([2 * i - j], ["i"], {"i": "m", "j": "n"})
    assert found.values == (("i", Quotient(j, 2)),)
    assert found.labels == ()
    assert [str(g) for g in found.guards] == ["j % 2 == 0", "2*m >= j+2"]


def test_adjoint_of_a_diagonal() -> None:
    found = solve_in_box([i - j, i - k], ["i"], {"i": "n", "j": "n", "k": "n"})
    assert [str(g) for g in found.guards] == ["j == k"]
    assert found.ranges == ()


def test_example_of_the_paper() -> None:
    """Urban and van der Smagt (2017), figure 4: 15 points, in boxes that start at 1."""
    a, b, c = map(Affine.of, "abc")
    found = solve_in_box([a - 2 * b - 2 * c + 3], "abc", dict.fromkeys("abc", (1, 5)))
    wanted = [p for p in product(range(1, 6), repeat=3) if p[0] - 2 * p[1] - 2 * p[2] == -3]
    assert sorted(tuple(p.values()) for p in found.points({})) == wanted


def test_a_range_of_a_sum_can_be_given_on() -> None:
    first = solve_in_box([i + k - j], ["i", "k"], {"i": "m", "k": "n", "j": m + n - 1})
    again = solve_in_box([k + j - z], ["k", "j"], {"j": m + n - 1}, first.ranges[0].constraints())
    for at in range(12):
        place = {"m": 4, "n": 3, "z": at}
        wanted = [(q, at - q) for q in range(3) for r in range(4) if q + (q + r) == at]
        assert sorted((p["k"], p["j"]) for p in again.points(place)) == wanted


def test_a_sum_without_end_is_refused() -> None:
    with pytest.raises(SystemLimitError, match="no end"):
        list(solve_in_box([i + k - j], ["i", "k"], {"i": (0, None)}).points({"j": 2}))


def test_the_order_does_not_depend_on_hashes() -> None:
    program = (
        "from tcalc.integers.affine import Affine;"
        "from tcalc.integers.elimination import solve_in_box;"
        "a, b, c, d, e = map(Affine.of, 'abcde');"
        "print(solve_in_box([2*a+3*b-4*c+d-e], 'abc', dict.fromkeys('abcde', 'n')))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "012"
    }
    assert len(texts) == 1
