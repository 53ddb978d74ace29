"""What forms programs get: ``python -m tests.recorded_forms`` writes `recorded_forms.json` again.

A form that is lost changes no number. So of random programs, of models in several spellings and of
benchmark problems the file has how much C their plans are, how many steps of these are left to
Python, and in what form their Hessians are held and solved with. Numbers may fall, not grow; names
of ways to solve stay. Who changes them on purpose writes the file again, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

import tcalc as tc
from benchmarks import spellings
from benchmarks.problem import Task
from benchmarks.problems import PROBLEMS
from benchmarks.spelled import MODELS
from tcalc.backends.c.program import bind
from tcalc.backends.c.together import Together, foreseen
from tcalc.graph import trees
from tcalc.graph.extents import NOMINAL, extent_of
from tcalc.graph.nodes import dimensions, postorder
from tcalc.graph.normal import bare
from tcalc.plan.steps import VIEW, Plan
from tcalc.run.backends import backend_row
from tcalc.run.engine import Engine
from tcalc.structured.solvers.choose import solve_methods
from tcalc.support.machine import COMPILED_MACHINE
from tests.documents import ROOT
from tests.fuzz import case
from tests.random_costs import DRAWS

FILE = ROOT / "tests" / "recorded_forms.json"
#: The seeds of the random programs of each kind.
SEEDS = range(6000, 6040)
#: What dimensions of random programs are in C, where the memory of a workspace is there.
FEW = 7

#: Numbers that may fall, and names.
Row = list[float | str]
#: Plans for what compiles to C, by machines without a compiler too.
IN_C = backend_row("numpy")._replace(machine=COMPILED_MACHINE)


def in_c(outputs: Any, sizes: Mapping[str, int]) -> Row:
    """Of a plan: operations, bytes at the peak, and what `counted` counts."""
    roots = [bare(e) for e in trees.leaves(outputs)]
    engine = Engine(roots, IN_C, limit=None, check=True)
    known = {name: n for name, n in sizes.items() if name in engine.dimensions}
    plan = engine.plan_for(roots, {}, known)
    return [round(plan.flops), plan.peak_bytes, *counted(plan)]


def counted(plan: Plan) -> list[float]:
    """Entries that are made, steps, those that are left to Python; loops and statements of C.

    Loops that are left have what their own plans count added.
    """
    together = Together()
    bind(plan, np.dtype(float), together=lambda: together)
    texts, inside = [], set()
    for part in together.parts:
        slots = part.workspaces.take([None] * len(plan.inputs))
        text = part.written(foreseen(part.workspaces, slots))
        if text is not None:
            texts.append(text)
            inside |= {step.out for step in part.steps}
    made = [step for step in plan.steps if plan.origin[step.out] is not VIEW]
    left = [step for step in made if step.out not in inside]
    everything = "".join(texts)
    found: list[float] = [sum([prod(step.shape) for step in made]), len(made), len(left)]
    found += [everything.count(word) for word in ("for (", ";", "return ")]
    for step in left:
        if step.kind == "loop":
            found = [a + b for a, b in zip(found, counted(step.params[-1]), strict=True)]
    return found


def held(h: Any, sizes: Mapping[str, int]) -> Row:
    """Of a compressed tensor: terms, entries of cores, their nodes, and how it is solved with."""
    known = {**dict.fromkeys(dimensions([bare(h)]), NOMINAL), **sizes}
    form = tc.compress(h).at(known)
    layout, _ = form.layout(known)
    entries = sum([prod([extent_of(n, known) for n in core.shape]) for core in form.cores])
    found: Row = [len(form.terms), entries, len(postorder(form.cores))]
    if not layout.square:
        return found
    first = next(iter(solve_methods(layout, 8)), None)
    return [*found, round(first.flops), first.text] if first is not None else [*found, inf, ""]


def random_program(kind: str, seed: int) -> list[Row]:
    """Value and derivatives as one plan, and the Hessian of a number; nothing without a program."""
    found = case(seed, draw=DRAWS[kind])
    if found is None:
        return []
    names = [f"{name}{seed}" for name in found.example.program.extents]
    roots = [output.expression for output in found.outputs]
    by = found.variables[f"{found.choice.names[0]}{seed}"]
    h = tc.hessian(tc.sum(tc.sin(roots[0])), by)
    few, many = dict.fromkeys(names, FEW), dict.fromkeys(names, NOMINAL)
    return [in_c(roots, few), held(h, many)]


def by_orders(orders: Sequence[Any], sizes: Mapping[str, int]) -> list[Row]:
    """Plans of each, and in what form the blocks of the last one are held."""
    return [*[in_c(e, sizes) for e in orders], *[held(h, sizes) for h in trees.leaves(orders[-1])]]


def model(name: str, spelling: str) -> list[Row]:
    f, wrt = MODELS[name].spellings()[spelling]
    return by_orders(spellings.by_order(f, wrt), {"n": MODELS[name].n})


def problem(name: str) -> list[Row]:
    """At the first of the small sizes: value, gradient and Hessian, or Jacobian, as it asks."""
    found = PROBLEMS[name]
    task = Task.of(found, found.select("small")[0])
    e = found.expression(task.case.sizes)
    named = [zip(v.shape, task.data[v.name].shape, strict=True) for v in e.variables.values()]
    sizes = {n: k for pairs in named for n, k in pairs if isinstance(n, str)}
    wished = {
        "gradient": tc.grad, "hessian": tc.hessian, "core": tc.hessian, "jacobian": tc.jacobian
    }  # fmt: skip
    makers = {wished[q]: None for q in task.case.quantities if q in wished}
    return by_orders([e, *[make(e, found.wrt) for make in makers]], sizes)


def everything() -> dict[str, dict[str, Callable[[], list[Row]]]]:
    """By kind and name, what makes the rows."""
    found = {
        f"random {kind}".strip(): {str(k): partial(random_program, kind, k) for k in SEEDS}
        for kind in DRAWS
    }
    found |= {
        name: {spelling: partial(model, name, spelling) for spelling in of.spellings()}
        for name, of in MODELS.items()
    }
    return {**found, "problems": {name: partial(problem, name) for name in PROBLEMS}}


def recorded() -> dict[str, dict[str, list[Row]]]:
    """By kind and name."""
    found: dict[str, dict[str, list[Row]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def worse(now: Sequence[Row], before: Sequence[Row]) -> bool:
    """Is some number larger, or something else another?"""
    if [len(row) for row in now] != [len(row) for row in before]:
        return True
    pairs = [pair for rows in zip(now, before, strict=True) for pair in zip(*rows, strict=True)]
    return any(a != b if isinstance(a, str) or isinstance(b, str) else a > b for a, b in pairs)


def main() -> None:
    with tc.limits(seconds=600):
        rows = {
            kind: {name: make() for name, make in of.items()} for kind, of in everything().items()
        }
    lines = [
        f'"{kind}": {{\n' + ",\n".join(f'"{k}": {json.dumps(row)}' for k, row in of.items()) + "\n}"
        for kind, of in rows.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
