"""Nests of expressions as text: a part after the other, each with what tells it from the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...graph import trees
from ...graph.nodes import Expr
from .constants import named_beside

Write = Callable[..., str]


def of_nests(join: Callable[[Any, Sequence[str]], str] = trees.listed) -> Callable[[Write], Write]:
    """A writer of expressions as one of nests of them too; `join` takes a nest and texts."""

    def decorated(write: Write) -> Write:
        @functools.wraps(write)
        def written(e: Any, **options: Any) -> str:
            def one(leaf: Any) -> str:
                with named_beside(leaf.variables if isinstance(leaf, Expr) else ()):
                    return write(leaf, **options)

            if not isinstance(e, tuple | list | dict):
                return one(e)
            return join(e, list(map(one, trees.leaves(e))))

        return written

    return decorated
