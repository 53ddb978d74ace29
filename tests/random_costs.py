"""What random programs cost: ``python -m tests.random_costs`` writes `random_costs.json` again.

A form that is not found changes no number, only how large an expression is and what its plan takes.
So the file has, of each program, its value and two derivatives, the nodes, the operations and the
bytes at the peak, as they were when it was written. A test lets them fall, not grow: who makes some
grow on purpose writes the file again, and says why.
"""

from __future__ import annotations

import json

import numpy as np

import tcalc as tc
from tcalc.graph.nodes import postorder
from tcalc.plan.lowering.make import cost
from tests.documents import ROOT
from tests.fuzz import Draw, case
from tests.random_programs import FAMILIES

FILE = ROOT / "tests" / "random_costs.json"
DRAWS = {"": Draw(), **{family: Draw((family,)) for family in FAMILIES}}
#: The seeds of the programs of each kind, and what plans take dimensions for.
SEEDS, EXTENT = range(5000, 5100), 100

#: By output: nodes, operations, bytes.
Costs = list[list[float]]


def costs(kind: str, seed: int) -> Costs | None:
    """Of one program; None where the seed has none."""
    found = case(seed, draw=DRAWS[kind])
    if found is None:
        return None
    sizes = {name: EXTENT for name, value in found.bind.items() if np.ndim(value) == 0}
    rows = []
    for output in found.outputs:
        flops, peak = cost(output.expression, sizes)
        rows.append([len(postorder([output.expression])), round(flops), peak])
    return rows


def recorded() -> dict[str, dict[str, Costs]]:
    """By kind and seed."""
    found: dict[str, dict[str, Costs]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def grown(now: Costs | None, before: Costs | None) -> bool:
    """Are there other outputs, or is some number larger?"""
    if now is None or before is None or len(now) != len(before):
        return now != before
    return any(a > b for rows in zip(now, before, strict=True) for a, b in zip(*rows, strict=True))


def main() -> None:
    with tc.limits(seconds=600):
        drawn = {kind: {seed: costs(kind, seed) for seed in SEEDS} for kind in DRAWS}
    lines = [
        f'"{kind}": {{\n'
        + ",\n".join(f'"{seed}": {json.dumps(rows)}' for seed, rows in programs.items() if rows)
        + "\n}"
        for kind, programs in drawn.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
