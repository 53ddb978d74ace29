"""Which expressions are powers, and of what."""

from __future__ import annotations

from ..graph.nodes import Apply, Expr
from ..graph.operators import operator_named
from ..graph.products import numeric_value

#: Of powers, by the operator; `power` has one as an operand.
EXPONENTS = {"power": 0.0, "sqrt": 0.5, "reciprocal": -1.0}


def is_power(e: Apply) -> bool:
    """Is e a power, whatever its exponents are?"""
    return e.op is operator_named("power")


def power_of(e: Expr) -> tuple[Expr, float] | None:
    """The base and the exponent, where e is a power with a number, a root or a reciprocal."""
    if not isinstance(e, Apply) or e.op.name not in EXPONENTS:
        return None
    base, *exponents = e.args
    found = numeric_value(exponents[0]) if exponents else EXPONENTS[e.op.name]
    return None if found is None else (base, found)


def whole_power(e: Expr) -> tuple[Expr, int] | None:
    """The base and the exponent, where e is a power with a whole number from 3 on."""
    if not isinstance(e, Apply) or not is_power(e):
        return None
    base, exponent = e.args
    value = numeric_value(exponent)
    return (base, int(value)) if value is not None and value == value // 1 >= 3 else None
