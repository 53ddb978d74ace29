"""Python functions of arrays as operators: derivatives do not look inside, but take stated rules.

A call whose arguments hold expressions is one node; all other arguments are its parameter. Its
kernel calls the function, and its derivatives are what the stated rules give for expressions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.applications import apply
from ..graph.bound_variables import Scope
from ..graph.extents import ONE, Shape, extent_names, show_shape
from ..graph.nodes import Apply, Expr, Var
from ..graph.normal import einsum, view
from ..graph.operators import Kernels, Meaning, Op, batch_axes
from ..graph.products import zeros_node
from ..graph.spelling import Spelling
from ..graph.variables import check_shape
from ..ops.arithmetic import as_expr
from ..support.errors import ShapeError, TraceError, UnsupportedError
from ..support.records import NamedTuple
from .batching import with_batch_axis

Function = Callable[..., Any]
#: ``rule(argnum, ans, args, options)``: the function from a cotangent of the value to that of an
#: argument; of `PUSHFORWARDS` from a tangent of the argument to that of the value. None: zero.
Rule = Callable[[int, Any, Sequence[Any], dict[str, Any]], Function | None]

#: The stated rules, by the functions.
PULLBACKS: dict[Function, Rule] = {}
PUSHFORWARDS: dict[Function, Rule] = {}

#: Tells rows with one name apart.
_serial = count(1)
#: Calls of a function whose shapes are kept.
_KEPT = 64


class _Operand(NamedTuple):
    """The place of an operand in the arguments."""

    number: int


class _Call:
    """A call of a function but for its operands.

    Attributes
    ----------
    args, options
        The arguments, with an `_Operand` in place of each expression.
    places : tuple of (int, int)
        Of each operand, the number of its argument and of its leaf there.
    """

    def __init__(self, args: Sequence[Any], options: dict[str, Any]) -> None:
        places: list[tuple[int, int]] = []

        def opened(argnum: int, arg: Any) -> Any:
            found = trees.leaves(arg)
            for k, leaf in enumerate(found):
                if isinstance(leaf, Expr):
                    found[k] = _Operand(len(places))
                    places.append((argnum, k))
            return trees.unflatten(arg, iter(found))

        self.args = [opened(k, arg) for k, arg in enumerate(args)]
        self.options, self.places = options, tuple(places)
        self._text = _told_apart([self.args, options])

    def filled(self, values: Sequence[Any]) -> list[Any]:
        """The arguments with values in place of the operands."""
        return [_filled(arg, values) for arg in self.args]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text  # by which nodes are told apart


def _filled(template: Any, values: Sequence[Any]) -> Any:
    if isinstance(template, _Operand):
        return values[template.number]
    if isinstance(template, dict):
        return {key: _filled(part, values) for key, part in template.items()}
    if isinstance(template, list | tuple):
        found = [_filled(part, values) for part in template]
        if isinstance(template, list):
            return found
        return type(template)(*found) if hasattr(template, "_fields") else tuple(found)
    return template


def _told_apart(value: Any) -> str:
    """Text that equal arguments share: numbers and text are what they are, others never equal."""
    if value is None or isinstance(value, bool | int | float | str | _Operand):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(_told_apart, value))})"
    if isinstance(value, dict):
        return (
            f"dict({', '.join([f'{key!r}: {_told_apart(part)}' for key, part in value.items()])})"
        )
    return f"object {next(_serial)}"


def black_box(f: Function, shape: Function | None = None) -> Function:
    """A function of arrays as an operator, whose derivatives are those of stated rules.

    Parameters
    ----------
    f : callable
        A function of arrays, which it must not write to, to one array. For equal arguments it gives
        equal arrays.
    shape : callable, optional
        ``shape(*args, **options)`` is the shape of the value, for arguments that hold expressions.
        Without it `f` is called once, with numbers between 0.5 and 1.5, to see its shape.

    Returns
    -------
    callable
        Of arrays, `f` itself. Where an argument is an expression, or a nest that holds some, the
        value is an expression.

    Raises
    ------
    TraceError
        By the function: where the shape cannot be seen. UnsupportedError where a derivative is
        asked for of which there is no rule.
    """
    rows: dict[tuple[int, ...], Op] = {}

    @functools.lru_cache(_KEPT)
    def seen(call: _Call, *shapes: Shape) -> Shape:
        return _shape_seen(f, call, shapes)

    @functools.wraps(f)
    def box(*args: Any, **options: Any) -> Any:
        if any(isinstance(leaf, Expr) for leaf in trees.leaves(options)):
            raise TraceError(f"{_name(f)}: expressions are positional arguments here")
        operands = [leaf for leaf in trees.leaves(args) if isinstance(leaf, Expr)]
        if not operands:
            return f(*args, **options)
        call = _Call(args, options)
        if shape is None:
            found = seen(call, *[e.shape for e in operands])
        else:
            found = check_shape(shape(*args, **options), f"the shape of {_name(f)}")
        cores = tuple([e.ndim for e in operands])
        if cores not in rows:
            rows[cores] = _row(box, f, cores)
        return apply(rows[cores], *operands, params=(call, found))

    return box


def _shape_seen(f: Function, call: _Call, shapes: Sequence[Shape]) -> Shape:
    """The shape of the value for numbers of these shapes."""
    name = _name(f)
    if any(isinstance(extent, str) for s in shapes for extent in s):
        raise TraceError(
            f"{name}: of {', '.join(map(show_shape, shapes))} the shape is not known; state shape="
        )
    random = np.random.default_rng(0)
    sizes = [tuple([extent for extent in s if isinstance(extent, int)]) for s in shapes]
    numbers = [_read_only(random.uniform(0.5, 1.5, size)[()]) for size in sizes]
    try:
        with np.errstate(all="ignore"):
            found = f(*call.filled(numbers), **call.options)
    except Exception as error:
        raise TraceError(
            f"{name}: called with numbers, to see the shape of its value, it says: {error}; "
            "state shape="
        ) from error
    return _value(name, found).shape


def _value(name: str, found: Any) -> np.ndarray:
    array = np.asarray(found)
    if array.dtype.kind not in "biuf":
        raise TraceError(f"{name} gives no array of real numbers, but {type(found).__name__}")
    return array


def _name(f: Function) -> str:
    name = getattr(f, "__name__", "")
    return name if name.isidentifier() else "function"


# --- the row --------------------------------------------------------------------------------------


def _row(box: Function, f: Function, cores: tuple[int, ...]) -> Op:
    """The row for operands with these numbers of axes."""
    name, shown = _name(f), ", ".join([f"{{{k}}}" for k in range(len(cores))])
    escaped = name.replace("_", r"\_")

    def kernel(xp: Any, params: tuple[Any, ...], *arrays: Any) -> Any:
        call, shape = params
        batch = np.shape(arrays[0])[: np.ndim(arrays[0]) - cores[0]]
        dtype = np.result_type(*arrays, np.float32)
        out = np.empty((*batch, *shape), dtype)
        for place in np.ndindex(*batch):
            given = [_read_only(a[place]) for a in arrays]
            found = _value(name, f(*call.filled(given), **call.options))
            if found.shape != shape:
                raise ShapeError(f"{name} gave shape {found.shape}, not {show_shape(shape)}")
            out[place] = found
        return out

    def partial(k: int) -> Callable[..., Expr]:
        return lambda *nodes: _jacobian(box, k, nodes[-1])

    return Op(
        f"{name}##{next(_serial)}", cores,
        Meaning(
            tuple([partial(k) for k in range(len(cores))]),
            shape=lambda params, first, *others: (*first[: len(first) - cores[0]], *params[1]),
            pushforward=lambda k, tangent, node: _pushforward(box, k, tangent, node),
            pullback=lambda k, cotangent, node: _pullback(box, k, cotangent, node),
            dimensions=lambda params: extent_names(params[1]),
        ),
        Kernels(kernel, host=True, shares=True, flops=100),
        Spelling(rf"\operatorname{{{{{escaped}}}}}({shown})", printed=name, parameters=False),
    )  # fmt: skip


def _read_only(array: Any) -> Any:
    """What a function may not write to: operands are shared."""
    if np.ndim(array):
        array = array.view()
        array.flags.writeable = False
    return array


def _pullback(box: Function, k: int, cotangent: Expr, node: Expr) -> Expr | None:
    """The rule's cotangent of operand k, for all items of the batch and all outputs."""
    call, args, batch = _opened(node)
    argnum, leaf = call.places[k]
    rule = _stated(PULLBACKS, box, argnum)

    def backward(*values: Expr) -> Any:
        *operands, ans, u = values
        pulled = rule(argnum, ans, call.filled(operands), call.options)
        return None if pulled is None else trees.leaves(pulled(u))[leaf]

    depths = [*[batch] * (len(args) + 1), cotangent.ndim - (node.ndim - batch)]
    return _for_all_items(
        backward, [*args, node, cotangent], depths, args[k].shape[batch:], f"vjp of {_name(box)}"
    )


