"""Printed C: strict C99 that is compiled and run, and agrees with plans on NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tests import cases, linalg_cases, loop_cases, place_cases, source_programs
from tests.c_programs import Job, all_printed, blas, needs_compiler, problems
from tests.test_operators import ELEMENTWISE, points

pytestmark = needs_compiler


def derivatives(e: tc.Expr, names: list[str], most: int) -> tuple[tc.Expr, ...]:
    chosen = [n for n in names if n in e.variables]
    return (e, *[tc.derivative(e, n, k) for n in chosen for k in range(1, most + 1)])


def of_cases() -> list[Job]:
    return [
        Job(c.name, derivatives(c.expression(), c.targets, 2), c.sample(), cases.EXTENTS)
        for c in cases.CASES
    ]


def of_places() -> list[Job]:
    found = []
    for c in place_cases.CASES:
        variables = c.variables()
        names = [n for n in variables if n not in c.below]
        found.append(Job(c.name, derivatives(c.build(**variables), names, 2), c.sample(), {}))
    return found


def of_loops() -> list[Job]:
    found = []
    for c in loop_cases.CASES:
        e = loop_cases.expression(c, "n")
        names = [n for n in loop_cases.names(c) if not e.variables[n].integral]
        order = 1 if c.name in ("kalman", "nested slices") else 2
        found.append(Job(c.name, derivatives(e, names, order), loop_cases.data(c, 3), {"n": 3}))
    return found


def of_entries() -> list[Job]:
    found = []
    for row in ELEMENTWISE:
        names = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
        at = {v.name: np.array(p) for v, p in zip(names, points(row, 5), strict=True)}
        e = apply(row, *names)
        tree = [e]
        for v in names:
            for order in (1, 2):
                try:
                    tree.append(tc.derivative(tc.sum(e), v, order))
                except tc.Error:  # refused for some operands
                    continue
        found.append(Job(row.name, tuple(tree), at, {"n": 5}))
    return found


def of_linear_algebra() -> list[Job]:
    sizes, found = {"m": 2, "n": 3, "k": 2}, []
    for c in linalg_cases.CASES:
        rng = np.random.default_rng(3)
        arrays = {
            n: linalg_cases.sample(kind, linalg_cases.shape_of(kind, sizes), rng)
            for n, kind in c.inputs.items()
        }
        numbers = c.name.startswith(("maketrian", "lq-tall", "qr-wide"))
        variables = {
            n: tc.var(n, arrays[n].shape if numbers else symbols(kind))
            for n, kind in c.inputs.items()
        }
        results = c.build(*variables.values())
        outputs = results if isinstance(results, tuple) else (results,)
        tree = tuple([d for e in outputs for d in derivatives(e, list(variables), 2)])
        parts = [f"part {k}" for k in range(len(outputs))]
        unsigned = bool(linalg_cases.signless(c.name, parts))
        found.append(Job(c.name, tree, arrays, sizes, unsigned))
    return found


def of_programs(group: str) -> list[Job]:
    """Programs that all languages are tried on."""
    return [
        Job(name, p.wanted, p.arrays(), p.extents(), bool(p.unsigned))
        for name, p in source_programs.GROUPS[group]()
    ]


def symbols(kind: str) -> tuple[str, ...]:
    return tuple(kind if set(kind) <= set("mnk") else "nn")


TABLES: dict[str, Callable[[], list[Job]]] = {
    "cases": of_cases, "places": of_places, "loops": of_loops, "entries": of_entries,
    "linear algebra": of_linear_algebra,
    **{
        group: partial(of_programs, group)
        for group in ("rows", "axes", "joining", "endings", "orders", "gammas")
    },
}  # fmt: skip


@cache
def jobs_of(table: str) -> list[Job]:
    """Kept, as several languages print what is found out about them once."""
    return TABLES[table]()


@cache
def printed_of(table: str) -> list[str]:
    return all_printed(jobs_of(table))


@pytest.mark.parametrize("table", TABLES)
def test_functions_compute_what_expressions_mean(table: str, tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        assert not problems(jobs_of(table), tmp_path, 1e-11, sources=printed_of(table))


@pytest.mark.parametrize("table", ["cases", "linear algebra"])
def test_single_precision(table: str, tmp_path: Path) -> None:
    """Values and gradients, of programs that have second derivatives too."""
    jobs, sources = jobs_of(table), printed_of(table)
    assert not problems(jobs, tmp_path, 1e-4, "-DSINGLE", sources=sources, results=2)


def test_products_by_a_library(tmp_path: Path) -> None:
    jobs, sources = jobs_of("cases"), printed_of("cases")
    assert not problems(jobs, tmp_path, 1e-11, *blas(tmp_path), sources=sources)


def test_optimised_code_is_the_same(tmp_path: Path) -> None:
    jobs = [j._replace(tree=j.tree[:2]) for j in jobs_of("cases")[::3]]
    assert not problems(jobs, tmp_path, 1e-11, "-O3", "-fopenmp-simd")
