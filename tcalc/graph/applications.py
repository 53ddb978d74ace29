"""Normal form of applications: views of operands become views of the result.

Elementwise operators commute with broadcasts, permutations and unit tensors; an operator on numbers
is a number; a matrix function of a transpose is the transpose of the function.
"""

from __future__ import annotations

import copyreg
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..support.limits import spend
from ..support.namespaces import NUMPY
from .canonical import axis_symmetries, closure
from .extents import ONE, Shape
from .nodes import (
    NODE_KINDS,
    Add,
    Apply,
    Derivative,
    Einsum,
    Expr,
    Part,
    Permutation,
    intern,
    postorder,
)
from .normal import add, bare, drop_axes, einsum, unembedded, view
from .operators import Indicator, Op
from .orientation import canonical_axes, inverse_permutation, signs_below
from .products import antisymmetries, numeral, numeric_value, symmetries
from .sums import absent_axes

#: Bits of operators and kinds, by name. Two names may have one, where threads meet.
_bits: dict[str, int] = {}


def apply(
    op: Op, *operands: Expr, params: tuple[Any, ...] = (), shape: Shape | None = None
) -> Expr:
    """The operator applied, in normal form: broadcasts and permutations are taken outside.

    Parameters
    ----------
    op : Op
        An operator with one output; `apply_all` is for several.
    *operands : Expr
        Of one batch shape, each followed by its core.
    params : tuple
    shape : tuple of int and str, optional
        Of the result, where the operator's row need not be asked.
    """
    args = [bare(a) for a in operands]
    if shape is None:
        shape = op.result_shape(params, *[a.shape for a in args])
    if op.elementwise and args:
        found = _fold(op, args, params)
        found = _pull_out(op, args, params) if found is None else found
        if found is not None:
            return found
    elif args:
        found = _pull_batch(op, args, params)
        if found is not None:
            return found
    node: Expr = intern(Apply, (op, params, shape), tuple(args))
    return with_symmetries(node)


def application(node: Expr) -> Apply:
    """The application that a node is, or is one output of."""
    whole = node.args[0] if isinstance(node, Part) else node
    assert isinstance(whole, Apply)
    return whole


def parts(whole: Apply) -> tuple[Expr, ...]:
    """All outputs of an operator that has several."""
    assert whole.op.meaning.shape is not None
    shapes = whole.op.meaning.shape(whole.params, *[a.shape for a in whole.args])
    return tuple([intern(Part, (k, shape), (whole,)) for k, shape in enumerate(shapes)])


def apply_all(op: Op, *operands: Expr, params: tuple[Any, ...] = ()) -> tuple[Expr, ...]:
    """All outputs of an operator that has several; they share one application."""
    args = [bare(a) for a in operands]
    assert op.meaning.shape is not None
    shapes = op.meaning.shape(params, *[a.shape for a in args])
    whole: Apply = intern(Apply, (op, params, shapes[0]), tuple(args))
    return parts(whole)


#: Functions one on the other that may have a sign: the adjoint is free where an array turns without
#: one, as on the diagonal of tanh(4*tanh(x - x')), and grows there by the slope at zero with each
#: function; what cancels would be larger than a long loop's derivative. A difference takes it away.
FUNCTIONS_WITH_SIGNS = 2


def with_symmetries(node: Expr) -> Expr:
    """The node; for an application, the axis permutations that leave it as it is are found.

    And those that change its sign, where it is an entrywise function.
    """
    if node._symmetries is None and node.ndim >= 2 and isinstance(node, Apply):
        signs = [(perm, _sign_under(node, perm)) for perm in axis_symmetries(node.shape)]
        node._symmetries = closure([perm for perm, sign in signs if sign > 0])
        node._antisymmetries = tuple([perm for perm, sign in signs if sign < 0])
    return node


def _sign_under(node: Apply, perm: Permutation) -> int:
    """By what an application is multiplied where its axes are permuted; 0 for no number."""
    if not node.op.elementwise:
        return int(_keeps(node, perm))
    args, meaning = node.args, node.op.meaning
    turned = [view(a, perm) for a in args]
    if meaning.commutes and all(a is b for a, b in zip(turned, args[::-1], strict=True)):
        return 1
    moved = [k for k, (a, b) in enumerate(zip(turned, args, strict=True)) if a is not b]
    even, odd = meaning.signs(args) if moved else ((), ())
    if not {*even, *odd}.issuperset(moved):
        return 0
    if not all(perm in antisymmetries(args[k]) for k in moved):
        return 0
    if len([k for k in moved if k in odd]) % 2 == 0:
        return 1
    functions = 1 + max([signs_below(args[k]) for k in moved])
    if functions > FUNCTIONS_WITH_SIGNS:
        return 0
    node._signs = functions
    return -1


