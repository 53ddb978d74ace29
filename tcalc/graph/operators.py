"""The operator table: a row tells what an operator means, how it is computed and how it is written.

An operator acts on operands whose leading axes are a common batch and whose trailing axes are its
core: elementwise operators have no core, reductions have a core that disappears, matrix functions
have a core of two axes. Passes know this signature, never an operator's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..support.machine import Machine
from ..support.records import NamedTuple, record
from .extents import Coef, Extent, Shape
from .formulas import Formula
from .iterations import Iteration
from .nodes import Apply, Expr, Labels
from .spelling import Spelling

#: Derivative with respect to one operand, from the operands and then the output; its shape is
#: batch + core of the output + core of the operand. None: zero everywhere it exists.
Partial = Callable[..., Expr] | None
#: Operands by their places, or which these are for given ones.
Operands = tuple[int, ...] | Callable[..., tuple[int, ...]]

INFINITE = (-math.inf, math.inf)
#: Where operands are sampled unless the row has a domain.
SAMPLED = (0.5, 2.0)

#: Tangents or cotangents of operands or outputs, None where zero.
Differentials = Sequence[Expr | None]

#: Operations, given the shapes of all operands.
Count = Callable[..., float]


def for_each_row(number: float) -> Count:
    """So many operations for every entry of the first operand and every entry of its last axis.

    For matrices of n rows that is number * n**3 each, for vectors of n entries number * n**2.
    """
    return lambda shape, *others: number * math.prod(shape) * shape[-1]


def for_each_entry(number: float) -> Count:
    """So many operations for every entry of the largest operand."""
    return lambda *shapes: number * max([1, *map(math.prod, shapes)])


class Factorisation(NamedTuple):
    """A factorisation that exists in plans on NumPy only: ``compute(xp, params, a)`` gives any
    object.
    """

    name: str
    compute: Callable[..., Any]
    flops: Count


class Slope(NamedTuple):
    """The derivative of a function, a product, by something that its operand is made of.

    Attributes
    ----------
    operand, word
        By what, and where its axes are among those of the function.
    factors, coef
        Of the product; each factor at axes of the function.
    """

    operand: Expr
    word: Labels
    factors: tuple[tuple[Expr, Labels], ...]
    coef: Coef


@record(frozen=True, eq=False)
class Meaning:
    """An operator as a mathematical function: what derivatives, rules and shape inference ask.

    Attributes
    ----------
    partials : tuple
        One derivative per operand; for a row with several outputs, a tuple of one per output.
    shape : callable
        ``shape(params, *shapes)`` is the output's shape, or a tuple of shapes for several outputs.
        None: the batch of the operands, without a core.
    domain : tuple of (low, high)
        Where each operand may be sampled; empty: every one in `SAMPLED`.
    range : (low, high)
        Bounds of the values.
    truth : bool
        Is the result 1 or 0, whatever the operands are?
    safe : tuple
        Per operand, a point where value and derivatives are finite, for operators that are not
        finite everywhere; None elsewhere.
    transposes : bool
        Does transposing the cores of all operands transpose that of the result, or leave it?
    pairs : bool
        Is the core of the result an entry for every row of the one operand and every row of the
        other, so that exchanging the operands transposes it?
    self_adjoint : bool
        Is the core of the result a symmetric matrix, whatever the operands are?
    pushforward, pullback : callable or None
        ``pushforward(k, tangent, node)`` and ``pullback(k, cotangent, node)`` of operand k, with
        further axes behind (tangent) or before (cotangent) those of the node, for operators whose
        full partial derivative is dearer to multiply by; they return None where that is zero.
    slopes : callable or None
        ``slopes(node)``: derivatives by what operands are made of, as of the logarithm of a
        quotient, in place of those by the operands; None where there are no such.
    inverts : str
        "lower", "positive" or "general" where the result is the inverse of a lower triangle, of a
        positive definite or of any matrix: products with it are planned as solves.
    symmetric : bool
        Is the operand symmetric? Kernels read one triangle, directions are symmetric.
    definite : bool
        Is the result symmetric positive definite?
    triangular : bool
        Is the result, the first of several, lower triangular?
    mask : (str, float) or None
        Of a constant square matrix that is 1 on one side of the diagonal and 0 on the other: that
        side, "lower" or "upper", and the diagonal.
    positive_diagonal : bool
        Is the diagonal of the result, the first of several, above 0?
    even, odd : tuple of int, or callable
        Operands whose sign the value does not depend on, and those whose sign it takes on, finite
        where they are 0; or which these are, by all operands.
    commutes : bool
        May the two operands be exchanged?
    positive_of : tuple of int
        The operands of which it follows that the result is above (or at least) 0 if they are.
    integral : bool
        Is the result an integer where all operands are?
    places : bool
        Is the result always an integer: places along an axis?
    regroups : bool
        Does the result hold the entries of its one operand, in another shape of the last axes?
    dimensions : callable or None
        ``dimensions(params)``: the names of dimensions in parameters that are no extents.
    """

    partials: tuple[Partial | tuple[Partial, ...], ...]
    shape: Callable[..., Any] | None = None
    domain: tuple[tuple[float, float], ...] = ()
    range: tuple[float, float] = INFINITE
    truth: bool = False
    safe: tuple[float | None, ...] = ()
    transposes: bool = False
    pairs: bool = False
    self_adjoint: bool = False
    pushforward: Callable[..., Expr | None] | None = None
    pullback: Callable[..., Expr | None] | None = None
    slopes: Callable[[Apply], list[Slope] | None] | None = None
    inverts: str = ""
    symmetric: bool = False
    definite: bool = False
    triangular: bool = False
    mask: tuple[str, float] | None = None
    positive_diagonal: bool = False
    even: Operands = ()
    odd: Operands = ()
    commutes: bool = False
    positive_of: tuple[int, ...] = ()
    integral: bool = False
    places: bool = False
    regroups: bool = False
    dimensions: Callable[[tuple[Any, ...]], set[str]] | None = None

    def signs(self, args: Sequence[Expr]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The operands whose sign the value does not depend on; those whose sign it takes on."""
        even, odd = (of(*args) if callable(of) else of for of in (self.even, self.odd))
        return even, odd


