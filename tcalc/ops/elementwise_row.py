"""Making rows: the table entry and the public function of an operator in one call."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..graph.applications import apply
from ..graph.formulas import Formula
from ..graph.nodes import Apply, Expr
from ..graph.operators import INFINITE, Kernels, Meaning, Op, Operands, Partial, Slope
from ..graph.spelling import Spelling
from ..support.errors import UnsupportedError
from ..support.records import record
from .arithmetic import broadcast, public
from .docstrings import documented

Function = Callable[..., Expr]
_ANY = (-2.0, 2.0)
_RESULT = """Of the operands' broadcast shape, whose named extents must agree (else a ShapeError).
    Numbers are float32 where no operand's are float64, and nan outside of the domain."""


@record(frozen=True)
class Refused:
    """In place of the derivative by an operand: it exists, but has no form that is offered."""

    operator: str
    operand: str

    def __call__(self, *nodes: Expr) -> Expr:
        raise UnsupportedError(f"{self.operator} has no derivative by {self.operand} here")


def elementwise(
    name: str,
    *partials: Partial,
    latex: str,
    formula: Formula | None = None,
    kernel: Formula | None = None,
    infix: str = "",
    domain: tuple[tuple[float, float], ...] | None = None,
    range: tuple[float, float] = INFINITE,
    safe: tuple[float | None, ...] = (),
    flops: float = 1.0,
    integral: bool = False,
    positive_of: tuple[int, ...] = (),
    truth: bool = False,
    even: Operands = (),
    odd: Operands = (),
    commutes: bool = False,
    slopes: Callable[[Apply], list[Slope] | None] | None = None,
) -> Function:
    """A row without core axes.

    Its formula, from which its kernel, its source and its C come, is a function of an array
    namespace and the operands; where none is given, it is NumPy's or SciPy's function of that name,
    which `kernel` calls where namespaces differ in what it takes.
    """
    known = formula or kernel or (lambda xp, *arrays: getattr(xp, name)(*arrays))
    row = Op(
        name, (0,) * len(partials),
        Meaning(
            partials, domain=domain or (_ANY,) * len(partials), range=UNIT if truth else range,
            safe=safe, integral=integral, positive_of=positive_of, truth=truth, even=even,
            odd=odd, commutes=commutes, slopes=slopes,
        ),
        Kernels(
            lambda xp, params, *arrays: known(xp, *arrays),
            ufunc="" if formula or not hasattr(np, name) else name, flops=flops, formula=formula,
            shares=formula is not None,
        ),
        Spelling(latex, infix=infix),
    )  # fmt: skip

    def function(*operands: object) -> Expr:
        if len(operands) != len(partials):
            raise TypeError(f"{name} takes {len(partials)} operands, not {len(operands)}")
        return apply(row, *broadcast(*operands))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of every entry, with NumPy's broadcasting."
    documented(function, ("x", "y", "z")[: len(partials)], _RESULT)
    return public(function)


NONNEGATIVE = (0.0, math.inf)
#: Above 0, though rounding may give 0.
POSITIVE = (math.ulp(0.0), math.inf)
UNIT = (0.0, 1.0)
