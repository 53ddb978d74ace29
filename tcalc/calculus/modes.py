"""The orders of accumulation that "auto" compares: one is taken at once, the others when asked for.

Who wants numbers once needs no more than one of them; who prints a derivative, derives it further
or computes it many times wants the shortest, and asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

from ..accumulation.loops_once import Derived, derived_loops, sharing_loops
from ..accumulation.orders import MODES, loop_operator, loops_apart, reverse_of_rows
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

#: The most values that meet in loops whose derivatives are accumulated one by one, too, and by
#: other modes: each of them has loops of its own then, by every variable.
APART = 3


class Accumulated:
    """The derivatives of one value by some variables, as one mode or several accumulate them.

    Attributes
    ----------
    first : list of Expr
        By every variable, by the mode that is taken first.
    joint : bool
        May `first` be accumulated together with the derivatives of other values?
    several : bool
        Is it compared with what other modes find?
    """

    first: list[Expr]

    def __init__(self, value: Expr, wrt: Sequence[Var], mode: str) -> None:
        self.wrt = list(wrt)
        self._differences = at_once(value)
        value = self._differences.value
        self._ends = ends(value, self.wrt)
        self._others = AUTO_MODES[1:] if mode == "auto" and value.ndim else ()
        self.joint = mode == "auto"
        if self._others and len(postorder([value])) > COMPARED:
            # of large graphs one mode is taken, as comparing takes the longest
            self._others = ()
            mode = "reverse" if value.ndim < max(v.ndim for v in wrt) else "forward"
        self._mode = AUTO_MODES[0] if mode == "auto" else mode
        self.joint = self.joint and self._mode == "reverse"
        self._meets = False
        self._spent = 0
        self._loops: Derived | None = None
        self._all: list[Expr] | None = None

    @property
    def several(self) -> bool:
        return bool(self._others)

    def begin(self) -> None:
        """Take the derivatives by the first mode."""
        found, spent = counted(partial(self._by, self._mode))
        self._take(of_factors(self._back(found)), spent)

    def _take(self, found: list[Expr], spent: int) -> None:
        """Keep the derivatives that are taken first, and how many steps they took."""
        self.first, self._spent, self._loops = found, spent, derived_loops()

    def by(self, k: int, ranked: bool) -> list[Expr]:
        """The derivatives by variable k that differ, that of the fewest predicted operations first.

        Dimensions count as NOMINAL; of equal ones that of the first mode is taken, and one that
        meets others in loops comes last, as alone it costs as much as all of these. Where they are
        not `ranked` they are in the order of modes.
        """
        if self._all is None:
            self._all = self._by_all_modes()
        of_one = self._all[k :: len(self.wrt)]
        options = list({id(option): option for option in of_one}.values())
        if not ranked or len(options) < 2:
            return options
        meeting = options[:1] if self._meets else []
        return [*by_operations(options[len(meeting) :]), *meeting]

    @property
    def between(self) -> tuple[Expr, Sequence[Expr]]:
        """What is derived, and by what, between the ends."""
        return self._ends.value, self._ends.leaves

    def _by(self, mode: str) -> list[Expr]:
        """Those between the ends."""
        return MODES[mode](*self.between)

    def _back(self, found: Sequence[Expr]) -> list[Expr]:
        """Derivatives between the ends as those of the value by the variables."""
        return [self._differences.back(self._ends.back(k, e)) for k, e in enumerate(found)]

    def _by_all_modes(self) -> list[Expr]:
        """Those by all variables, by one mode after the other.

        A mode that takes more work than those before it together is given up: what takes so much
        longer to find is longer, and computes more.
        """
        apart = loops_apart(*self.between)
        found: list[Expr] = []
        spent = self._spent
        with resting_collector(), sharing_loops(self._loops):
            for name in self._others:
                if name == "cross-country" and apart:
                    continue
                order = partial(counted, partial(self._by, name))
                more, steps = attempted(order, spent + EFFORT) or ([], 0)
                found += self._back(more)
                spent += steps
            found = [*self.first, *of_factors(found)]
        self._loops = None
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without derivatives of loops, which are known by ids."""
        return {**self.__dict__, "_loops": None}

    @staticmethod
    def together(rows: Sequence[Accumulated]) -> None:
        """Take the derivatives of several values by reverse mode, in which they may meet in loops.

        Of those that do, their own are one more mode to be compared; of more than APART none is.
        """
        between, spent = counted(lambda: reverse_of_rows([row.between for row in rows]))
        known = _loops([row.between[0] for row in rows])
        made = [_loops(found) - known for found in between]
        count = Counter(chain.from_iterable(made))
        meeting = [any(count[loop] > 1 for loop in loops) for loops in made]
        back = list(map(Accumulated._back, rows, between))
        ready = iter(of_factors(list(chain.from_iterable(back))))
        for row, found, meets in zip(rows, between, meeting, strict=True):
            row._take([next(ready) for _ in found], spent // len(rows))
            row._meets = meets
            if meets:
                row._others = (row._mode, *row._others) if sum(meeting) <= APART else ()


def _loops(roots: Sequence[Expr]) -> set[int]:
    return {id(node) for node in postorder(roots) if loop_operator(node)}


def accumulated(values: Sequence[tuple[Expr, Sequence[Var]]], mode: str) -> list[Accumulated]:
    """The derivatives of values, each by its own variables."""
    found = [Accumulated(value, wrt, mode) for value, wrt in values]
    joint = [own for own in found if own.joint]
    if len(joint) > 1:
        Accumulated.together(joint)
    for own in found:
        if own not in joint or len(joint) == 1:
            own.begin()
    return found
