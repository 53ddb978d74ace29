"""The row of the table of back ends."""

from __future__ import annotations

from importlib.util import find_spec

from ..backends.interface import BackEnd
from ..backends.numpy.program import bind
from ..support.errors import Error
from ..support.machine import NOMINAL_MACHINE
from .engine import DaskEngine


def available() -> None:
    """Raise an Error where dask is missing."""
    if find_spec("dask") is None:
        raise Error("backend 'dask' needs dask: pip install 'tcalc[dask]'")


#: What is computed here, and the plans of parts, run on NumPy.
BACKEND = BackEnd(bind, available, NOMINAL_MACHINE, engine=DaskEngine)
