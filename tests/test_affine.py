"""Affine forms, integer equations and inequalities against enumeration, and against isl.

Without settings the same systems are drawn every time. `TCALC_RANDOM` is a number of fresh ones;
`TCALC_SEED` replays one: the message of a failure names it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product
from math import gcd
from typing import Any

import numpy as np
import pytest

from tcalc.integers.affine import Affine, Congruence, Constraint, Quotient
from tcalc.integers.elimination import Range, eliminate, solve_in_box
from tcalc.integers.polyhedra import (
    System,
    SystemLimitError,
    feasible,
    implied,
    integer_point,
    integer_range,
    irredundant,
)
from tcalc.integers.smith import SmithForm, smith_normal_form, solve_equations

FRESH = "TCALC_RANDOM" in os.environ
COUNT = int(os.environ.get("TCALC_RANDOM", "2000"))
SEED = os.environ.get("TCALC_SEED")

#: Seeds whose systems were wrong once.
CORPUS = [814330579674]


def form(generator: random.Random, names: str, size: int = 3, constant: int = 8) -> Affine:
    terms = tuple((name, generator.randint(-size, size)) for name in names)
    return Affine(terms, generator.randint(-constant, constant))


def system(generator: random.Random, names: str, most: int = 4) -> System:
    count = generator.randint(0, most)
    return System(
        [Constraint(form(generator, names), generator.random() < 0.2) for _ in range(count)]
    )


def box(extents: dict[str, int]) -> list[Constraint]:
    return [
        c
        for name, e in extents.items()
        for c in (Constraint(Affine.of(name)), Constraint(e - 1 - Affine.of(name)))
    ]


def points(extents: dict[str, int], *conditions: Constraint | Congruence) -> list[dict[str, int]]:
    """All points of a box by trying each."""
    grid = (
        dict(zip(extents, p, strict=True)) for p in product(*(range(e) for e in extents.values()))
    )
    return [p for p in grid if all(c.holds(p) for c in conditions)]


def drawn_box(generator: random.Random, names: str) -> dict[str, int]:
    """Extents such that all points can be tried quickly."""
    most = {1: 8, 2: 8, 3: 7, 4: 5}[max(1, len(names))]
    return {name: generator.randint(0 if generator.random() < 0.1 else 1, most) for name in names}


# Forms and conditions


def check_forms(generator: random.Random) -> None:
    """Arithmetic, substitution, and the canonical forms of conditions, at random points."""
    a, b = form(generator, "ijk"), form(generator, "ijk")
    value = {name: generator.randint(-9, 9) for name in "ijk"}
    factor = generator.randint(-4, 4)
    x, y = a.evaluate(value), b.evaluate(value)
    assert (a + factor * b - 2).evaluate(value) == x + factor * y - 2
    placed = a.substitute({"i": b, "k": 3})
    assert placed.evaluate(value) == a.evaluate({**value, "i": y, "k": 3})
    assert Constraint(a).holds(value) == (x >= 0)
    assert Constraint(factor * a, True).holds(value) == (factor * x == 0)
    modulus = generator.randint(1, 12)
    assert Congruence(a, modulus).holds(value) == (x % modulus == 0)
    assert Quotient(a, modulus).floor(value) == x // modulus
    assert Quotient(a, -modulus).ceil(value) == -(x // modulus)
    arrays = {name: np.array([v, v + 1], dtype=np.int8) for name, v in value.items()}
    shifted = a.evaluate({c: v + 1 for c, v in value.items()})
    assert np.broadcast_to(a.evaluate(arrays), 2).tolist() == [x, shifted]


# Smith's normal form


def times(a: Iterable[Sequence[int]], b: Iterable[Sequence[int]], columns: int) -> list[list[int]]:
    b = list(b)
    return [
        [sum(x * row[c] for x, row in zip(r, b, strict=True)) for c in range(columns)] for r in a
    ]


def determinant(a: list[list[int]]) -> int:
    if not a:
        return 1
    minors = ([row[:c] + row[c + 1 :] for row in a[1:]] for c in range(len(a)))
    return sum(
        (-1) ** c * a[0][c] * determinant(minor) for c, minor in enumerate(minors) if a[0][c]
    )


def verify_smith(a: list[list[int]], columns: int) -> SmithForm:
    found = smith_normal_form(a, columns)
    rows = len(a)
    u, v, u_inverse, v_inverse = (
        [list(row) for row in matrix]
        for matrix in (found.left, found.right, found.left_inverse, found.right_inverse)
    )
    diagonal = [
        [found.invariants[r] if r == c < found.rank else 0 for c in range(columns)]
        for r in range(rows)
    ]
    assert times(times(u, a, columns), v, columns) == diagonal
    assert times(u, u_inverse, rows) == [[int(r == c) for c in range(rows)] for r in range(rows)]
    assert times(v, v_inverse, columns) == [
        [int(r == c) for c in range(columns)] for r in range(columns)
    ]
    assert all(b % a == 0 for a, b in zip(found.invariants, found.invariants[1:], strict=False))
    assert all(a > 0 for a in found.invariants)
    assert all(not any(x) for x in times(a, zip(*found.kernel, strict=True), len(found.kernel)))
    assert all(not any(x) for x in times([list(c) for c in found.cokernel], a, columns))
    assert len(found.kernel) == columns - found.rank
    inverse, d = found.pseudo_inverse
    assert times(times(a, [list(r) for r in inverse], rows), a, columns) == [
        [d * x for x in r] for r in a
    ]
    return found


def check_smith(generator: random.Random) -> None:
    """Invariant factors against the gcds of minors, transformations against their definition."""
    rows, columns = generator.randint(0, 4), generator.randint(0, 4)
    size = generator.choice([1, 3, 9])
    a = [[generator.randint(-size, size) for _ in range(columns)] for _ in range(rows)]
    if rows > 1 and generator.random() < 0.4:
        a[0] = [2 * x for x in a[-1]]
    found = verify_smith(a, columns)
    product_ = 1
    for order in range(1, min(rows, columns) + 1):
        minors = [
            determinant([[a[r][c] for c in cs] for r in rs])
            for rs in combinations(range(rows), order)
            for cs in combinations(range(columns), order)
        ]
        product_ *= found.invariants[order - 1] if order <= found.rank else 0
        assert gcd(*minors) == product_


def check_equations(generator: random.Random) -> None:
    """Values, kernel and guards give each solution in a window once, and nothing else."""
    unknowns = "abc"[: generator.randint(0, 3)]
    forms = [form(generator, unknowns + "j") for _ in range(generator.randint(0, 3))]
    found = solve_equations(forms, unknowns)
    values = dict(found.values)
    for label in {*found.labels} & {*unknowns}:  # an unknown that is free is itself
        assert values[label] == Quotient(Affine.of(label))
    for j_value in range(-3, 4):
        known = {"j": j_value}
        solvable = all(g.holds(known) for g in found.guards)
        window = list(product(range(-3, 4), repeat=len(unknowns)))
        for point in window:
            place = known | dict(zip(unknowns, point, strict=True))
            zero = all(f.evaluate(place) == 0 for f in forms)
            assert not zero or solvable
        for free in product(range(-2, 3), repeat=len(found.labels)) if solvable else ():
            place = known | dict(zip(found.labels, free, strict=True))
            assert all(q.floor(place) == q.ceil(place) for q in values.values())
            exact = known | {name: q.floor(place) for name, q in values.items()}
            assert all(f.evaluate(exact) == 0 for f in forms)
    matrix = [[values[u].form.coefficient(z) for z in found.labels] for u in unknowns]
    moves = [[c // values[u].divisor for c in row] for u, row in zip(unknowns, matrix, strict=True)]
    assert smith_normal_form(moves, len(found.labels)).invariants == (1,) * len(found.labels)


# Inequalities


def check_system(generator: random.Random) -> None:
    """Feasibility, points, ranges, implication and simplification of a bounded system."""
    names = "abcd"[: generator.randint(0, 4)]
    extents = drawn_box(generator, names)
    given = System(box(extents)) & system(generator, names)
    wanted = points(extents, *given)
    point = integer_point(given)
    assert (point is not None) == bool(wanted)
    assert point is None or point in [{n: p[n] for n in point} for p in wanted]
    if wanted:
        assert feasible(given)
    goal = form(generator, names)
    values = [goal.evaluate(p) for p in wanted]
    assert integer_range(given, goal) == ((min(values), max(values)) if values else None)
    context = System(box(extents))
    smaller = irredundant(given, context)
    assert points(extents, *smaller) == wanted
    assert len(smaller.constraints) <= len(given.constraints)
    claim = Constraint(goal)
    assert not implied(claim, given) or all(v >= 0 for v in values)


def check_elimination(generator: random.Random) -> None:
    """Nested ranges enumerate a system with parameters exactly, in every order."""
    names, parameters = "abc"[: generator.randint(1, 3)], "np"[: generator.randint(0, 2)]
    most = Affine.of(generator.choice(parameters)) + 3 if parameters else Affine((), 4)
    bounds = [c for x in names for c in (Constraint(Affine.of(x)), Constraint(most - Affine.of(x)))]
    given = System(bounds) & system(generator, names + parameters, 3)
    positive = [Constraint(Affine.of(p)) for p in parameters]
    order = generator.sample(names, len(names))
    found = eliminate(given, order, positive)
    assert [r.name for r in found.ranges] == order[::-1]
    assert not set(found.remainder.names) & set(names)
    for sizes in product((0, 1, 3), repeat=len(parameters)):
        place = dict(zip(parameters, sizes, strict=True))
        extents = dict.fromkeys(names, 5 + max((0, *sizes)))
        wanted = points(extents, *given.substitute(place))
        got = sorted(tuple(p[x] for x in names) for p in nested(found.ranges, place))
        inside = found.remainder.holds(place)
        assert not wanted or inside
        assert (got if inside else []) == [tuple(p.values()) for p in wanted]


def nested(ranges: tuple[Range, ...], place: dict[str, int]) -> Iterator[dict[str, int]]:
    if not ranges:
        yield place
        return
    low, high = ranges[0].bounds(place)
    for value in range(low, high + 1):  # type: ignore[arg-type, operator]
        yield from nested(ranges[1:], {**place, ranges[0].name: value})


def check_solve(generator: random.Random) -> None:
    """Solutions of index equations in symbolic boxes, each found once."""
    unknowns = "abc"[: generator.randint(1, 3)]
    outer = "ij"[: generator.randint(0, 2)]
    equalities = [
        form(generator, unknowns, 3, 2) + form(generator, outer, 1, 0)
        for _ in range(generator.randint(0, 2))
    ]
    dimensions = {x: generator.choice("mn") for x in unknowns + outer}
    extra = [Constraint(form(generator, unknowns + outer, 1))] if generator.random() < 0.3 else []
    found = solve_in_box(equalities, unknowns, dimensions, extra)
    for sizes in product((1, 2, 5), repeat=2):
        size = dict(zip("mn", sizes, strict=True))
        inner = {x: size[dimensions[x]] for x in unknowns}
        for at in product(*(range(size[dimensions[x]]) for x in outer)):
            place = size | dict(zip(outer, at, strict=True))
            conditions = [Constraint(f, True) for f in equalities] + extra
            wanted = points(inner, *(c.substitute(place) for c in conditions))
            got = list(found.points(place))
            assert sorted(tuple(p.values()) for p in got) == [tuple(p.values()) for p in wanted]
            assert not wanted or (found.shadow.holds(place) and not found.empty)


# The same by isl


def isl_set(names: Iterable[str], outer: Iterable[str], conditions: Iterable[object]) -> Any:
    """The integer points of a set that may have parameters and names of its own."""
    isl = pytest.importorskip("islpy", reason="isl is the independent answer")
    texts = [TEXTS[type(c)](c) for c in conditions]
    used = {name for c in conditions for name in c.form.names}  # type: ignore[attr-defined]
    inner = sorted(used - {*names, *outer})
    body = " and ".join(texts) or "true"
    body = f"exists ({', '.join(inner)}: {body})" if inner else body
    return isl.Set(f"[{', '.join(outer)}] -> {{ [{', '.join(names)}] : {body} }}")


TEXTS: dict[type, Callable[[Any], str]] = {
    Constraint: lambda c: f"{c.form} {'=' if c.equality else '>='} 0",
    Congruence: lambda c: f"({c.form}) mod {c.modulus} = 0",
}


def check_ranges_by_isl(generator: random.Random) -> None:
    """Systems that may be unbounded: emptiness and the ends of each range."""
    names = "abc"[: generator.randint(1, 3)]
    given = system(generator, names, 5)
    points = isl_set(names, (), given)
    limit = 200
    try:
        assert (integer_point(given, limit) is None) == points.is_empty()
        found = [integer_range(given, name, limit) for name in names]
    except SystemLimitError:
        assert not points.is_bounded()  # where branch and bound need not end
        return
    for axis, ends in enumerate(found):
        low, high = (f(axis) for f in (points.dim_min_val, points.dim_max_val))
        wanted = tuple(v.to_python() if v.is_int() else None for v in (low, high))
        assert ends == (None if points.is_empty() else wanted)


def check_solve_by_isl(generator: random.Random) -> None:
    """Solutions for all sizes at once: the printed sums describe the same set."""
    unknowns, outer = "abc"[: generator.randint(1, 3)], "ij"[: generator.randint(0, 2)]
    equalities = [form(generator, unknowns + outer, 3, 2) for _ in range(generator.randint(0, 2))]
    dimensions = {x: generator.choice("mn") for x in unknowns + outer}
    found = solve_in_box(equalities, unknowns, dimensions)
    known = [Constraint(Affine.of(p)) for p in "mn"]
    every = {x: [Constraint(Affine.of(x)), Constraint(Affine.of(d) - Affine.of(x) - 1)]
             for x, d in dimensions.items()}  # fmt: skip
    known += [c for x in outer for c in every[x]]
    wanted = [Constraint(f, True) for f in equalities] + [c for x in unknowns for c in every[x]]
    sums = [Constraint(q.divisor * Affine.of(x) - q.form, True) for x, q in found.values]
    sums += [c for r in found.ranges for c in r.constraints()]
    parameters = (*outer, "m", "n")
    right = isl_set(unknowns, parameters, [*known, *wanted])
    got = isl_set(unknowns, parameters, [*known, *sums, *found.guards])
    assert got.is_equal(right)
    assert right.is_subset(isl_set(unknowns, parameters, [*known, *found.shadow]))
    assert not found.empty or right.is_empty()


CHECKS: dict[Callable[[random.Random], None], float] = {
    check_forms: 0.2,
    check_smith: 0.2,
    check_equations: 0.2,
    check_system: 0.15,
    check_elimination: 0.1,
    check_solve: 0.05,
    check_ranges_by_isl: 0.05,
    check_solve_by_isl: 0.05,
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_random(check: Callable[[random.Random], None]) -> None:
    draw = random.SystemRandom() if FRESH else random.Random(check.__name__)
    for _ in range(1 if SEED else max(1, int(COUNT * CHECKS[check]))):
        attempt(check, int(SEED) if SEED else draw.randrange(2**40))


def attempt(check: Callable[[random.Random], None], seed: int) -> None:
    try:
        check(random.Random(seed))
    except Exception as error:
        raise AssertionError(f"TCALC_SEED={seed} TCALC_RANDOM=1 ({check.__name__})") from error


@pytest.mark.parametrize("seed", CORPUS)
def test_seeds_that_failed_once(seed: int) -> None:
    for check in CHECKS:
        attempt(check, seed)


def test_bounds_that_meet_are_an_equation() -> None:
    x = Affine.of("x")
    for bounds in ([x - 2, 2 - x], [2 - x, x - 2], [x - 2, x - 1, 2 - x, 5 - x]):
        assert [*System([Constraint(form) for form in bounds])] == [Constraint(x - 2, True)]
    (one,) = System([Constraint(x - 2), Constraint(x - 1)])
    assert one == Constraint(x - 2)
