"""The languages of text by name: one row each, which the command line reads."""

from __future__ import annotations

from collections.abc import Callable

from ..graph.nodes import Expr
from ..support.records import NamedTuple
from .einsum.parse import parse_einsum
from .einsum.print import to_einsum
from .index.parse import parse_index
from .index.print import to_index
from .latex import to_latex
from .mathml import to_mathml
from .matrix.parse import parse
from .matrix.print import to_text


class TextLanguage(NamedTuple):
    """How expressions are read and written in a language.

    Attributes
    ----------
    form : str
        Its name as a form of output.
    write : callable or None
        The text of an expression; None for what is only read.
    read : callable or None
        The expression of a text and of declarations by name; None for what is only written.
    names : bool
        Does `write` take ``where=``: names for what is repeated?
    """

    form: str
    write: Callable[..., str] | None = None
    read: Callable[..., Expr] | None = None
    names: bool = False


#: By the name as a language of input.
TEXT_LANGUAGES: dict[str, TextLanguage] = {
    "matrix": TextLanguage("text", to_text, parse, names=True),
    "index": TextLanguage("index", to_index, parse_index),
    "einsum": TextLanguage("einsum", to_einsum, parse_einsum),
    "latex": TextLanguage("latex", to_latex, names=True),
    "mathml": TextLanguage("mathml", to_mathml, names=True),
}