def _keeps(node: Apply, perm: Permutation) -> bool:
    if isinstance(node.op, Indicator):
        return node.op.permuted(node.params, perm) == node.params
    if perm != core_swap(node.ndim):
        return False
    same_axes = node.op.meaning.transposes and all(a.ndim == node.ndim for a in node.args)
    return node.op.meaning.self_adjoint or (
        same_axes and all(perm in symmetries(a) for a in node.args)
    )


def _fold(op: Op, args: list[Expr], params: tuple[Any, ...]) -> Expr | None:
    """An operator on numbers is a number, where that is finite."""
    values = [numeric_value(a) for a in args]
    if any(v is None for v in values):
        return None
    with np.errstate(all="ignore"):
        numbers = [np.float64(v) for v in values if v is not None]
        value = float(op.kernels.compute(NUMPY, params, *numbers))
    return numeral(value, args[0].shape) if math.isfinite(value) else None


def _pull_out(op: Op, args: list[Expr], params: tuple[Any, ...]) -> Expr | None:
    """An elementwise operator under the broadcast, permutation or unit tensor of its operands."""
    shape = args[0].shape
    if not shape:
        return None
    axes = range(len(shape))
    absent = set(axes).intersection(*[absent_axes(a) for a in args])
    if absent:
        inner = apply(op, *[drop_axes(a, absent) for a in args], params=params)
        kept = [axis for axis in axes if axis not in absent]
        return einsum([inner], [kept], axes, ONE, dict(enumerate(shape)))
    if len(args) == 1 and isinstance(args[0], Einsum) and len(set(args[0].out)) < len(shape):
        return _under_unit(op, args[0], params)
    if any(map(_merges, args)):
        found = _of_regrouped(op, args, params)
        if found is not None:
            return found
    perm = canonical_axes(args, ordered=True)
    if perm != tuple(axes):
        inner = apply(op, *[view(a, perm) for a in args], params=params)
        return view(inner, inverse_permutation(perm))
    return None


def _merges(e: Expr) -> bool:
    """Are axes of e merged axes of its operand?"""
    return isinstance(e, Apply) and e.op.meaning.regroups and e.args[0].ndim > e.ndim


def _of_regrouped(op: Op, args: list[Expr], params: tuple[Any, ...]) -> Expr | None:
    """An elementwise operator of operands that are merged alike, or do not have these axes."""
    first = next(a for a in args if _merges(a))
    assert isinstance(first, Apply)
    (inner,) = first.args
    batch = first.ndim - len(first.params[1])
    merged = set(range(batch, first.ndim))
    found: list[Expr] = []
    for a in args:
        if isinstance(a, Apply) and a.op is first.op and a.args[0].shape == inner.shape:
            found.append(a.args[0])
        elif merged <= absent_axes(a):
            kept = drop_axes(a, merged)
            extents = dict(enumerate(inner.shape))
            found.append(einsum([kept], [range(batch)], range(inner.ndim), ONE, extents))
        else:
            return None
    return apply(first.op, apply(op, *found, params=params), params=first.params)


def _under_unit(op: Op, arg: Einsum, params: tuple[Any, ...]) -> Expr | None:
    """f(embed a) = f(0) + embed(f(a) - f(0))."""
    origin = _fold(op, [numeral(0)], params)
    if origin is None:
        return None
    inner = apply(op, unembedded(arg), params=params)
    value = numeric_value(origin)
    assert value is not None
    inner = add([inner, numeral(-value, inner.shape)]) if value else inner
    embedded = einsum([inner], [range(inner.ndim)], arg.out)
    return add([embedded, numeral(value, arg.shape)]) if value else embedded


def _pull_batch(op: Op, args: list[Expr], params: tuple[Any, ...]) -> Expr | None:
    """An operator with a core need not be repeated along axes that all operands broadcast."""
    cores = op.cores(params)
    batch = args[0].ndim - cores[0]
    absent = set(range(batch)).intersection(*[absent_axes(a) for a in args])
    if not absent:
        return _pull_transpose(op, args, params) if op.meaning.transposes else None
    inner = apply(op, *[drop_axes(a, absent) for a in args], params=params)
    ndim = inner.ndim + len(absent)
    kept = [axis for axis in range(ndim) if axis not in absent]
    return einsum([inner], [kept], range(ndim), ONE, dict(enumerate(args[0].shape[:batch])))


