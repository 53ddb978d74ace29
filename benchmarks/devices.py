"""Measuring on a device: what is run there unless something else is asked for, and what it is."""

from __future__ import annotations

import argparse
from importlib import import_module

from .rivals import RIVALS

#: The paper's three, a Gaussian process, convolutions.
PROBLEMS = (
    "logistic", "matrix-factorisation", "weighted-factorisation", "net", "gp", "convolution-1d",
    "convolution-2d",
)  # fmt: skip
#: Who computes there; what is not installed is left out, and the report says so.
SIDE_BY_SIDE = "tcalc-cupy,jax,torch"


def ask(options: argparse.Namespace) -> None:
    """Complete what was not said of a run on a device.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if not RIVALS["tcalc-cupy"].installed:
        raise ValueError("--backend cupy measures on a device, and CuPy finds none here")
    options.problems = options.problems or list(PROBLEMS)
    options.rivals = SIDE_BY_SIDE if options.rivals == "hand,jax" else options.rivals
    options.sizes = "paper" if options.sizes == "small" else options.sizes


def described() -> str:
    """The device that is current, its driver and CUDA; empty where there is none."""
    if not RIVALS["tcalc-cupy"].installed:
        return ""
    runtime = import_module("cupy").cuda.runtime
    found = runtime.getDeviceProperties(runtime.getDevice())
    name = found["name"].decode() if isinstance(found["name"], bytes) else found["name"]
    capability = f"{found['major']}.{found['minor']}"
    cuda, driver = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    return f"{name} (compute capability {capability}), CUDA {cuda}, driver {driver}"
