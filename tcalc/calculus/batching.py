"""A batch axis in front of expressions: one rule per node kind.

Products get one more label, operators have leading batch axes by their signature, and what depends
on nothing that is batched stays as it is. So the Jacobian of a batched expression keeps a unit
tensor in the label of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.applications import application, apply, apply_all, parts, with_args
from ..graph.extents import ONE, Extent, show_shape
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var, postorder
from ..graph.normal import add, bare, einsum
from ..graph.operators import Loop, Selection
from ..ops.affine_entries import settled
from ..ops.selection import selection
from ..support.errors import ShapeError


def with_batch_axis(
    outputs: Sequence[Expr],
    axes: Mapping[Var, Expr] | Mapping[Expr, Expr],
    extent: Extent,
    same: Mapping[Var, Expr] | None = None,
) -> list[Expr]:
    """The outputs for all items of a batch, along a leading axis.

    Parameters
    ----------
    outputs : sequence of Expr
    axes : mapping from Expr to Expr
        What takes the place of variables, or of other nodes: of shape ``(extent, *node.shape)``.
    extent : int or str
        The number of items. Outputs that depend on nothing in `axes` are repeated.
    same : mapping from Var to Expr, optional
        What takes the place of other variables, the same for all items.

    Returns
    -------
    list of Expr
        Of shape ``(extent, *output.shape)`` each.
    """
    for v, items in axes.items():
        if items.shape != (extent, *v.shape):
            raise ShapeError(
                f"a batch of {v} has shape {show_shape(items.shape)}, "
                f"expected {show_shape((extent, *v.shape))}"
            )
    done = {id(v): bare(items) for v, items in axes.items()}
    single: dict[int, Expr] = {id(v): bare(e) for v, e in (same or {}).items()}
    roots = [bare(e) for e in outputs]
    several: dict[int, tuple[Expr, ...]] = {}
    for node in postorder(roots, lambda e: id(e) in done):
        if id(node) in done or id(node) in single:
            continue
        if isinstance(node, Part) and id(node.args[0]) in several:
            done[id(node)] = several[id(node.args[0])][node.index]
            continue
        found = [done.get(id(arg)) for arg in node.args]
        args = [single.get(id(arg), arg) for arg in node.args] if single else node.args
        if all(arg is None for arg in found):
            if args is not node.args and (new := with_args(node, args)) is not node:
                single[id(node)] = new
        elif isinstance(node, Apply) and isinstance(node.op, Loop):
            whole = application(with_args(node, args))
            several[id(node)] = node.op.batched(whole, found, extent)
        else:
            done[id(node)] = _rebuilt(node, args, found, extent)
    return [
        done[id(e)] if id(e) in done else _repeated(single.get(id(e), e), extent) for e in roots
    ]


def _repeated(e: Expr, extent: Extent) -> Expr:
    axes = range(e.ndim)
    out, extents = (e.ndim, *axes), {**dict(enumerate(e.shape)), e.ndim: extent}
    return einsum([e], [axes], out, ONE, extents)


def _rebuilt(
    node: Expr, single: Sequence[Expr], items: Sequence[Expr | None], extent: Extent
) -> Expr:
    """The node for all items; `items` are its operands for all items, None for those in `single`,
    which are the same for all.
    """
    if isinstance(node, Einsum):
        return _product(node, single, items, extent)
    pairs = zip(single, items, strict=True)
    args = [_repeated(arg, extent) if found is None else found for arg, found in pairs]
    if isinstance(node, Add):
        return add(args)
    if isinstance(node, Part):
        return parts(application(args[0]))[node.index]
    assert isinstance(node, Apply)
    if isinstance(node.op, Selection):
        return selection(args[0], *node.params)
    if node.op.outputs > 1:
        return application(apply_all(node.op, *args, params=node.params)[0])
    found = settled(node.op, args)
    return apply(node.op, *args, params=node.params) if found is None else found


def _product(
    node: Einsum, single: Sequence[Expr], items: Sequence[Expr | None], extent: Extent
) -> Expr:
    batch = len(node.extents)
    triples = list(zip(single, node.labels, items, strict=True))
    ops = [arg if found is None else found for arg, _, found in triples]
    words = [word if found is None else (batch, *word) for _, word, found in triples]
    extents: dict[int, Extent] = dict(enumerate((*node.extents, extent)))
    return einsum(ops, words, (batch, *node.out), node.coef, extents)
