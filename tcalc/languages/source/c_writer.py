"""What writes statements of C: arrays that are filled, numbers that are added up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ...graph.extents import NOMINAL, Extent, Shape, extent_names, nominal
from ...support.limits import spend
from .c_extents import extent_text
from .c_nests import Array, Line, Node, Statement, atom, nest, place
from .c_routine_rows import ROUTINES, Routine
from .c_values import (
    Value,
    along_last,
    by_columns,
    entry_of,
    in_memory,
    lying,
    scalar,
    transposed,
    value,
)
from .language import Code
from .scope import FunctionScope

#: Steps that the text of a statement takes.
EMITTED = 60
#: Turns of an innermost loop that cost less than its other parts.
SHORT = 8
#: Extents from which loops cost less than what compilers make of them for one extent.
FEW = 8


class Writer(ABC):
    """A function's statements, of numbers or of the integers that index.

    Parameters
    ----------
    scope : FunctionScope
        It takes the statements.
    integers : bool

    Attributes
    ----------
    copies : dict
        Matrices that are turned, by their names and extents.
    lengths : dict
        Guesses of extents, by their text.
    forms : tuple of callable
        Contractions that are no nest of loops: each is asked for its value, in this order.
    routines : mapping
        How operators of rows and matrices are called.
    """

    forms: ClassVar[tuple[Callable[..., Value | None], ...]] = ()
    routines: ClassVar[Mapping[str, Routine]] = ROUTINES

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.integers = integers
        self.kind = "ptrdiff_t" if integers else "real"
        self.copies: dict[tuple[str, ...], Value] = {}
        self.lengths: dict[str, int] = {}

    @abstractmethod
    def ordered(
        self, body: str, target: str, out: Sequence[str], summed: Sequence[str],
        over: Mapping[str, str],
    ) -> list[str]:  # fmt: skip
        """The loops over entries of a result and over a sum, by their indices, outermost first."""

    @abstractmethod
    def turned(
        self, body: str, inner: str, over: Mapping[str, str], made: Mapping[str, Value]
    ) -> str:
        """The text of an entry, reading copies that lie along the innermost loop.

        Arrays that are still to be `made` are filled.
        """

    @abstractmethod
    def scratch(
        self, stack: Sequence[str], size: str, kind: str, index: Sequence[str]
    ) -> tuple[Array, str]:
        """Memory that a routine needs while it works on one item of a stack, and where it is."""

    @abstractmethod
    def listed(self, kind: str, items: Sequence[str]) -> str:
        """Pointers of a type, ``"const real *"`` or one of functions, as one argument."""

    @abstractmethod
    def stacked(
        self, index: Sequence[str], stack: Sequence[str], body: list[Node]
    ) -> Sequence[Node]:
        """A routine's call for every item of a stack."""

    # --- statements ---

    def emit(self, *nodes: Node, made: Sequence[Array] = ()) -> None:
        spend("steps", EMITTED)
        self.scope.lines.append(Statement(list(nodes), list(made)))

    def index(self, count: int) -> list[str]:
        """Names of that many indices; `c_nests.lettered` gives them letters in the end."""
        return [f"_{k}" for k in range(count)]

    def storage(self, shape: Sequence[str], name: str = "", kind: str = "") -> tuple[Array, Value]:
        """An array to be filled."""
        array = Array(name or self.scope.fresh(), tuple(shape), kind or self.kind)
        return array, in_memory(array.name, shape, whole=True)

    def filled(
        self,
        shape: Sequence[str],
        c: Value,
        name: str = "",
        kind: str = "",
        rows: bool = False,
        order: Sequence[int] = (),
    ) -> Value:
        """The entries of a value in an array, or a number, under a name.

        Axes lie in `order`, the last one next to each other; without one row by row, if `rows` are
        wanted, or as is quick.
        """
        if not shape:
            local = name or self.scope.fresh()
            self.emit(Line(local, "=", entry_of(c, ()).text, f"const {kind or self.kind}"))
            return replace(in_memory(local, ()), weak=c.weak, whole=True)
        index = self.index(len(shape))
        text = entry_of(c, index).text
        order = order or self._order(text, index, shape, rows)
        extents = [shape[k] for k in order]
        array, stored = self.storage(extents, name, kind)
        line = Line(stored.entry([index[k] for k in order]).text, "=", text)
        self.emit(*nest([index[k] for k in order], extents, [line]), made=[array])
        if list(order) == list(range(len(shape))):
            return stored
        perm = [list(order).index(k) for k in range(len(shape))]
        return replace(transposed(stored, perm), name=True, text=stored.text)

    def _order(
        self, text: str, index: Sequence[str], shape: Sequence[str], rows: bool
    ) -> Sequence[int]:
        """Of axes in memory: as operands lie, and a short axis is not the last one."""
        natural = range(len(shape))
        if not rows and len(shape) == 2:
            return [1, 0] if by_columns(text, *index) else natural
        if not rows and len(shape) > 2 and (order := lying(text, index)):
            return order
        short = not rows and len(shape) > 2 and self.length(shape[-1]) < SHORT
        if not short or max(map(self.length, shape)) < SHORT or along_last(text, index):
            return natural
        return [natural[-1], *natural[:-1]]

    def zeros(self, shape: Sequence[str]) -> Value:
        if len(shape) < 3:
            return self.filled(shape, scalar("0")) if shape else self.zero()
        rest = " * ".join(map(atom, shape[1:]))
        array, found = self.storage(shape)
        index = self.index(2)
        first = Line(f"{array.name}[{place(index, (shape[0], rest))}]", "=", "0")
        self.emit(*nest(index, (shape[0], rest), [first]), made=[array])
        return found

    def zero(self) -> Value:
        name = self.scope.fresh()
        self.emit(Line(name, "=", "0", self.kind))
        return replace(in_memory(name, ()), whole=True)

    def extent(self, extent: Extent) -> str:
        """An extent as an integer of C."""
        text = extent_text(self.scope.extent(extent))
        known = self.scope.known
        whole = (
            extent_names([extent]) <= known.keys()
        )  # differences of what is not known say little
        self.lengths[text] = nominal(extent, known) if whole else NOMINAL
        return text

    def length(self, extent: str) -> int:
        """A guess of an extent in C."""
        return max(1, int(extent)) if extent.isdecimal() else self.lengths.get(extent, NOMINAL)

    def shape(self, shape: Shape) -> tuple[str, ...]:
        return tuple([self.extent(n) for n in shape])

    def plain(self, c: Code) -> Value:
        """A value that costs little to read again: one with a function in it gets a name."""
        given = value(c)
        costly = given.memory is None and any(sign in given.text for sign in ("(", " / "))
        return self.filled(given.shape, given) if costly and given.shape else given
