"""Passes over the rows: what each computes, and what is known in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.extents import show_shape
from ..graph.nodes import Expr, Var, variables
from ..graph.operators import Op
from ..support.records import NamedTuple
from .combinations import COMBINATIONS
from .found import ByRows, Known


class Reduction(NamedTuple):
    """What a pass reduces: expressions of a part, and the variables that the results become.

    Attributes
    ----------
    op : Op or None
        The row of `COMBINATIONS`; None for sums.
    parts : tuple of Expr
    results : tuple of Var
    passes : int
        That come before.
    """

    op: Op | None
    parts: tuple[Expr, ...]
    results: tuple[Var, ...]
    passes: int


class Sliced(NamedTuple):
    """A known value each part of the rows has its slice of.

    Attributes
    ----------
    value : Known
    axis : int
        Runs over the rows.
    places : bool
        Is a part given the numbers of its rows where the value is 1, and not zeros and ones?
    """

    value: Known
    axis: int
    places: bool = False


class Passes(NamedTuple):
    """Expressions by passes over the rows.

    Attributes
    ----------
    rows : mapping from Var to int
        The variables by rows, and which axis runs over them.
    extent : str
        The dimension of the rows of one part.
    outputs : list of Known and ByRows
    reductions : list of Reduction
    sent, sliced : mapping from Var
        The variables of parts that stand for known values, whole or their rows of them.
    made : mapping from Var to ByRows
        The variables of parts that stand for values by rows which are made by themselves.
    """

    rows: Mapping[Var, int]
    extent: str
    outputs: list[Known | ByRows]
    reductions: list[Reduction]
    sent: Mapping[Var, Known]
    sliced: Mapping[Var, Sliced]
    made: Mapping[Var, ByRows]

    @property
    def number(self) -> int:
        """How many passes reduce."""
        return max([0, *[r.passes + 1 for r in self.reductions]])

    def reduced_in(self, number: int) -> list[Reduction]:
        """The reductions of one pass."""
        return [r for r in self.reductions if r.passes == number]

    def needed(self, parts: Sequence[Expr]) -> list[Var]:
        """The variables for known values that expressions of a part read."""
        return [v for v in variables(parts).values() if v in self.sent or v in self.sliced]

    def value_of(self, v: Var) -> Known:
        """The known value that a variable of a part stands for."""
        return self.sent[v] if v in self.sent else self.sliced[v].value

    def __str__(self) -> str:
        first, axis = next(iter(self.rows.items()))
        passes = "1 pass" if self.number == 1 else f"{self.number} passes"
        lines = [f"{passes} over the rows ({first.shape[axis]}) of {_listed(self.rows)}"]
        for k in range(self.number):
            lines += [f"pass {k + 1}, {line}" for line in self._reduced(k)]
            told = [v for v, value in self.sent.items() if value.passes == k + 1]
            lines += [f"  then {v.name} = {self.sent[v].expr}" for v in told]
        lines += [f"by rows, {v.name} = {one.expr}" for v, one in self.made.items()]
        for one in self.outputs:
            if isinstance(one, ByRows):
                lines.append(f"by rows: {one.expr}  {show_shape(one.expr.shape)}")
            elif one.passes:
                lines.append(f"at last: {one.expr}")
        return "\n".join(lines)

    def _reduced(self, number: int) -> list[str]:
        return [
            f"{COMBINATIONS[r.op].words}: {v.name} = {part}  {show_shape(v.shape)}"
            for r in self.reduced_in(number)
            for v, part in zip(r.results, r.parts, strict=True)
        ]


def _listed(rows: Mapping[Var, int]) -> str:
    return ", ".join([v.name for v in rows])