@record(frozen=True, eq=False)
class Kernels:
    """How an operator is computed with NumPy's interface; C text stands in `backends.c.rows`.

    Attributes
    ----------
    compute : callable
        ``compute(xp, params, *arrays)`` with an array namespace `xp`. A pure function, also of
        arrays that cannot be written to: by functions of `xp`, operators, and methods that arrays
        of all libraries have (reductions and `reshape`, which as NumPy's functions cost small
        arrays twice the time).
    shares : bool
        May the result lie in the memory of an operand, as another view of it?
    host : bool
        `compute` needs NumPy's arrays, whatever `xp` is: LAPACK routines that no other namespace
        has. Whoever runs it for another namespace converts operands and results.
    portable : callable or None
        Of a `host` row, ``portable(xp, params, *arrays)``: a pure one, for namespaces but NumPy.
    ufunc : str
        The same as one NumPy ufunc, empty where there is none.
    formula : callable or None
        ``formula(xp, *arrays)`` of an elementwise row that is made of others, by functions of `xp`
        and Python's operators: written where a language has no function of the row's name.
    flops : float or callable
        Additions and multiplications, a function counted as about ten: of each entry of the largest
        operand, or ``flops(*shapes)`` of operands with these shapes. Those of the factor, where
        there is one, come on top.
    factor : Op or Factorisation or None
        The factorisation of the operand from which `finish` computes the result; it is a step of
        its own, shared by all operators of one operand that need it.
    finish : callable or None
        ``finish(xp, params, factor)``: pure, as `compute`, where the factor is an operator's
        result; for NumPy only where it is that of a `Factorisation`.
    over : callable or None
        ``over(xp, params, array)`` turns an array that holds the operand (of `finish`, where there
        is one: the factor) into the result, in place, and so for NumPy only.
    into : callable or None
        ``into(xp, params, out, *arrays)`` writes the result into memory that the plan has for it,
        and so for NumPy only.
    """

    compute: Callable[..., Any]
    host: bool = False
    shares: bool = False
    portable: Callable[..., Any] | None = None
    ufunc: str = ""
    formula: Formula | None = None
    flops: float | Count = 1.0
    factor: Op | Factorisation | None = None
    finish: Callable[..., Any] | None = None
    over: Callable[..., None] | None = None
    into: Callable[..., None] | None = None


