"""The rivals by name. A rival offers entries to be timed and, where it can, an oracle.

Each module has ``make(task) -> Iterator[Entry]`` and may have
``oracle(task) -> Oracle``; a module whose package is not installed is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata, util
from typing import Any

import tcalc as tc

from ..nests import Nest
from ..problem import Task
from ..suite import checkout


@dataclass(frozen=True)
class Entry:
    """One contestant for one quantity.

    Attributes
    ----------
    family : str
        The rival it comes from; a value is never checked by its own family.
    call : callable
        Computes the quantity and returns when it is there.
    product : callable
        For `core` and `jacobian`: ``product(value, v)`` is the Hessian, or Jacobian, times v.
    flops : float or None
        Predicted operations.
    peak : int or None
        Predicted peak memory in bytes.
    ready : bool
        The first call does nothing that later ones do not.
    clock : callable, optional
        Seconds of one call, for contestants that measure them on their own.
    on_host : callable
        A result as NumPy's arrays, to be checked.
    """

    quantity: str
    label: str
    family: str
    call: Callable[[], Any]
    product: Callable[[Any, Nest], Nest] | None = None
    flops: float | None = None
    peak: int | None = None
    ready: bool = False
    clock: Callable[[], float] | None = None
    on_host: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Oracle:
    """Independent values: `dense` ones, and the Hessian's and Jacobian's products with vectors."""

    family: str
    dense: Callable[[str], Nest]
    product: Callable[[Nest], Nest]
    pushforward: Callable[[Nest], Nest]


@dataclass(frozen=True)
class Rival:
    name: str
    module: str
    package: str

    @property
    def installed(self) -> bool:
        return util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return "from source"

    def entries(self, task: Task) -> Iterator[Entry]:
        found: Iterator[Entry] = import_module(self.module, __name__).make(task)
        return found

    def oracle(self, task: Task) -> Oracle | None:
        make = getattr(import_module(self.module, __name__), "oracle", None)
        found: Oracle | None = make(task) if make else None
        return found


class OnDevice(Rival):
    """What is there where a device is."""

    @property
    def installed(self) -> bool:
        try:
            tc.compile(tc.var("x"), backend="cupy")
        except tc.Error:
            return False
        return True


class Checkout(Rival):
    """What is there where its folder is named."""

    @property
    def installed(self) -> bool:
        return checkout() is not None

    @property
    def version(self) -> str:
        return "from a checkout"


RIVALS = {
    rival.name: rival
    for rival in (
        Rival("tcalc", ".own", "tcalc"),
        Rival("tcalc-c", ".compiled", "tcalc"),
        OnDevice("tcalc-cupy", ".cupys", "cupy"),
        Rival("tcalc-auto", ".default", "tcalc"),
        Rival("tcalc-source", ".printed", "tcalc"),
        Rival("hand", ".hand", "numpy"),
        Rival("jax", ".jaxes", "jax"),
        Rival("autograd", ".autograds", "autograd"),
        Rival("torch", ".torches", "torch"),
        Rival("asdex", ".asdexes", "asdex"),
        Checkout("gradbench", ".gradbenches", "gradbench"),
    )
}

#: Who checks values, first choice first; tcalc checks nobody, it is what is being tested.
ORACLES = ("jax", "hand", "autograd")
