"""The identity of the shape of a compressed tensor, or of blocks."""

from __future__ import annotations

from typing import Any


def identity_like(held: Any) -> Any:
    """The identity of the shape of a square compressed tensor, inside its variable's subspace.

    Parameters
    ----------
    held : Structured or BlockStructured

    Returns
    -------
    Structured or BlockStructured
    """
    made = getattr(held, "identity", None)
    if made is None:
        raise TypeError(f"identity_like takes a compressed tensor, not {type(held).__name__}")
    return made()
