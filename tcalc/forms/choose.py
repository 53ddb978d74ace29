"""The form of an expression that is written: the cheapest for a reader of many equal ones."""

from __future__ import annotations

import weakref

from ..graph.nodes import Derivative, Expr, postorder
from ..graph.normal import bare
from ..languages.writing.layout import FormulaLayout
from ..languages.writing.notation import Style, rope_text
from . import functions, matrices, products, quotients  # noqa: F401
from .cost import reading_cost
from .egraph import EqualForms
from .laws import brought_together

MAX_LARGE = 150  #: nodes of an expression for which no other form is looked for
MAX_NODES = 400
MAX_REPEATS = 3

_chosen: weakref.WeakKeyDictionary[Expr, weakref.ref[Expr]] = weakref.WeakKeyDictionary()


class _Cost:
    def __init__(self) -> None:
        self.layout = FormulaLayout(Style())

    def __call__(self, node: Expr) -> float:
        form = self.layout.form(node)
        self.layout.forms[id(node)] = form
        plain = reading_cost(rope_text(form.plain.text))
        if node.ndim != 2:
            return plain
        return (plain + reading_cost(rope_text(form.turned.text))) / 2


def search(e: Expr) -> Expr:
    start = brought_together(e)
    forms = EqualForms(_Cost(), MAX_NODES)
    forms.add(start)
    forms.saturate()
    return forms.best_of(start)


def chosen(e: Expr) -> Expr:
    """The form of an expression that printers write."""
    e = bare(e)
    if len(postorder([e])) > MAX_LARGE:
        return e
    for _ in range(MAX_REPEATS):
        found = search(e)
        if found is e:
            break
        e = found
    return e
