"""Errors of matrices without a property, in terms of what the user wrote.

A plan knows the step that failed, not the expression it came from. What is asked here, after the
fact, is which applications that step may have computed, and what the user wrote them as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..graph.applications import application, apply, core_swap, parts
from ..graph.extents import Coef, show_shape
from ..graph.nodes import Add, Apply, Derivative, Einsum, Expr, Part, postorder
from ..graph.normal import add, scale, view
from ..support.errors import LinAlgError, ShapeError
from ..support.excerpts import shortened
from .kinds.table import KINDS
from .steps import Step

#: Nodes of an expression that a message prints.
MAX_NODES = 400


class StepError(LinAlgError):
    """A LinAlgError of one step of a plan (None: not known)."""

    def __init__(self, message: str, step: Step | None) -> None:
        super().__init__(message)
        self.step = step


def without_entries(step: Step, arrays: Sequence[Any]) -> ShapeError | None:
    """The error of an operator without a value, where an operand has no entries."""
    empty = [k for k, array in enumerate(arrays) if not array.size]
    if not empty or not KINDS[step.kind].operator:
        return None
    what = f"{step.names[step.args[empty[0]]]} of shape {show_shape(arrays[empty[0]].shape)}"
    return ShapeError(f"{step.params[0]} of {what}: without entries it has no value")


def explained(
    error: StepError,
    computed: Sequence[Expr],
    roots: Sequence[Expr],
    alone: Callable[[Expr], object],
) -> LinAlgError:
    """The error with the smallest application that failed.

    Parameters
    ----------
    computed : sequence of Expr
        What was planned.
    roots : sequence of Expr
        What the user asked for.
    alone : callable
        Evaluates an expression by itself; called where several applications could have failed.
    """
    message = str(error)
    solves = error.step is not None and KINDS[error.step.kind].solves
    if solves:
        message = f"{solves}:{message.partition(':')[2]}"
    found = [node for node in postorder(computed) if _may_be(error.step, node)]
    written = postorder([_written(root) for root in roots])
    subjects = {id(s): s for s in [_subject(node, written) for node in found]}
    if len(subjects) > 1:
        failing = next((node for node in found if _fails(alone, node)), None)
        subjects = {} if failing is None else {0: _subject(failing, written)}
    text = next(map(_text, subjects.values()), "")
    return LinAlgError(f"{message}, in {text}" if text else message)


def _written(root: Expr) -> Expr:
    """The expression that was differentiated."""
    while isinstance(root, Derivative):
        root = root.of
    return root


def _may_be(step: Step | None, node: Expr) -> bool:
    """Can the step be (part of) the computation of this application?"""
    if step is None or not isinstance(node, Apply) or node.op.elementwise or not node.args:
        return False
    if inverts := KINDS[step.kind].inverts:
        return node.op.meaning.inverts in inverts
    op, *params = step.params
    if node.op is op:
        return repr(node.params) == repr(tuple(params[: len(node.params)]))
    return node.op.kernels.factor is not None and node.op.kernels.factor is op


def _fails(alone: Callable[[Expr], object], node: Expr) -> bool:
    several = isinstance(node, Apply) and node.op.outputs > 1
    try:
        alone(parts(application(node))[0] if several else node)
    except LinAlgError:
        return True
    except (TypeError, ValueError, MemoryError):
        return False
    return False


def _applications(written: Sequence[Expr]) -> Iterator[Apply]:
    for node in written:
        if isinstance(node, Apply) and not node.op.elementwise and node.args:
            yield node


def _subject(node: Expr, written: Sequence[Expr]) -> Apply:
    """The application that the user wrote, for one of a derivative or of a rewritten expression."""
    assert isinstance(node, Apply)
    operand = node.args[0]
    users = list(_applications(written))
    if any(node is user for user in users):
        return node
    if isinstance(operand, Part):
        return application(operand)
    same = [user for user in users if user.args[0] is operand]
    inner = [user for user in users if user is operand]
    return [*same, *inner, node][0]


# --- text -----------------------------------------------------------------------------------------


def _text(node: Apply) -> str:
    """The application as text, as long as a message may be."""
    if _size(node) > MAX_NODES:
        return ""
    if node.op.spelling.written is not None:
        name, operand = node.op.spelling.written(node)
        return shortened(f"{name}({operand})")
    (operand, *_) = node.args
    if node.op.meaning.symmetric and (half := _halved(operand)) is not None:
        return shortened(str(apply(node.op, half, params=node.params)))
    return shortened(str(node))


def _size(e: Expr) -> int:
    """Nodes of the expression written as a tree, up to a bound."""
    sizes: dict[int, int] = {}
    for node in postorder([e]):
        sizes[id(node)] = min(MAX_NODES + 1, 1 + sum([sizes[id(arg)] for arg in node.args]))
    return sizes[id(e)]


def _halved(e: Expr) -> Expr | None:
    """The B of (B + B') / 2, which stands for what the user called B."""
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else None
    if not isinstance(inner, Add) or e is not scale(inner, Coef(0.5)):
        return None
    terms: dict[int, Expr] = {id(t): t for t in inner.args}
    found: list[Expr] = []
    while terms:
        one = terms.pop(next(iter(terms)))
        two = view(one, core_swap(one.ndim))
        if two is one:
            found.append(scale(one, Coef(0.5)))
        elif terms.pop(id(two), None) is None:
            return None
        else:
            turned = isinstance(one, Einsum) and not one.summed and len(one.args) == 1
            found.append(two if turned else one)
    return add(found)