def _pull_transpose(op: Op, args: list[Expr], params: tuple[Any, ...]) -> Expr | None:
    """f(Aᵀ) is f(A)ᵀ, or f(A) where the core disappears."""
    swap = core_swap(args[0].ndim)
    if canonical_axes(args, ordered=True) != swap:
        return None
    inner = apply(op, *[view(a, swap) for a in args], params=params)
    return view(inner, swap) if inner.ndim == args[0].ndim else inner


def core_swap(ndim: int) -> Permutation:
    """The permutation that transposes the last two axes."""
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def is_symmetric(e: Expr) -> bool:
    """Is it known that the matrices in the last two axes are symmetric?"""
    return e.ndim >= 2 and core_swap(e.ndim) in symmetries(e)


def with_args(node: Expr, args: Sequence[Expr]) -> Expr:
    """The node with other operands, in normal form."""
    if all(new is old for new, old in zip(args, node.args, strict=True)):
        return node
    if isinstance(node, Add):
        return add(args)
    if isinstance(node, Einsum):
        return einsum(args, node.labels, node.out, node.coef, dict(enumerate(node.extents)))
    if isinstance(node, Apply) and node.op.outputs > 1:
        return application(apply_all(node.op, *args, params=node.params)[0])
    if isinstance(node, Apply):
        return apply(node.op, *args, params=node.params)
    if isinstance(node, Part):
        return parts(application(args[0]))[node.index]
    assert isinstance(node, Derivative)
    return node.project(args[0], node.slots)


def root_of(e: Expr) -> str:
    """The operator or the node kind at the root: by it rules and laws are found."""
    return e.op.name if isinstance(e, Apply) else type(e).__name__


def root_bit(name: str) -> int:
    """The bit of what is at a root: the next one, of a name that is new."""
    return _bits.setdefault(name, 1 << len(_bits))


def roots_below(e: Expr) -> int:
    """Bits of what is at the roots of e and of all nodes below it, found once for each."""
    if not e._below:
        whole = all(arg._below for arg in e.args)
        for node in [e] if whole else postorder([e], lambda node: node._below > 0):
            found = root_bit(root_of(node))
            for arg in node.args:
                found |= arg._below
            node._below = found
    return e._below


def rewritten(
    roots: Sequence[Expr],
    change: Callable[[Expr, Expr], Expr],
    stop: Callable[[Expr], bool] | None = None,
) -> list[Expr]:
    """The roots after a change of every node: ``change(new, old)``, operands changed already.

    Nothing below a node for which `stop` holds is visited.
    """
    done: dict[int, Expr] = {}  # those that changed
    for node in postorder(roots, stop):
        spend("steps")
        new = node
        if not done.keys().isdisjoint(map(id, node.args)):
            new = with_args(node, [done.get(id(arg), arg) for arg in node.args])
        new = change(new, node)
        if new is not node:
            done[id(node)] = new
    return [done.get(id(root), root) for root in roots]


def from_flat_nodes(rows: list[tuple[type[Expr], tuple[Any, ...], list[int]]]) -> Expr:
    """The expression of a flat list of nodes, operands before consumers (pickling)."""
    nodes: list[Expr] = []
    for kind, meta, places in rows:
        args = tuple([nodes[k] for k in places])
        if kind is Add:
            nodes.append(add(args))
        elif kind is Apply and meta[0].outputs == 1:
            nodes.append(apply(meta[0], *args, params=meta[1], shape=meta[2]))
        else:
            node: Expr = intern(kind, meta, args)
            nodes.append(node)
    return nodes[-1]


def _flat(e: Expr) -> tuple[Any, ...]:
    """How an expression is pickled: a flat list, as deep ones would exhaust the stack."""
    nodes = postorder((e,))
    place = {id(node): k for k, node in enumerate(nodes)}
    return from_flat_nodes, ([(type(n), n.meta, [place[id(a)] for a in n.args]) for n in nodes],)


for _kind in NODE_KINDS:
    copyreg.pickle(_kind, _flat)  # here, where the constructors are known
