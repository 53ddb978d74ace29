"""Identities of the shapes of compressed tensors."""

from __future__ import annotations

from typing import Any

from .tensor import Structured
from .terms.numeric_terms import identity_terms


def identity_like(held: Any) -> Any:
    """The identity of the shape of a square compressed tensor, inside its variable's subspace.

    Parameters
    ----------
    held : Structured or BlockStructured

    Returns
    -------
    Structured or BlockStructured
    """
    if not isinstance(held, Structured):
        made = getattr(held, "identity", None)
        if made is None:
            raise TypeError(f"identity_like takes a compressed tensor, not {type(held).__name__}")
        return made()
    held._square("identity_like")
    return Structured(identity_terms(held.terms.layout.column_shape), held.slots, held._limit)
