"""Which of equal forms of the results is written: the one that a plan computes.

Extents decide between forms; dimensions of which nothing is said count NOMINAL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from ...contraction.nested import Admits
from ...contraction.shared_products import shared_products
from ...graph.extents import NOMINAL, nominal
from ...graph.nodes import Derivative, Expr, dimensions, postorder, variables
from ...plan.lowering.candidates import planned
from ...support.errors import ShapeError
from ...support.machine import COMMON_FORMS, COMPILED_MACHINE, NOMINAL_MACHINE, Machine
from .nodes import stable

#: Extents by the names of dimensions.
Known = tuple[tuple[str, int], ...]
#: Nodes of a program up to which its forms are compared.
COMPARED = 500


def machine_of(words: Set[str]) -> Machine:
    """What runs a program of a language with these `words` of its own."""
    machine = COMPILED_MACHINE if "ahead" in words else NOMINAL_MACHINE
    return machine if "congruence" in words else replace(machine, forms=COMMON_FORMS)


def written_form(
    results: Sequence[Any],
    sizes: Mapping[str, int],
    machine: Machine = NOMINAL_MACHINE,
    times: int = 1,
) -> list[Expr]:
    """The results as they are written, products that several of their parts need as one node.

    They stay as they are where they are large, or extents are others less more than they are. Those
    of a loop's step are made so many `times`, and those that are made 0 times stay too.
    """
    roots = [stable(leaf) for leaf in results]
    if not times or len(postorder(roots)) > COMPARED:
        return roots
    known = {**dict.fromkeys(dimensions(roots), NOMINAL), **sizes}
    options = [_values(leaf, root, known) for leaf, root in zip(results, roots, strict=True)]
    return list(_chosen(_Same(options, tuple(known.items()), machine, times)))


class _Same:
    """Values of results, extents and what runs them: the same where the expressions are."""

    def __init__(
        self, options: list[list[Expr]], sizes: Known, machine: Machine, times: int
    ) -> None:
        self.options, self.sizes, self.machine, self.times = options, sizes, machine, times
        self.key = (tuple([tuple(map(id, values)) for values in options]), sizes, machine, times)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.key == other.key


@lru_cache(maxsize=8)
def _chosen(given: _Same) -> list[Expr]:
    """The form of the results; of several languages the first one finds it."""
    known = dict(given.sizes)
    try:
        found, way = planned(given.options, known, given.machine, given.times)
    except ShapeError:
        return [values[0] for values in given.options]

    def opens(uses: Counter[int]) -> Admits:
        return lambda e: way.open_shared or uses[id(e)] < 2

    return shared_products(found, opens, partial(nominal, sizes=known))


def _values(leaf: Expr, root: Expr, known: Mapping[str, int]) -> list[Expr]:
    """The values that a result may have: of a derivative, as several modes accumulate it."""
    if not isinstance(leaf, Derivative) or len(leaf.values) < 2:
        return [root]
    names, found = variables([root]).keys(), [leaf.project(e, leaf.slots) for e in leaf.values]
    return [
        e for e in found if variables([e]).keys() <= names and known.keys() >= {*dimensions([e])}
    ] or [root]