def _pushforward(box: Function, k: int, tangent: Expr, node: Expr) -> Expr | None:
    """The rule's tangent of the value; without one, that which the Jacobian gives."""
    call, args, batch = _opened(node)
    argnum, leaf = call.places[k]
    directions = tangent.ndim - args[k].ndim
    if box not in PUSHFORWARDS:
        jacobian = _jacobian(box, k, node)
        word, last = range(jacobian.ndim), range(jacobian.ndim, jacobian.ndim + directions)
        read = (*word[:batch], *word[node.ndim :], *last)
        return einsum([jacobian, tangent], [word, read], (*word[: node.ndim], *last))
    rule = _stated(PUSHFORWARDS, box, argnum)

    def forward(*values: Expr) -> Any:
        *operands, ans, v = values
        arg = call.filled(operands)[argnum]
        pushed = rule(argnum, ans, call.filled(operands), call.options)
        leaves = [zeros_node(as_expr(x).shape) for x in trees.leaves(arg)]
        leaves[leaf] = v
        return None if pushed is None else pushed(trees.unflatten(arg, iter(leaves)))

    in_front = view(tangent, [*range(args[k].ndim, tangent.ndim), *range(args[k].ndim)])
    depths = [*[batch] * (len(args) + 1), batch + directions]
    found = _for_all_items(
        forward, [*args, node, in_front], depths, node.shape[batch:], f"jvp of {_name(box)}"
    )
    if found is None:
        return None
    return view(found, [*range(directions, found.ndim), *range(directions)])


