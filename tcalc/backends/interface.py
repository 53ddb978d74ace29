"""What a back end is, and what it makes of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..plan.steps import Plan
from ..support.arrays import Array
from ..support.machine import Machine
from ..support.records import NamedTuple
from ..support.rows import Rows


class Given(NamedTuple):
    """An input of a program: what comes with a call under a name, or (no name) never changes."""

    name: str
    value: Any


#: A call as one function: of arrays by name, giving the plan's outputs as a tuple, or None for
#: arguments that it is not made for. It may be called by several threads at once.
Entry = Callable[[dict[str, Any]], tuple[Any, ...] | None]
#: Makes the entry of further calls whose arguments are and lie as those of a call that was made do:
#: one for each of the plan's inputs, and those that no step reads; None where there is none, or
#: not yet.
EntryMaker = Callable[[Sequence[Given], Sequence[Given]], Entry | None]


class Program(Protocol):
    """A plan bound to a dtype: what is called again and again.

    Calls may come from several threads at once, and share nothing that they write to; they may
    also be nested. A program is never pickled: who holds one keeps what it is made of, and binds
    it again elsewhere.

    Attributes
    ----------
    entries : EntryMaker or None
    """

    @property
    def entries(self) -> EntryMaker | None: ...

    def __call__(self, arrays: Sequence[Array], /) -> list[Any]:
        """The plan's outputs.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
            One for each of ``plan.inputs``, of the shapes the plan was made for and the program's
            dtype, or of integers where the variable is one of integers; with any strides. They are
            not written to. Inputs in ``plan.fixed`` are the same arrays in all calls: what depends
            on nothing else may be computed at the first call and kept.

        Returns
        -------
        list
            One for each of ``plan.outputs``, with its axes in the order that is asked for: arrays
            that nobody else holds and that the program never writes to again (but where inputs
            are lent, an output may be one of them, or a view of it); scalars for outputs without
            axes.

        Raises
        ------
        StepError
            Where a step finds a matrix that it cannot do with, with the step, from the
            LinAlgError. Warnings of floating point operations are not given.
        """


class Sweep(Protocol):
    """A plan bound for loops, one call of which runs it many times.

    A step of kind "loop" has the plan of one iteration as its last parameter; its operator's kernel
    gets a `Sweep` in its place.
    """

    dtype: np.dtype[Any]

    def sweep(
        self,
        count: int,
        fixed: Mapping[str, Array],
        moving: Mapping[str, Rows],
        into: Sequence[Rows],
        ends: Rows | None = None,
    ) -> int:
        """Run `count` times, one time after the other: what is written may be read by the next.

        Parameters
        ----------
        count : int
        fixed : mapping
            Arrays by name that are the same each time; what ``plan.fixed`` says is computed once a
            sweep.
        moving : mapping
            By name, one row of a contiguous array for each time.
        into : sequence of Rows
            For each output one row for each time, of the output's shape and the program's dtype, to
            be written to.
        ends : Rows or None
            One number for each time, before the first of which that is not 0 the sweep ends.

        Returns
        -------
        int
            How many times it was run.

        Raises
        ------
        LinAlgError
            With the number of the time at which it came up.
        """


class Bind(Protocol):
    """Programs of plans."""

    def __call__(self, plan: Plan, dtype: np.dtype[Any], threads: int = 1) -> Program: ...


class BackEnd(NamedTuple):
    """One row of the table of back ends.

    A new one is a folder with such a row, and a line in `tcalc.run.backends`.

    Attributes
    ----------
    bind : callable
        A Program, given a plan, the dtype of its floating point arrays (float64, or float32), and
        as `threads` how many a call may use.
        Called once per set of extents and dtypes, under a lock: what costs much may wait for the
        first call.
    available : callable
        Raises an Error that says what is missing where the back end cannot run; otherwise does
        nothing. Asked whenever an expression is compiled, before anything is planned.
    machine : Machine
        What its plans are made for.
    memory : callable, optional
        How many bytes a call may allocate; None, where a Machine does not say either: what this
        process may.
    device : bool
        Does it take arrays of a device, too?
    refuses : bool
        Does a call raise a StepError where a matrix is not positive definite that should be? Then
        plans may presume it, and others are made where they are wrong.
    remark : callable, optional
        What a reader of a plan should know of how it is run here; empty: nothing.
    wait : callable, optional
        Waits so many seconds, or as long as it takes, for what is still being compiled; is it done?
    bind_lent : callable, optional
        As `bind`, for results that nobody is going to hold as they are: on a device they stay.
    once : callable, optional
        As `bind`, for a plan that is quick to find and may not be the best: who calls once gets no
        other. None where all calls are to give the same digits.
    engine : callable, optional
        Makes what is asked in place of an `Engine` of `tcalc.run.engine`, for a back end that does
        not run one plan: given the same, and as `threads` how many one plan may use, as `compute`
        whether results are wanted at once.
    """

    bind: Bind
    available: Callable[[], None]
    machine: Machine
    memory: Callable[[], int | None] = lambda: None
    device: bool = False
    refuses: bool = False
    remark: Callable[[Plan], str] = lambda plan: ""
    wait: Callable[[float | None], bool] = lambda seconds: True
    bind_lent: Bind | None = None
    once: Bind | None = None
    engine: Callable[..., Any] | None = None
