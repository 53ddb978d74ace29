"""The front door: expressions, or a traced function, to a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.declarations import declared
from ..graph.nodes import Expr, Var, dimensions, variables
from ..support.late_rows import LateRows
from ..support.misspelt import closest_name
from ..support.threads import checked_threads
from .binding import argument_names
from .compiled_functions import CompiledFunction
from .engine import Values

#: What is made: of arrays or compressed tensors, and looked at for the first nan or not.
MADE: LateRows[Callable[..., Any]] = LateRows(
    __package__,
    {
        "": ".compiled:Compiled",
        "structured": ".structured_results:CompiledStructured",
        "debug": ".nans:WatchedCompiled",
        "structured debug": ".nans:WatchedStructured",
    },
)


def compile(
    outputs: Any,
    args: Sequence[str | Var] | None = None,
    backend: str | None = None,
    data: Values | None = None,
    memory_limit: int | str | None = None,
    check: bool = True,
    structured: bool = False,
    threads: int | None = None,
    debug: bool = False,
    compute: bool = True,
) -> Any:
    """A function of arrays that computes expressions, shared parts once.

    Parameters
    ----------
    outputs : Expr or nested tuple, list or dict of Expr
        What to compute; results keep the nesting. Or ``grad(fun)``: it keeps what fun reads.
    args : sequence of str or Var, optional
        Names of positional arguments.
    backend : {"auto", "numpy", "c", "functional", "cupy", "dask"}, optional
        What runs the plan: NumPy, functions that the system's C compiler makes, pure functions, or
        CuPy on a GPU, which takes its arrays too and then leaves results there; with "dask"
        arguments may be dask's arrays or DataFrames, whose first axis is that of the rows, and the
        plan of each part of the rows runs where that part is.
        "auto" begins with NumPy; from a second call on a compiler makes the functions in the
        background, which take over when they are there. A first call takes a plan that is found
        quickly, where running it takes less time than to find the best one, which the second call
        does, or where that takes long the one after calls that have taken as long. The last digits
        of results may change then; "numpy" and "c" change none from call to call. By default what
        the environment's ``TCALC_BACKEND`` names, or else "auto".
    data : mapping, optional
        Arrays that are bound once and never changed: what depends on no others is kept.
    memory_limit : int or str, optional
        Bytes, or text like "2GiB"; a call predicted to allocate more raises before it does. By
        default what the machine or the process's control group has. Where the states of a `fold`
        that reverse derivatives read do not fit, about √n of its n are kept, as with its
        `checkpoint`, and the plan's `note` says so.
    check : bool
        Whether data are checked for the properties their variables declare.
    structured : bool
        Whether derivatives come compressed, as `tcalc.Structured`, or over several variables as
        `tcalc.BlockStructured` (Hessians) and `tcalc.BlockJacobian`; their cores may be arguments
        themselves, not copies.
    threads : int, optional
        How many threads a call may use for large arrays; results are the same for any number, but
        that products of BLAS, which has a number of its own, may differ in their last digits. By
        default what the environment's ``OMP_NUM_THREADS`` says, or else the cores that the process
        may use; with "dask" one for each task.
    debug : bool
        Look at every result: a nan from arguments without one is a FloatingPointError, which
        names the part of the expression that made it, the entry, and what it was made of.
    compute : bool
        With "dask", whether results that are not by rows are computed at once, by the scheduler
        that dask is set to; otherwise all come as dask's delayed values and arrays.

    Returns
    -------
    Compiled

    Raises
    ------
    TypeError
        For outputs that are no expressions, missing variables, data that are no real numbers.
        ShapeError, a ValueError, for shapes that disagree. MemoryLimitError.

    Examples
    --------
    >>> import tcalc as tc
    >>> x = tc.var("x", "n")
    >>> float(tc.compile(x @ x)(x=[3.0, 4.0]))
    25.0
    """
    flags = {"check": check, "structured": structured, "debug": debug, "compute": compute}
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name}= is True or False, not {flag!r}")
    if (structured or debug) and not compute:
        raise TypeError("compute=False is for plain results: others are made of numbers")
    options = args, backend, data, memory_limit, check, checked_threads(threads), bool(compute)
    compiled = MADE[" ".join([name for name in ("structured", "debug") if flags[name]])]
    if trees.is_function(outputs):
        return CompiledFunction(outputs, compiled, *options)
    made = compiled(outputs, *options)
    _check_names(argument_names(args), [e for e in trees.leaves(outputs) if isinstance(e, Expr)])
    return made


def _check_names(names: Sequence[str], outputs: Sequence[Expr]) -> None:
    """Refuse an argument that is nothing to the outputs, nor to what may have cancelled in them."""
    known = {*variables(outputs), *dimensions(outputs)}
    for name in names:
        if name not in known and not declared(name):
            close = closest_name(name, known)
            meant = f"; did you mean {close}?" if close else ""
            listed = ", ".join(sorted(known)) or "there is none"
            raise TypeError(
                f"args= has {name}, which is no variable of the outputs ({listed}){meant}"
            )
