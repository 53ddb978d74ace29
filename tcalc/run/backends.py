"""The back ends by the names that `compile(backend=)` takes."""

from __future__ import annotations

import os
from functools import partial

from ..backends.interface import BackEnd
from ..support.late_rows import LateRows
from ..support.threads import default_threads
from .bound import end_patience

#: The variable that names the back end where nothing does, and what it is by default.
CHOICE, DEFAULT = "TCALC_BACKEND", "auto"

BACKENDS: LateRows[BackEnd] = LateRows(
    __package__,
    {
        "auto": "..backends.auto.program:BACKEND",
        "numpy": "..backends.numpy.program:BACKEND",
        "c": "..backends.c.program:BACKEND",
        "functional": "..backends.functional.program:BACKEND",
        "cupy": "..backends.cupy.program:BACKEND",
        "dask": "..cluster.program:BACKEND",
    },
)


def backend_row(name: object, asked: str = "backend") -> BackEnd:
    """The back end of this name, whether or not it can run here."""
    if not isinstance(name, str) or name not in BACKENDS:
        names = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"{asked} {name!r} does not exist; there is {names}")
    return BACKENDS[name]


def backend_named(name: object = None, threads: int | None = None, compute: bool = True) -> BackEnd:
    """The back end of this name, or of the one that runs by default, if it can run here.

    Its programs use so many threads, by default what the environment says; without `compute` it
    gives what is computed later.

    Raises
    ------
    ValueError
        Where there is none. Error where it lacks something, TypeError where nothing is for later.
    """
    asked = "backend"
    if name is None:
        asked, name = CHOICE, os.environ.get(CHOICE, DEFAULT)
    found = backend_row(name, asked)
    found.available()
    if found.engine is not None:
        return found._replace(engine=partial(found.engine, threads=threads or 1, compute=compute))
    if not compute:
        raise TypeError(f"compute=False is for backend='dask'; {name!r} computes at once")
    return found._replace(bind=partial(found.bind, threads=threads or default_threads()))


def wait_for_compiler(timeout: float | None = None) -> bool:
    """Wait for functions that are being compiled in the background.

    The default back end computes with NumPy until they are there; from then on calls give the same
    digits every time. What still runs by a plan that was found quickly, as its calls have not yet
    taken as long as finding the best one takes, looks for that in its next call.

    Parameters
    ----------
    timeout : float, optional
        Seconds; as long as it takes where it is None.

    Returns
    -------
    bool
        Whether nothing is being compiled any more.
    """
    end_patience()
    loaded = [row for row in BACKENDS.data.values() if isinstance(row, BackEnd)]
    return all(row.wait(timeout) for row in loaded)
