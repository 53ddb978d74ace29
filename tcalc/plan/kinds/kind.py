"""The record of a kind of step: everything that plans and back ends ask about it.

A back end adds one kernel for each kind. `reference` says what that kernel computes, of any array
namespace and without writing into an array, so that back ends can be tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any, Literal

import numpy as np

from ...support.arrays import Sizes
from ...support.machine import Machine
from ...support.records import NamedTuple, record

Params = tuple[Any, ...]

#: The number of rows, how a tile reads each operand (its "rows", "columns", or the "whole"), and
#: how it has the result: its "rows", "columns", or a "sum" over rows.
Reading = tuple[int, Sequence[str], str]


class StepAccess(NamedTuple):
    """What is known of a step: extents and parameters.

    `turned` are the operands that are transposed views of matrices which are not wide; `machine`
    says which arrays are small, and which are wide.
    """

    shape: Sizes
    shapes: tuple[Sizes, ...]
    params: Params
    turned: tuple[bool, ...]
    machine: Machine


class Result(NamedTuple):
    """What a step is to make: its extents, and the type of the plan's numbers."""

    shape: Sizes
    dtype: Any


def given(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    """Extents that only the step itself knows."""
    return shape


def kept(shape: Sizes, params: Params, first: Sizes, *others: Sizes) -> Sizes:
    """The extents of the first operand."""
    return first


def stated(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    """Extents that are the parameters."""
    return params


def broadcast(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    return np.broadcast_shapes(*shapes)


def always(params: Params) -> bool:
    return True


def never(params: Params) -> bool:
    return False


def nothing(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    """Entries are moved, not computed."""
    return 0


def one_each(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    """One operation for every entry of the result."""
    return prod(shape)


def one_read(shape: Sizes, params: Params, first: Sizes, *others: Sizes) -> float:
    """One operation for every entry of the first operand."""
    return prod(first)


@record(frozen=True, kw_only=True, eq=False)
class Kind:
    """One kind of step.

    Attributes
    ----------
    name : str
        What steps of plans call it, and a back end's table of kernels.
    params : mapping
        The parameters of a step, in order, and what they are. A name with a star stands for all
        that follow, of which there may be none.
    shape : callable
        ``shape(given, params, *shapes)`` are the extents of the result, of operands with these
        extents; `given` are those that the step states, where operands and parameters do not tell.
    flops : callable or None
        ``flops(shape, params, *shapes)`` are the additions and multiplications; None where
        whoever makes a step says how many, as operators differ.
    speed : str
        How fast operations are: as a Machine's speed of this name.
    tiles : callable or None
        How a step runs on a few rows at a time (see `tiles`); None where it cannot.
    view : bool
        Does the result lie in the memory of the first operand?
    allocates : bool
        Does the kernel bring memory for the result, which the plan then does not?
    may_return : callable
        ``may_return(params)``: may the kernel return an operand's memory, which must then live as
        long as the result?
    in_place : str
        Which operand of the result's shape may be written over, if nobody reads it afterwards:
        the "first", the "second", "any", or none.
    waits : bool
        Does the step wait until others have read the operand that it may write over?
    into_zeros : bool
        Are only some entries written of a result that is zero before?
    cheap : bool
        Is the result not worth remembering between calls?
    integral : bool
        Is the result an array of integers?
    quick : bool
        Is it one or two operations for an entry, so that an array is made again rather than kept?
    inverts : tuple of str
        Which inverses (see `Op.inverts`) the step multiplies by, without making them.
    solves : str
        What users call that.
    reference : callable
        ``reference(xp, result, params, *arrays)`` is the result, by functions of the array
        namespace `xp`: a pure function.
    """

    name: str
    reference: Callable[..., Any]
    shape: Callable[..., Sizes]
    params: Mapping[str, str] = field(default_factory=dict)
    flops: Callable[..., float] | None = nothing
    speed: Literal["gemm", "factorisation", "correlation", "elementwise"] = "elementwise"
    tiles: Callable[[StepAccess], Reading | None] | None = None
    view: bool = False
    allocates: bool = False
    may_return: Callable[[Params], bool] = never
    in_place: Literal["", "first", "second", "any"] = ""
    waits: bool = False
    into_zeros: bool = False
    cheap: bool = False
    integral: bool = False
    quick: bool = False
    inverts: tuple[str, ...] = ()
    solves: str = ""

    def written_over(self, count: int) -> Sequence[int]:
        """Which of so many operands may be written over."""
        return {"": (), "first": range(1), "second": range(1, 2)}.get(self.in_place, range(count))

    @property
    def operator(self) -> bool:
        """Is the first parameter an operator, which then says what the step does?"""
        return "operator" in self.params