def _jacobian(box: Function, k: int, node: Expr) -> Expr:
    """The pullback of the unit tensor: of shape batch + core of the value + core of operand k."""
    batch = _opened(node)[2]
    axes = range(node.ndim)
    out = (*axes[batch:], *axes)
    found = _pullback(box, k, einsum([], [], out, ONE, dict(enumerate(node.shape))), node)
    core = node.ndim - batch
    if found is None:
        return zeros_node(node.shape + node.args[k].shape[batch:])
    order = [*range(core, node.ndim), *range(core), *range(node.ndim, found.ndim)]
    return view(found, order)


def _opened(node: Expr) -> tuple[_Call, tuple[Expr, ...], int]:
    """The call of a node, its operands, and how many leading axes are a batch."""
    assert isinstance(node, Apply)
    return node.params[0], node.args, batch_axes(node)


def _stated(rules: dict[Function, Rule], box: Function, argnum: int) -> Rule:
    if box not in rules:
        which = "vjp" if rules is PULLBACKS else "jvp"
        raise UnsupportedError(
            f"{_name(box)} has no derivative by argument {argnum}: state it with def{which}"
        )
    return rules[box]


def _for_all_items(
    rule: Callable[..., Any],
    given: Sequence[Expr],
    depths: Sequence[int],
    shape: Shape,
    what: str,
) -> Expr | None:
    """A rule of expressions without batch axes, for all items of a batch.

    Of each of `given`, so many leading axes are the last ones of the batch. The rule's value has
    this shape, or is None.
    """
    depth = max(depths)
    with Scope() as scope:

        def item(k: int, axes: int) -> Expr:
            """What stands for an operand without the leading axes but for so many."""
            e = given[k]
            rest = e.shape[depths[k] - axes :]
            return e if axes == depths[k] else scope.argument(f"item{axes}of", k, rest)

        inner = [item(k, 0) for k in range(len(given))]
        value = rule(*inner)
        if value is None:
            return None
        found = as_expr(value)
        if found.shape != shape:
            raise ShapeError(
                f"the {what} gives shape {show_shape(found.shape)}, not {show_shape(shape)}"
            )
        extents = given[depths.index(depth)].shape[:depth]
        for axes in range(1, depth + 1):
            outer = [item(k, axes) if depths[k] >= axes else e for k, e in enumerate(inner)]
            pairs = zip(inner, outer, strict=True)
            items = {v: e for v, e in pairs if v is not e and isinstance(v, Var)}
            (found,) = with_batch_axis([found], items, extents[depth - axes])
            inner = outer
    return found
