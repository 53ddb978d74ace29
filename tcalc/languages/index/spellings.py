"""What people write for sums and functions of entries, and what is written here: for messages."""

from __future__ import annotations

from ..reading.foreign import CALLED
from .grammar import BINDERS
from .values import closest_entry_function, entry_arity


def binder(name: str, indices: str = "") -> str:
    """How a reduction is written that somebody calls so; empty for other names.

    Examples
    --------
    >>> binder("sum_j"), binder("mean", "i"), binder("f")
    ('sum[j](…)', 'sum[i](…)/n for the extent n', '')
    """
    word, _, index = name.partition("_")
    word = CALLED.get(word) or CALLED.get(word.lower(), word.lower())
    written = f"[{indices or index or 'k'}](…)"
    if word in ("mean", "norm"):
        return f"sum{written}/n for the extent n" if word == "mean" else f"norm2{written}"
    return f"{word}{written}" if word in BINDERS else ""


def no_function(name: str, arguments: str, is_array: bool) -> str:
    """What to say of a call of what is no function."""
    if is_array:
        return f"`{name}` is an array; its entries are {name}[{arguments}]"
    message = f"there is no function `{name}`"
    if written := binder(name):
        return f"{message}; write {written}"
    other = CALLED.get(name, name.lower())
    if other != name and entry_arity(other):
        return f"{message}; write {other}({arguments})"
    near = closest_entry_function(name)
    return f"{message}; did you mean {near}?" if near else message
