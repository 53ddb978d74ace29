"""Bessel functions under SciPy's names. Orders are numbers: nothing is derived by them."""

from __future__ import annotations

from ..graph.nodes import Expr
from .arithmetic import public
from .elementwise import sign
from .elementwise_row import Function, Refused, elementwise

__all__ = [
    "i0",
    "i1",
    "iv",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k1",
    "kv",
    "y0",
    "y1",
    "yn",
    "yv",
]


# Derivatives are differences of neighbouring orders: nothing is divided (DLMF 10.6.1, 10.29.1).
jv: Function = elementwise(
    "jv", Refused("jv", "its order"), lambda n, x, y: (jv(n - 1, x) - jv(n + 1, x)) / 2,
    latex=r"J_{{{0}}}({1})", domain=((0.5, 2.5), (0.5, 4)), safe=(None, 1), flops=100,
)  # fmt: skip
yv: Function = elementwise(
    "yv", Refused("yv", "its order"), lambda n, x, y: (yv(n - 1, x) - yv(n + 1, x)) / 2,
    latex=r"Y_{{{0}}}({1})", domain=((0.5, 2.5), (0.5, 4)), safe=(None, 1), flops=100,
)  # fmt: skip
iv: Function = elementwise(
    "iv", Refused("iv", "its order"), lambda n, x, y: (iv(n - 1, x) + iv(n + 1, x)) / 2,
    latex=r"I_{{{0}}}({1})", domain=((0.5, 2.5), (0.5, 4)), safe=(None, 1), flops=100,
)  # fmt: skip
kv: Function = elementwise(
    "kv", Refused("kv", "its order"), lambda n, x, y: (kv(n - 1, x) + kv(n + 1, x)) / -2,
    latex=r"K_{{{0}}}({1})", domain=((0.5, 2.5), (0.5, 4)), safe=(None, 1), flops=100,
)  # fmt: skip
ive: Function = elementwise(
    "ive", Refused("ive", "its order"),
    lambda n, x, y: (ive(n - 1, x) + ive(n + 1, x)) / 2 - sign(x) * y,
    latex=r"e^{{-|{1}|}} I_{{{0}}}({1})", domain=((0.5, 2.5), (0.5, 4)), safe=(None, 1), flops=100,
)  # fmt: skip


def _of_order(n: int, row: Function, name: str) -> Function:
    def function(x: object) -> Expr:
        return row(n, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of every entry: `{row.__name__}` of order {n}."
    return public(function)


j0, j1 = _of_order(0, jv, "j0"), _of_order(1, jv, "j1")
y0, y1 = _of_order(0, yv, "y0"), _of_order(1, yv, "y1")
i0, i1 = _of_order(0, iv, "i0"), _of_order(1, iv, "i1")
k0, k1 = _of_order(0, kv, "k0"), _of_order(1, kv, "k1")


@public
def jn(n: object, x: object) -> Expr:
    """`jv` under SciPy's other name."""
    return jv(n, x)


@public
def yn(n: object, x: object) -> Expr:
    """`yv` of whole orders, under SciPy's name."""
    return yv(n, x)
