"""How operators are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ..support.records import record
from .nodes import Apply, Expr


@record(frozen=True, eq=False)
class Spelling:
    """How an operator is written.

    Attributes
    ----------
    latex : str
        LaTeX: operands ``{0}``, a parameter ``{function}``, others a subscript; ``{0}``: as it is.
    infix : str
        Operator of the matrix language where it is written between its operands.
    symbols : tuple of str
        The outputs' functions in LaTeX; empty: the names in the row's `parts`.
    shown : tuple of int
        The operands that formulas show where the others are functions of these; empty: all.
    printed : str
        The name in formulas, where another row with that name has the same values.
    parameters : bool
        Do formulas write the parameters?
    written : callable or None
        ``written(node)`` is the name and the operand of the user's call, for errors, where the
        application is not printed as that.
    source : str
        For rows of a family: the function that printed programs call.
    code : mapping
        By the name of a language of source, how it is written there, with operands as in `latex`:
        for functions that languages cannot know.
    """

    latex: str
    infix: str = ""
    symbols: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    printed: str = ""
    parameters: bool = True
    written: Callable[[Apply], tuple[str, Expr]] | None = None
    source: str = ""
    code: Mapping[str, str] = field(default_factory=dict)
