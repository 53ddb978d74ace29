"""Nests of expressions as text: a part after the other, each with what tells it from the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...graph import trees

Write = Callable[..., str]


def of_nests(join: Callable[[Any, Sequence[str]], str] = trees.listed) -> Callable[[Write], Write]:
    """A writer of expressions as one of nests of them too; `join` takes a nest and texts."""

    def decorated(write: Write) -> Write:
        @functools.wraps(write)
        def written(e: Any, **options: Any) -> str:
            if not isinstance(e, tuple | list | dict):
                return write(e, **options)
            return join(e, [write(leaf, **options) for leaf in trees.leaves(e)])

        return written

    return decorated