@record(frozen=True, eq=False)
class Op:
    """One operator.

    Attributes
    ----------
    name : str
        The public name, also in the matrix language.
    core : tuple of int
        Number of core axes of each operand; -1: as many as the first parameter says.
    meaning, kernels, spelling
        What it is, how it is computed, how it is written.
    parts : tuple of str
        Printed names of the outputs of a row with several; each output is a `Part`.
    params : tuple of tuples
        The parameters that the row admits, or one of each sort, for operands whose core has extents
        of 3: tests apply the row with each. Empty: none, or the number of core axes.
    family : tuple
        A function and its arguments that make the row, for families with any number of rows, which
        are made when they are needed: also when an expression is unpickled.
    """

    name: str
    core: tuple[int, ...]
    meaning: Meaning
    kernels: Kernels
    spelling: Spelling
    parts: tuple[str, ...] = ()
    params: tuple[tuple[Any, ...], ...] = ()
    family: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        meaning = self.meaning
        for what in ("partials", "domain", "safe"):
            given = getattr(meaning, what)
            if len(given) != len(self.core) and (given or what == "partials"):
                raise TypeError(f"row {self.name}: {what} need one item per operand")
        if not (self.spelling.latex and callable(self.kernels.compute)):
            raise TypeError(f"row {self.name}: a kernel and latex are needed")
        if TABLE.setdefault(self.name, self) is not self:
            raise TypeError(f"row {self.name} stands twice")

    @property
    def outputs(self) -> int:
        return max(1, len(self.parts))

    @property
    def domain(self) -> tuple[tuple[float, float], ...]:
        """Where each operand may be sampled."""
        return self.meaning.domain or (SAMPLED,) * len(self.core)

    @property
    def admitted(self) -> tuple[tuple[Any, ...], ...]:
        """Parameters that the row may be applied with."""
        return self.params or (((1,), (2,)) if -1 in self.core else ((),))

    @property
    def elementwise(self) -> bool:
        return not any(self.core) and self.meaning.shape is None

    def cores(self, params: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple([params[0] if c < 0 else c for c in self.core])

    def result_shape(self, params: tuple[Any, ...], *shapes: Shape) -> Shape:
        if self.meaning.shape is not None:
            found: Shape = self.meaning.shape(params, *shapes)
            return found
        return shapes[0][: len(shapes[0]) - self.cores(params)[0]]

    def __reduce__(self) -> tuple[Any, ...]:
        return (self.family[0], self.family[1:]) if self.family else (operator_named, (self.name,))

    def __repr__(self) -> str:
        return self.name


class Selection(Op):
    """One-hot vectors of an array of integers, along a last axis whose extent is the parameter.

    Plans gather or sum by segments where they can, and then never make such an array.
    """


@record(frozen=True, eq=False, kw_only=True, repr=False)
class Indicator(Op):
    """Without operands: 1 where conditions on the indices hold, and 0 elsewhere.

    Its parameters are extents, conditions, accesses to check; ``permuted(params, perm)`` are those
    of the row whose axis k is axis perm[k], and ``chained(rows, label)`` is a sum over a label.
    """

    permuted: Callable[[tuple[Any, ...], tuple[int, ...]], tuple[Any, ...]]
    chained: Callable[..., list[Any] | None]


@record(frozen=True, eq=False, kw_only=True, repr=False)
class Loop(Op):
    """A sequence of steps, each of which is the same expression of the states before it.

    Its kernel takes further parameters: the number of steps, which outputs are read, and a function
    that runs the plan of one step.

    Attributes
    ----------
    iteration : callable
        ``iteration(params, read)`` is one step, as far as the outputs in `read` need it: an
        `Iteration`.
    tangents, cotangents : callable
        The derivative of all outputs by all operands at once: ``tangents(node, given)`` of the
        outputs from those of the operands, and ``cotangents(node, given, wanted)`` of the operands
        that are wanted from those of the outputs, for every row of `given` and `wanted`; None is
        zero.
    batched : callable
        ``batched(node, args, extent)`` are all outputs with an axis of that extent in front, from
        operands with that axis in front; None for an operand without it.
    hoisted : callable
        ``hoisted(node, sizes, machine)`` are all outputs of an equal loop from which computations
        for all steps at once are hoisted, as far as memory allows at these extents; None where none
        are. Entrywise ones are worth it up to `machine.call` entries a step.
    summed : callable
        ``summed(node, roots, sizes, call)`` are the roots with sums over all steps of a loop made
        in it, where no history is kept then and its states have `call` entries; else None.
    rows : callable
        ``rows(node, roots, sizes, machine)`` are the roots with rows of large arrays made in the
        steps of a loop that scans them, or held by it for what reads them; None where none are.
    stretched : callable
        ``stretched(node, sizes)`` are the last states of an equal loop of whose steps derivatives
        keep states now and then only; None where that holds no less.
    """

    iteration: Callable[[tuple[Any, ...], Collection[int]], Iteration]
    tangents: Callable[[Apply, Differentials], Differentials]
    cotangents: Callable[
        [Apply, Sequence[Differentials], Sequence[Sequence[bool]]], list[Differentials]
    ]
    batched: Callable[[Apply, Sequence[Expr | None], Extent], tuple[Expr, ...]]
    hoisted: Callable[[Apply, Mapping[str, int], Machine], tuple[Expr, ...] | None]
    summed: Callable[[Apply, Sequence[Expr], Mapping[str, int], int], list[Expr] | None]
    stretched: Callable[[Apply, Mapping[str, int]], tuple[Expr, ...] | None]
    rows: Callable[[Apply, Sequence[Expr], Mapping[str, int], Machine], list[Expr] | None]


def operations(row: Op | Factorisation, *shapes: Sequence[int]) -> float:
    """Operations of one application, or of what is left of it once its factor is there."""
    flops = row.kernels.flops if isinstance(row, Op) else row.flops
    return (flops if callable(flops) else for_each_entry(flops))(*shapes)


#: All rows by name.
TABLE: dict[str, Op] = {}


def operator_named(name: str) -> Op:
    """The row of this name.

    Raises
    ------
    KeyError
        Where there is none: an expression of a function that was declared elsewhere.
    """
    if name not in TABLE:
        raise KeyError(f"there is no operator {name}: declare it with elementwise() before loading")
    return TABLE[name]


def batch_axes(node: Apply) -> int:
    """Number of leading axes that the node shares with its operands."""
    if not node.args:
        return 0
    return node.args[0].ndim - node.op.cores(node.params)[0]
