"""The back ends by the names that `compile(backend=)` takes."""

from __future__ import annotations

from ..backends.c.program import C_BACKEND
from ..backends.functional.program import FUNCTIONAL_BACKEND
from ..backends.interface import BackEnd
from ..backends.numpy.program import NUMPY_BACKEND

BACKENDS: dict[str, BackEnd] = {
    "numpy": NUMPY_BACKEND,
    "c": C_BACKEND,
    "functional": FUNCTIONAL_BACKEND,
}


def backend_named(name: object) -> BackEnd:
    """The back end of this name, if it can run here.

    Raises
    ------
    ValueError
        Where there is none. Error where it lacks something.
    """
    if not isinstance(name, str) or name not in BACKENDS:
        names = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"backend {name!r} does not exist; there is {names}")
    BACKENDS[name].available()
    return BACKENDS[name]
