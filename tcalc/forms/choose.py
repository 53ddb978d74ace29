"""The form of an expression that is written: the cheapest for a reader of many equal ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ..accumulation.orders import forward, loop_operator, reverse
from ..graph.nodes import Derivative, Expr, postorder
from ..graph.normal import bare
from ..languages.writing.layout import FormulaLayout, tokens
from ..languages.writing.notation import rope_text
from ..languages.writing.style import Style
from ..ops.matrix.grouped import multiplied_out
from ..rules.differences import in_one_sum
from ..support.limits import attempted, exhausted

# Imported for the laws that they put into the table.
from . import (  # noqa: F401
    common_exponentials,
    common_factors,
    conditions,
    denominators,
    differences,
    distances,
    exponentials,
    frechet,
    functions,
    guards,
    matrices,
    products,
    quotients,
    signs,
    symmetric,
    term_by_term,
)
from .cost import reading_cost
from .egraph import Cost, EqualForms
from .guards import choices_made, on_support
from .laws import brought_together, one_search
from .parts import by_parts

MAX_LARGE = 120  #: nodes of an expression whose forms are looked for at once
MAX_TOKENS = 600  #: the same for the signs and names in its text
MAX_NODES = 400
MINUS = 0.1  #: what a sign in front costs, which what stands around may take
MAX_REPEATS = 2
MAX_STEPS = 400_000  #: several times what formulas of this size take
MAX_ORDER = 2  #: of derivatives for which those of what was written are tried
MIN_COST = 12  #: of one for which that is worth the time
MUCH_LESS = 0.9  #: the part of its cost that the other's is below


class _Cost:
    def __init__(self) -> None:
        self.layout = FormulaLayout(Style())

    def __call__(self, node: Expr) -> Cost:
        form = self.layout.form(node)
        self.layout.forms[id(node)] = form
        if form.plain.size > MAX_TOKENS:
            return form.plain.size, ""
        text = rope_text(form.plain.text)
        cost = reading_cost(text) + MINUS * form.plain.negative
        if node.ndim == 2:
            cost = (cost + reading_cost(rope_text(form.turned.text))) / 2
        return cost, text


def search(e: Expr) -> Expr:
    """The cheapest form that is found, of a large expression part by part."""
    if not _is_large(e):
        return _searched(e)
    # Before what is repeated is a variable for the search, of which slices of slices stay.
    e = in_one_sum(e)
    return by_parts(e, _searched) if _is_large(e) else _searched(e)


def _is_large(e: Expr) -> bool:
    return len(postorder([e])) > MAX_LARGE or tokens(e) > MAX_TOKENS


@one_search()
def _searched(e: Expr) -> Expr:
    """The cheapest form that is found; of what is large, itself."""
    if _is_large(e):
        return e
    known: dict[int, Expr] = {}
    forms = EqualForms(cost := _Cost(), MAX_NODES)
    found = start = brought_together(e, known)
    place = forms.add(start)
    for _ in range(MAX_REPEATS):
        forms.union(place, forms.add(found))
        attempted(forms.saturate, MAX_STEPS)  # what was found before it was stopped is equal too
        best = forms.best_of(start)
        found = brought_together(best, known)
        if found is best:
            break
        forms.most += MAX_NODES
    best._tokens = cost.layout.forms[id(best)].plain.size
    return best


def chosen(e: Expr) -> Expr:
    """The form of an expression that printers write.

    Parameters
    ----------
    e : Expr
        Also the root of a derivative.

    Returns
    -------
    Expr
        Equal where the formula on paper has a value (see `laws`); its own chosen form is itself.
        What `expand` made, and what takes more than the limits that are set, stays as it is.
    """
    if not isinstance(e, Expr):
        return e  # its writer says what it takes
    start = bare(e)
    if isinstance(e, Derivative) and e.as_written:
        return start
    if not isinstance(e, Derivative) or not e.wrt:
        return _chosen(on_support(start))
    if not isinstance(e._form, Expr):
        form = _chosen(start)
        made = choices_made(form)
        found = _shorter_derivative(e, form if made is form else _chosen(made))
        if exhausted():
            return found
        e._form = found
    return e._form


def _chosen(start: Expr) -> Expr:
    if start._form is not False:
        return start if start._form is True else start._form
    # Twice what saturation may take: with what is around it, which is less.
    better = attempted(partial(search, start), 2 * MAX_REPEATS * MAX_STEPS)
    found = start if better is None else better
    if not exhausted():
        found._form = True
        if found is not start:
            start._form = found
    return found


# --- derivatives of functions as they are written -------------------------------------------------


def _shorter_derivative(e: Derivative, found: Expr) -> Expr:
    """The form of a derivative, or that of the function as it is written if it is much shorter.

    What is computed is the derivative of stable forms: that of softplus(x) + log(a*sigmoid(x) +
    sigmoid(-x)) for log(a*exp(x) + 1), whose terms cancel in ways that no law sees.
    """
    if len(e.wrt) > MAX_ORDER or (cost := _reading_cost(found)) < MIN_COST:
        return found
    other = attempted(partial(_as_written, e), 4 * len(e.wrt) * MAX_REPEATS * MAX_STEPS)
    return other if other is not None and _reading_cost(other) < MUCH_LESS * cost else found


def _as_written(e: Derivative) -> Expr | None:
    """The derivative of what was written, each order that of the form chosen for the one before."""
    value = in_one_sum(on_support(bare(e.of)))
    for order, variable in enumerate(e.wrt, 1):
        nodes = postorder([value])
        if len(nodes) > MAX_LARGE or any(map(loop_operator, nodes)):
            return None
        found = [mode(value, [variable])[0] for mode in (reverse, forward)]
        if order == len(e.wrt):
            found = [e.project(one, e.slots) for one in found]
        value = min(map(_chosen, dict.fromkeys(found)), key=_reading_cost)
    return value


def _reading_cost(e: Expr) -> float:
    """The cost of what is searched for forms; of what is larger, more than any."""
    if _is_large(e):
        return math.inf
    cost = _Cost()
    cost.layout.prepared(e)
    return [cost(node) for node in postorder([e])][-1][0]


def shorter(write: Callable[[Expr], str], e: Expr) -> str:
    """The shorter text of the chosen form and of what is computed.

    Forms are chosen by their text in matrices, which what is computed may beat in indices; sums of
    unit tensors are multiplied out there, as conditions on indices then decide bounds.
    """
    form = chosen(e)
    forms = [multiplied_out(form) if isinstance(form, Expr) else form, bare(e)]
    return min(map(write, forms), key=len)
