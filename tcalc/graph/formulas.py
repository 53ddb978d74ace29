"""Formulas of elementwise operators, and of matrices for self-checks, recorded.

One definition is run, printed and compiled. A formula is a function of an array namespace and of
operands, such as ``lambda xp, x: xp.maximum(x, 0)``. Run with `recorded`, it leaves behind what it
calls, by NumPy's names, so that a language writes it with its own words for these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Formula = Callable[..., Any]


class Entry:
    """An operand, or what a function makes of others: a formula as a tree.

    Attributes
    ----------
    name : str
        The function, under NumPy's name; of an operand empty.
    args : tuple
        Of a function, entries and numbers; of an operand its place.
    """

    def __init__(self, name: str, *args: Any) -> None:
        self.name, self.args = name, args

    def __neg__(self) -> Entry:
        return Entry("negative", self)


def _operator(name: str, swapped: bool = False) -> Callable[[Entry, Any], Entry]:
    def call(self: Entry, other: Any) -> Entry:
        return Entry(name, other, self) if swapped else Entry(name, self, other)

    return call


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
    "matmul": "matmul",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
for _method, _name in _OPERATORS.items():
    setattr(Entry, f"__{_method}__", _operator(_name))
    setattr(Entry, f"__r{_method}__", _operator(_name, swapped=True))
for _method, _name in _COMPARISONS.items():
    setattr(Entry, f"__{_method}__", _operator(_name))


class _Recorder:
    """An array namespace whose functions only record that they were called."""

    def __getattr__(self, name: str) -> Callable[..., Entry]:
        return lambda *args: Entry(name, *args)


def recorded(formula: Formula, count: int) -> Any:
    """What a formula does to so many operands: an `Entry`, or a number."""
    return formula(_Recorder(), *[Entry("", k) for k in range(count)])
