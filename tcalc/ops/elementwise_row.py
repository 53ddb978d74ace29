"""Making rows: the table entry and the public function of an operator in one call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..graph.applications import apply
from ..graph.nodes import Expr
from ..graph.row import INFINITE, Op, Partial
from .arithmetic import broadcast, public

Function = Callable[..., Expr]
_ANY = (-2.0, 2.0)


def elementwise(
    name: str,
    *partials: Partial,
    latex: str,
    code: str = "",
    kernel: Callable[..., Any] | None = None,
    infix: str = "",
    domain: tuple[tuple[float, float], ...] | None = None,
    range: tuple[float, float] = INFINITE,
    safe: tuple[float | None, ...] = (),
    flops: float = 1.0,
    integral: bool = False,
) -> Function:
    """A row without core axes. Where no kernel is given, it is NumPy's ufunc of that name."""
    ufunc = "" if kernel else name
    row = Op(
        name,
        core=(0,) * len(partials),
        partials=partials,
        kernel=kernel or (lambda xp, params, *arrays: getattr(xp, ufunc)(*arrays)),
        code=code or f"np.{name}({', '.join(f'{{{k}}}' for k, _ in enumerate(partials))})",
        latex=latex,
        infix=infix,
        domain=domain or (_ANY,) * len(partials),
        range=range,
        safe=safe,
        ufunc=ufunc,
        flops=flops,
        integral=integral,
    )

    def function(*operands: object) -> Expr:
        if len(operands) != len(partials):
            raise TypeError(f"{name} takes {len(partials)} operands, not {len(operands)}")
        return apply(row, *broadcast(*operands))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of every entry, with NumPy's broadcasting."
    return public(function)


def special(name: str) -> Callable[..., Any]:
    """A kernel from scipy.special, imported when first used."""

    def kernel(xp: Any, params: tuple[Any, ...], *arrays: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return kernel


NONNEGATIVE = (0.0, math.inf)
#: Above 0, though rounding may give 0.
POSITIVE = (math.ulp(0.0), math.inf)
UNIT = (0.0, 1.0)
