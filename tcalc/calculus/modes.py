"""The orders of accumulation that "auto" compares: one is taken at once, the others when asked for.

Who wants numbers once needs no more than one of them; who prints a derivative, derives it further
or computes it many times wants the shortest, and asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..accumulation.loops_once import derived_loops, sharing_loops
from ..accumulation.orders import MODES, loops_apart
from ..graph.nodes import Expr, Var, postorder
from ..plan.lowering.candidates import by_operations
from ..rules.row_spaces import of_factors
from ..support.collector import resting_collector
from ..support.limits import attempted, counted
from .differences import at_once
from .merged_ends import ends

#: Steps that every mode may take that "auto" compares, beyond those of the modes before it.
EFFORT = 100_000

#: The modes that "auto" chooses from; of equal cost, the first is taken.
AUTO_MODES = ("reverse", "forward", "cross-country")

#: The most nodes of an expression, such as loops of Python leave behind, that "auto" accumulates
#: by several modes.
COMPARED = 500


class Accumulated:
    """The derivatives of one value by some variables, as one mode or several accumulate them.

    Attributes
    ----------
    first : list of Expr
        By every variable, by the mode that is taken first.
    several : bool
        Are other modes compared with it?
    """

    def __init__(self, value: Expr, wrt: Sequence[Var], mode: str) -> None:
        self.wrt = list(wrt)
        self._differences = at_once(value)
        value = self._differences.value
        self._ends = ends(value, self.wrt)
        self.several = mode == "auto" and bool(value.ndim)
        if self.several and len(postorder([value])) > COMPARED:
            # of large graphs one mode is taken, as comparing takes the longest
            self.several = False
            mode = "reverse" if value.ndim < max(v.ndim for v in wrt) else "forward"
        name = AUTO_MODES[0] if mode == "auto" else mode
        found, self._spent = counted(partial(self._by, name))
        self.first = of_factors(found)
        self._loops = derived_loops()
        self._all: list[Expr] | None = None

    def by(self, k: int, ranked: bool) -> list[Expr]:
        """The derivatives by variable k that differ, that of the fewest predicted operations first.

        Dimensions count as NOMINAL; of equal ones that of the first mode is taken. Where they are
        not `ranked` they are in the order of modes.
        """
        if self._all is None:
            self._all = self._by_all_modes()
        of_one = self._all[k :: len(self.wrt)]
        options = list({id(option): option for option in of_one}.values())
        return by_operations(options) if ranked and len(options) > 1 else options

    def _by(self, mode: str) -> list[Expr]:
        found = MODES[mode](self._ends.value, self._ends.leaves)
        return [self._differences.back(self._ends.back(k, e)) for k, e in enumerate(found)]

    def _by_all_modes(self) -> list[Expr]:
        """Those by all variables, by one mode after the other.

        A mode that takes more work than those before it together is given up: what takes so much
        longer to find is longer, and computes more.
        """
        apart = loops_apart(self._ends.value, self._ends.leaves)
        found: list[Expr] = []
        spent = self._spent
        with resting_collector(), sharing_loops(self._loops):
            for name in AUTO_MODES[1:]:
                if name == "cross-country" and apart:
                    continue
                order = partial(counted, partial(self._by, name))
                more, steps = attempted(order, spent + EFFORT) or ([], 0)
                found += more
                spent += steps
            found = [*self.first, *of_factors(found)]
        self._loops = None
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without derivatives of loops, which are known by ids."""
        return {**self.__dict__, "_loops": None}
