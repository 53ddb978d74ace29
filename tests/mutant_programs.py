"""Random programs as trials of planted faults: what random programs see takes no test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tests import random_costs, recorded_forms
from tests.fuzz import OTHERS, Draw, case, compared
from tests.planted import Trial
from tests.random_programs import FAMILIES


class Unit(NamedTuple):
    """A program, and where it is compared."""

    seed: int
    draw: Draw
    checks: tuple[str, ...]

    def wrong(self) -> str:
        """What the first comparison tells that differs, or nothing."""
        try:
            found = case(self.seed, draw=self.draw)
        except Exception as error:
            return f"building: {type(error).__name__}"
        for where in self.checks if found is not None else ():
            if told := compared(found, where):
                return f"{where}: {told[0].what}"
        return ""


def units(count: int) -> Iterator[Unit]:
    """Programs of every kind, each run, planned, and compared in two other ways in turn."""
    draws = [Draw(), *[Draw((family,)) for family in FAMILIES], Draw((), zeros=True)]
    for k in range(count):
        some = {OTHERS[j % len(OTHERS)] for j in (k, k // len(draws))}
        yield Unit(k, draws[k % len(draws)], ("numpy", "planned three ways", *sorted(some)))


def costs(kind: str, seed: int, before: random_costs.Costs | None) -> str:
    now = random_costs.costs(kind, seed)
    return f"{before} -> {now}" if random_costs.grown(now, before) else ""


def forms(make: Callable[[], list[recorded_forms.Row]], before: list[recorded_forms.Row]) -> str:
    now = make()
    return f"{before} -> {now}" if recorded_forms.worse(now, before) else ""


def trials(count: int) -> list[Trial]:
    """Programs that are compared, what others cost, and what forms they get."""
    recorded = [
        (kind, seed, programs.get(str(seed)))
        for kind, programs in random_costs.recorded().items()
        for seed in random_costs.SEEDS
    ]
    before = recorded_forms.recorded()
    compare = [Trial(f"program {unit.seed}", unit.wrong) for unit in units(count)]
    cost = [Trial(f"cost {row[0]} {row[1]}", lambda row=row: costs(*row)) for row in recorded]
    form = [
        Trial(f"form {kind} {name}", partial(forms, make, before[kind][name]))
        for kind, of in recorded_forms.everything().items()
        for name, make in of.items()
    ]
    return [*compare, *cost, *form]
