"""What a language of source code decides: how every step of a program is written.

`program` and `products` decide what is computed in which order and which values get names, a
language how that reads. To add one, write a class with everything that is in `Language` and its
line in `registry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...graph.extents import Extent, Shape
from ...graph.nodes import Var
from ...integers.affine import Congruence, Constraint
from ...support.records import NamedTuple, record
from .places import View
from .scope import FunctionScope, Place
from .turns import Turns

#: How tightly the outermost operator of a text binds.
ATOM, PRODUCT, SUM = 2, 1, 0


@record(frozen=True)
class Code:
    """Source text of a value; a language may keep more in a subclass, such as the number of axes.

    Attributes
    ----------
    text : str
    level : int
        How tightly the outermost operator binds: `ATOM`, `PRODUCT` or `SUM`.
    name : bool
        Is it a name, which costs nothing to read again?
    weak : bool
        A number of the language, which takes the dtype of the arrays it meets.
    view : bool
        May share memory with something else.
    overlaps : bool
        Reads its memory more than once, so that copies of it are larger.
    condition : str
        The same as truth values, where the value is 1 and 0 for them.
    negated : str
        What the text is the negative of, in a sum where signs stand between terms.
    fresh : bool
        An array with all axes of what is made of it, which nothing else reads: to be overwritten.
    core : str
        The diagonal where the text is a diagonal matrix.
    """

    text: str
    level: int = ATOM
    name: bool = False
    weak: bool = False
    view: bool = False
    overlaps: bool = False
    condition: str = ""
    negated: str = ""
    fresh: bool = False
    core: str = ""


class Operator(NamedTuple):
    """An operator as it is applied.

    Attributes
    ----------
    name : str
        Of a row, or a function of NumPy that a formula calls.
    params : sequence of str
        Its parameters, which are written.
    core : int
        How many last axes of the first operand it acts on.
    shapes : sequence of Shape
        Of its results; none where a formula calls a function of entries or of one matrix.
    """

    name: str
    params: Sequence[str] = ()
    core: int = 0
    shapes: Sequence[Shape] = ()


class FunctionText(NamedTuple):
    """A function whose statements are written.

    Attributes
    ----------
    name : str
    parameters : mapping
        The variables by the names of the parameters, in the order of these.
    free : sequence of str
        Further parameters: dimensions that no array has; inside functions read them around them.
    bound : mapping
        Names of dimensions that the body reads, and the axis that has this extent.
    body : sequence of str
    result : Code
    doc : str
        What it returns, in English.
    formulas : sequence of str
        The same in the matrix language, where that is short.
    """

    name: str
    parameters: Mapping[str, Var]
    free: Sequence[str]
    bound: Mapping[str, Place]
    body: Sequence[str]
    result: Code
    doc: str
    formulas: Sequence[str] = ()


class Sample(NamedTuple):
    """Random numbers from 0.5 to 1.5 for a parameter, and what makes the declared data of them.

    Attributes
    ----------
    name : str
    shape : tuple of int
    value : Code
        The data, made of numbers under the name `NUMBERS`.
    stack : int
        How many leading axes are a stack of such numbers.
    integral : bool
        Is the data rounded down to integers?
    """

    name: str
    shape: tuple[int, ...]
    value: Code
    stack: int
    integral: bool


class Difference(NamedTuple):
    """A derivative by the last of its variables, to be compared with central differences.

    Attributes
    ----------
    before : str
        The function whose derivative is checked.
    sizes : mapping
        Its further parameters.
    direction : Sample
        An entry of 1 among zeros, `NUMBERS`, projected to where the variable ranges.
    """

    before: str
    sizes: Mapping[str, int]
    direction: Sample


class Check(NamedTuple):
    """What a program does that checks itself.

    Attributes
    ----------
    function : str
    samples : sequence of Sample
    sizes : mapping
        Further parameters of the function.
    shapes : sequence of tuple of int
        Those of its results.
    difference : Difference or None
        None: shapes are checked.
    """

    function: str
    samples: Sequence[Sample]
    sizes: Mapping[str, int]
    shapes: Sequence[tuple[int, ...]]
    difference: Difference | None


#: The name of random numbers in a self-check.
NUMBERS = "a"


class Language(Protocol):
    """A language, at work on one function.

    It writes numbers of the program's dtype; another object of it, for the same scope, writes the
    integers that index, exactly. Axes, integers that index and labels count from 0; labels that are
    equal mean one axis. Where a value takes statements of its own they go to `scope.lines`; names
    for them are `scope.fresh()`.

    Attributes
    ----------
    name : str
        As errors spell it.
    reserved : frozenset of str
        Names that mean something in programs: keywords, functions, modules.
    start : str
        What names that start with an underscore get in front.
    width : int
        Longer texts become statements.
    own_words : set of str
        The words of `solves.WORDS` that it has.
    scope : Scope
        The names and statements of the function.
    """

    name: str
    reserved: frozenset[str]
    start: str
    width: int
    own_words: frozenset[str]
    scope: FunctionScope

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None: ...

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        """An array under the name that it has."""

    def number(self, value: float) -> Code:
        """A number, perhaps negative, infinite or no number."""

    def array(self, value: np.ndarray) -> Code:
        """A constant array."""

    def size(self, extent: Extent) -> Code:
        """An extent as a number; `scope.extent` has the names in it."""

    def literal(self, value: Any) -> str:
        """A parameter of an operator: a number, a truth value, a string, a tuple of these."""

    def functions(self, names: Sequence[str]) -> str:
        """A parameter of an operator: functions of one number."""

    def assign(self, name: str, c: Code) -> Code:
        """The value under a name, after the statement that gives it."""

    def part(self, c: Code, index: int) -> Code:
        """One of several results."""

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        """Axis k of the result is axis perm[k] of c."""

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        """New axes of extent 1 where nothing is present; leading ones need not be written."""

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        """The diagonal that repeated labels of `word` are, its axes in the order of `out`."""

    def broadcast(self, c: Code, shape: Shape) -> Code:
        """The array repeated along axes that it has not."""

    # --- arithmetic, of which operands are repeated along axes that others have ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        """The product, entry by entry, of one factor at least."""

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        """The value over all divisors."""

    def negate(self, c: Code) -> Code:
        """The value with the other sign."""

    def add(self, terms: Sequence[Code]) -> Code:
        """The sum, in any order."""

    def full(self, c: Code, shape: Shape) -> Code:
        """An array with one number in every entry."""

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        """An array of zeros with c on the diagonal that repeated labels of `out` are.

        The axes of c are the distinct labels in the order of `out`; c may lack leading ones, along
        which it is repeated.
        """

    # --- places that are affine in indices ---

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        """The entries of c, whose shape is `whole`, at these places, all of which are inside."""

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        """The array within zeros: so many before and behind it, where there are entries at all."""

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        """Zeros of the shape `whole` with c, whose shape is the view's, added at these places.

        `onto` is such an array, made by this method and not read yet, to take the place of zeros.
        """

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        """An array indexed by arrays of integers, which have one shape; None is all of an axis.

        The axes of the integers stand where the axes stood that they index, in front where these
        were apart.
        """

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        """Slices of c added up: `index` says to which of so many places each of them goes."""

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        """1 where conditions hold, 0 elsewhere; ``#k`` in a form is the index of axis k."""

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        """Statements that end the function with an error where dimensions satisfy all of these."""

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        """The sum over some of all axes."""

    def trace(self, c: Code) -> Code:
        """The sum of a matrix's diagonal."""

    def matmul(self, a: Code, b: Code) -> Code:
        """The product of vectors, of matrices, or of stacks of matrices."""

    def inner(self, a: Code, b: Code) -> Code:
        """The sum of all products of entries."""

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        """Summed over pairs of axes; the axes left are those of a, then those of b."""

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        """Any contraction, its operands under labels."""

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        """What an operator makes of its operands, or None where there is no word for it.

        Operators that methods above are for (`formulas.ARITHMETIC`) do not come here.
        """

    def own(self, template: str, args: Sequence[Code]) -> Code:
        """A function of entries by text of the language in which operands are ``{0}``, ``{1}``."""

    def constant(self, c: Code) -> Code:
        """What an operator without operands makes, or integers, as an array of its dtype."""

    def whole_numbers(self, c: Code) -> Code:
        """Numbers that are integers, read among the integers that index."""

    def scalar(self, c: Code) -> Code:
        """What an operator makes of numbers of the language, as such a number."""

    def truth(self, c: Code) -> Code:
        """Truth values as 1 and 0."""

    def fold(self, step: str, operands: tuple[Sequence[Code], ...], turns: Turns) -> Code:
        """All results of a loop: the last states, then all states after each step, then before.

        `step` is a function of states, slices and what all steps share to states, as the operands
        are: first states, what is read one slice a step, and the rest.
        """

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        """A value as the caller gets it: an array or a number of its own."""

    def sequence(self, items: Sequence[Code]) -> Code:
        """Several results."""

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        """Results by name; keys are strings and numbers."""

    def function(self, f: FunctionText) -> list[str]:
        """The lines of a function of the module, `scope.refused` before all that computes."""

    def nested(self, f: FunctionText) -> list[str]:
        """The lines of a function inside this one, whose parameters have the program's dtype.

        Where there is no such thing it goes to `scope.functions`, which `function` writes.
        """

    def module(self, functions: Sequence[list[str]]) -> str:
        """The program: these functions, and all that they need."""

    def check(self, check: Check) -> str:
        """What follows on the program where it checks itself."""


def named(language: Language, c: Code) -> Code:
    """The value under a name, given now where it has none."""
    return c if c.name else language.assign(language.scope.fresh(), c)


def short_enough(language: Language, c: Code) -> Code:
    """The value, under a name where its text is long."""
    return named(language, c) if len(c.text) > language.width else c
