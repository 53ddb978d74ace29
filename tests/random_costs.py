"""What random programs cost: ``python -m tests.random_costs`` writes `random_costs.json` again.

A form that is not found changes no number, only how large an expression is and what its plan takes.
So the file has, of each program, its value and two derivatives, the nodes, the operations and the
bytes at the peak, as they were when it was written. A test lets them fall, not grow: who makes some
grow on purpose writes the file again, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

import tcalc as tc
from tcalc.graph.nodes import postorder
from tcalc.plan.lowering.make import cost
from tests.documents import ROOT
from tests.fuzz import Draw, case
from tests.random_programs import FAMILIES

FILE = ROOT / "tests" / "random_costs.json"
DRAWS = {"": Draw(), **{family: Draw((family,)) for family in FAMILIES}}
#: Programs of each kind, the seed of the first, and what plans take dimensions for.
COUNT, FIRST, EXTENT = 100, 5000, 100

#: By output: nodes, operations, bytes.
Costs = list[list[float]]


def costs(kind: str) -> Iterator[tuple[str, Costs]]:
    """Programs of a kind by their seeds."""
    for seed in range(FIRST, FIRST + COUNT):
        found = case(seed, draw=DRAWS[kind])
        if found is None:
            continue
        sizes = {name: EXTENT for name, value in found.bind.items() if np.ndim(value) == 0}
        rows = []
        for output in found.outputs:
            flops, peak = cost(output.expression, sizes)
            rows.append([len(postorder([output.expression])), round(flops), peak])
        yield str(seed), rows


def main() -> None:
    with tc.limits(seconds=600):
        found = {kind: dict(costs(kind)) for kind in DRAWS}
    lines = [
        f'"{kind}": {{\n'
        + ",\n".join(f'"{seed}": {json.dumps(rows)}' for seed, rows in programs.items())
        + "\n}"
        for kind, programs in found.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
