"""The operator table: one complete row per operator, read by every pass.

A row acts on operands whose leading axes are a common batch and whose trailing axes are its core:
elementwise operators have no core, reductions have a core that disappears, matrix functions have a
core of two axes. Passes know this signature, never an operator's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .extents import Extent, Shape
from .nodes import Apply, Expr, Var

#: Derivative with respect to one operand, from the operands and then the output; its shape is
#: batch + core of the output + core of the operand. None: zero everywhere it exists.
Partial = Callable[..., Expr] | None

INFINITE = (-math.inf, math.inf)


#: Tangents or cotangents, None where zero.
Given = Sequence[Expr | None]


class Iteration(NamedTuple):
    """One step of a loop.

    Attributes
    ----------
    following : mapping
        The next values of the states that are needed, by the state's number.
    states, slices, fixed : tuple of Var
        What stands for the operands, in this order: for the states, for one slice of each scanned
        operand, and for operands that are the same in all steps.
    times : int or str
        The number of steps.
    backward : bool
        Whether the last slice comes first.
    entries : callable
        ``entries(sizes)`` is the number of entries that the kernel holds.
    """

    following: Mapping[int, Expr]
    states: tuple[Var, ...]
    slices: tuple[Var, ...]
    fixed: tuple[Var, ...]
    times: Extent
    backward: bool
    entries: Callable[[Mapping[str, int]], int]

    @property
    def variables(self) -> tuple[Var, ...]:
        return self.states + self.slices + self.fixed


class Factor(NamedTuple):
    """A factorisation that exists in plans only: ``kernel(xp, params, a)`` gives any object."""

    name: str
    kernel: Callable[..., Any]
    flops: float


@dataclass(frozen=True, eq=False)
class Op:
    """One operator.

    Attributes
    ----------
    name : str
        The public name, also in the matrix language.
    core : tuple of int
        Number of core axes of each operand; -1: as many as the first parameter says.
    partials : tuple
        One derivative per operand; for a row with several outputs, a tuple of one per output.
    kernel : callable
        ``kernel(xp, params, *arrays)`` with an array namespace `xp`; may return an operand's
        memory.
    code : str
        NumPy source, operands as ``{0}``, ``{1}``, parameters as ``{p[0]}``.
    latex : str
        LaTeX with the same fields.
    infix : str
        Operator of the matrix language where it is written between its operands.
    domain : tuple of (low, high)
        Where each operand may be sampled.
    range : (low, high)
        Bounds of the values.
    safe : tuple
        Per operand, a point where value and derivatives are finite, for operators that are not
        finite everywhere; None elsewhere.
    ufunc : str
        The kernel as one NumPy ufunc, empty where there is none.
    transposes : bool
        Does transposing the cores of all operands transpose that of the result, or leave it?
    self_adjoint : bool
        Is the core of the result a symmetric matrix, whatever the operands are?
    flops : float
        Operations per entry of the largest operand, times the last extent for matrix functions.
    shape : callable
        Output shape from parameters and operand shapes; a tuple of shapes for several outputs.
    parts : tuple of str
        Printed names of the outputs of a row with several; each output is a `Part`.
    symbols : tuple of str
        The outputs' names in LaTeX, where they are not made of `parts`.
    shown : tuple of int
        The operands that formulas show, where others follow from these; empty: all.
    inverts : str
        "lower", "positive" or "general" where the result is the inverse of a lower triangle, of a
        positive definite or of any matrix: products with it are planned as solves.
    factor : Op or Factor or None
        A factorisation of the one operand from which `finish` computes the result; it is a step of
        its own, shared by all rows that want it.
    finish : callable or None
        ``finish(xp, params, factor)``.
    over : callable or None
        ``over(xp, params, array)`` turns an array that holds the operand (of `finish`, where there
        is one: the factor) into the result, in place.
    symmetric : bool
        Is the operand symmetric? Then kernels read one triangle, and derivatives are those along
        symmetric directions.
    definite : bool
        Is the result symmetric positive definite?
    triangular : bool
        Is the result, the first of several, lower triangular?
    printed : str
        The name in formulas, where another row with that name has the same values.
    written : callable or None
        ``written(node)`` is the name and the operand of the user's call, for errors, where the
        application is not printed as that.
    helper : str
        Source of a function that `code` calls, for printed programs.
    integral : bool
        Is the result an integer where all operands are?
    selects : bool
        Is the operand an array of integers and the result 1 where the index of the last axis, whose
        extent is the first parameter, is that integer, 0 elsewhere? Plans never make such arrays
        where they take entries or sum them by segments instead.
    indicates : callable or None
        Is the result, without operands, 1 where conditions on the indices hold and 0 elsewhere? Its
        parameters are the extents, the conditions and what is to be checked. Plans never make such
        arrays where they can read entries at shifted places instead. ``indicates(params)`` are the
        dimensions in them.
    pushforward, pullback : callable or None
        ``pushforward(k, tangent, node)`` and ``pullback(k, cotangent, node)`` with further axes
        behind (tangent) or before (cotangent) those of the node, where multiplying by the full
        partial costs more than it must; None where the operand has no derivative.
    tangents, cotangents : callable or None
        The derivative of all outputs by all operands at once, of a row for which one by one is more
        work: ``tangents(node, given)`` of the outputs from those of the operands, and
        ``cotangents(node, given, wanted)`` of the operands that are wanted from those of the
        outputs; None is zero.
    extents : callable or None
        ``extents(params)`` are the dimensions in the parameters, where these are not extents.
    loops : callable or None
        ``loops(params, read)`` is what one step of a loop computes, of which the outputs in `read`
        are wanted: an `Iteration`. Further parameters of the kernel are the number of steps, what
        is read, and what runs the plan of a step.
    batched : callable or None
        ``batched(node, args, extent)`` are all outputs with an axis of that extent in front, from
        operands with that axis in front; None for an operand without it. Elsewhere leading axes of
        operands are leading axes of the result.
    ahead : callable or None
        ``ahead(node, sizes)`` are all outputs of a loop of which more is computed for all steps at
        once, at these extents, or None.
    family : tuple
        A function and its arguments that make the row, for families of rows without end: those
        that are not in the table yet when an expression is unpickled.
    """

    name: str
    core: tuple[int, ...]
    partials: tuple[Partial | tuple[Partial, ...], ...]
    kernel: Callable[..., Any]
    code: str
    latex: str
    infix: str = ""
    domain: tuple[tuple[float, float], ...] = ()
    range: tuple[float, float] = INFINITE
    safe: tuple[float | None, ...] = ()
    ufunc: str = ""
    transposes: bool = False
    self_adjoint: bool = False
    shape: Callable[..., Any] | None = None
    pushforward: Callable[..., Expr | None] | None = None
    pullback: Callable[..., Expr | None] | None = None
    flops: float = 1.0
    parts: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    inverts: str = ""
    factor: Op | Factor | None = None
    finish: Callable[..., Any] | None = None
    over: Callable[..., None] | None = None
    symmetric: bool = False
    definite: bool = False
    triangular: bool = False
    printed: str = ""
    written: Callable[[Apply], tuple[str, Expr]] | None = None
    helper: str = ""
    integral: bool = False
    selects: bool = False
    indicates: Callable[[tuple[Any, ...]], set[str]] | None = None
    tangents: Callable[[Apply, Given], Given] | None = None
    cotangents: Callable[[Apply, Given, Sequence[bool]], Given] | None = None
    extents: Callable[[tuple[Any, ...]], set[str]] | None = None
    loops: Callable[[tuple[Any, ...], Collection[int]], Iteration] | None = None
    batched: Callable[[Apply, Given, Extent], tuple[Expr, ...]] | None = None
    ahead: Callable[[Apply, Mapping[str, int]], tuple[Expr, ...] | None] | None = None
    family: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if len(self.partials) != len(self.core) or len(self.domain) != len(self.core):
            raise TypeError(f"row {self.name}: one core, partial and domain per operand")
        if self.safe and len(self.safe) != len(self.core):
            raise TypeError(f"row {self.name}: one safe point per operand, or none")
        if not (self.code and self.latex and callable(self.kernel)):
            raise TypeError(f"row {self.name}: kernel, code and latex are needed")
        if TABLE.setdefault(self.name, self) is not self:
            raise TypeError(f"row {self.name} stands twice")

    @property
    def outputs(self) -> int:
        return max(1, len(self.parts))

    @property
    def elementwise(self) -> bool:
        return not any(self.core) and self.shape is None

    def cores(self, params: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple([params[0] if c < 0 else c for c in self.core])

    def result_shape(self, params: tuple[Any, ...], *shapes: Shape) -> Shape:
        if self.shape is not None:
            found: Shape = self.shape(params, *shapes)
            return found
        return shapes[0][: len(shapes[0]) - self.cores(params)[0]]

    def __reduce__(self) -> tuple[Any, ...]:
        return (self.family[0], self.family[1:]) if self.family else (named, (self.name,))

    def __repr__(self) -> str:
        return self.name


#: All rows by name.
TABLE: dict[str, Op] = {}


def named(name: str) -> Op:
    return TABLE[name]


def batch_axes(node: Apply) -> int:
    """Number of leading axes that the node shares with its operands."""
    if not node.args:
        return 0
    return node.args[0].ndim - node.op.cores(node.params)[0]
