"""A batch axis in front of expressions: one rule per node kind.

Products get one more label, operators have leading batch axes by their signature, and what depends
on nothing that is batched stays as it is. So the Jacobian of a batched expression keeps a unit
tensor in the label of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.applications import application, apply, apply_all, parts
from ..graph.extents import ONE, Extent, show_shape
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var, postorder
from ..graph.normal import add, bare, einsum
from ..graph.operators import Loop, Selection
from ..ops.affine_entries import settled
from ..ops.selection import selection
from ..support.errors import ShapeError


def with_batch_axis(
    outputs: Sequence[Expr], axes: Mapping[Var, Expr], extent: Extent
) -> list[Expr]:
    """The outputs for all items of a batch, along a leading axis.

    Parameters
    ----------
    outputs : sequence of Expr
    axes : mapping from Var to Expr
        What takes the place of variables: of shape ``(extent, *variable.shape)``.
    extent : int or str
        The number of items. Outputs that depend on no variable of `axes` are repeated.

    Returns
    -------
    list of Expr
        Of shape ``(extent, *output.shape)`` each.
    """
    for v, items in axes.items():
        if items.shape != (extent, *v.shape):
            raise ShapeError(
                f"a batch of {v.name} has shape {show_shape(items.shape)}, "
                f"expected {show_shape((extent, *v.shape))}"
            )
    done = {id(v): bare(items) for v, items in axes.items()}
    roots = [bare(e) for e in outputs]

    def item(e: Expr) -> Expr:
        return done[id(e)] if id(e) in done else _repeated(e, extent)

    several: dict[int, tuple[Expr, ...]] = {}
    for node in postorder(roots):
        found = [done.get(id(arg)) for arg in node.args]
        if isinstance(node, Part) and id(node.args[0]) in several:
            done[id(node)] = several[id(node.args[0])][node.index]
        elif id(node) in done or all(arg is None for arg in found):
            continue
        elif isinstance(node, Apply) and isinstance(node.op, Loop):
            several[id(node)] = node.op.batched(node, found, extent)
        else:
            done[id(node)] = _rebuilt(node, found, extent)
    return [item(e) for e in roots]


def _repeated(e: Expr, extent: Extent) -> Expr:
    axes = range(e.ndim)
    out, extents = (e.ndim, *axes), {**dict(enumerate(e.shape)), e.ndim: extent}
    return einsum([e], [axes], out, ONE, extents)


def _rebuilt(node: Expr, items: Sequence[Expr | None], extent: Extent) -> Expr:
    """The node for all items; `items` are its operands for all items, None for unbatched ones."""
    if isinstance(node, Einsum):
        return _product(node, items, extent)
    pairs = zip(node.args, items, strict=True)
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


def _product(node: Einsum, items: Sequence[Expr | None], extent: Extent) -> Expr:
    batch = len(node.extents)
    triples = list(zip(node.args, node.labels, items, strict=True))
    ops = [arg if found is None else found for arg, _, found in triples]
    words = [word if found is None else (batch, *word) for _, word, found in triples]
    extents: dict[int, Extent] = dict(enumerate((*node.extents, extent)))
    return einsum(ops, words, (batch, *node.out), node.coef, extents)
