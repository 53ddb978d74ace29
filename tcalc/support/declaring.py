"""How messages write a declaration: as Python does, unless what reads the text has another way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Spelling = Callable[[str, tuple[str, ...]], str]


def _keyword(name: str, shape: tuple[str, ...]) -> str:
    extents = ", ".join([f'"{extent}"' for extent in shape])
    return f"{name}=({extents}{',' if len(shape) == 1 else ''})"


_spelling: ContextVar[Spelling] = ContextVar("_spelling", default=_keyword)


def declaration(name: str, *shape: str) -> str:
    """A declaration as whoever reads the message would write it.

    Examples
    --------
    >>> declaration("x", "n")
    'x=("n",)'
    >>> with declared_as(lambda name, shape: f"--var {name}={','.join(shape)}"):
    ...     declaration("x", "n")
    '--var x=n'
    """
    return _spelling.get()(name, shape)


@contextmanager
def declared_as(spelling: Spelling) -> Iterator[None]:
    """Inside, messages write declarations so."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)
