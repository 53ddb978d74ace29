"""One walk over the DAG that finds, for every node, what it is over the rows of the data.

A node is known, by rows, or reduced over them (`found`): the rows of `NODES` say which, from what
its operands are, and build it. What is by rows becomes an expression of one part of the rows, in
which every other value is a variable that is sent to it; what is reduced becomes known one pass
later. So terms without the data are added once, and a count of all rows stays that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..graph.applications import application, parts
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, intern, variables
from ..graph.normal import add
from ..graph.operators import Loop, batch_axes
from ..graph.properties import PROPERTIES
from ..support.errors import PartitionError
from .combinations import BY_ROWS, COMBINATIONS
from .found import ByRows, Found, Known, Reduced
from .passes import Passes
from .products import split_product
from .walk import LOOP, PAIRS, WHOLE, Walk

# --- kinds of nodes -------------------------------------------------------------------------------


def _variable(walk: Walk, node: Var) -> Found:
    axis = walk.rows.get(node)
    if axis is None:
        return Known(node)
    shape = (*node.shape[:axis], walk.extent, *node.shape[axis + 1 :])
    kept = [name for name in node.properties if not PROPERTIES[name].square]
    properties = node.properties if axis < node.ndim - 2 else tuple(kept)
    return ByRows(intern(Var, (node.name, shape, properties)), 0, axis)


def _constant(walk: Walk, node: Const) -> Found:
    return Known(node)


def _sum(walk: Walk, node: Add) -> Found:
    found = [walk.of(arg) for arg in node.args]
    axes = {one.axis for one in found if isinstance(one, ByRows)}
    if len(axes) > 1:
        raise walk.refused(node, PAIRS)
    if axes:
        (axis,) = axes
        whole = walk.joined(add, [walk.along(arg, axis) for arg in node.args])
        return ByRows(*whole, axis)
    sums = [one for one in found if isinstance(one, Reduced) and one.op is None]
    if len(sums) == len(found) and len({one.passes for one in sums}) == 1:
        return Reduced(None, (add([one.parts[0] for one in sums]),), sums[0].passes)
    return walk.from_known(node)


def _application(walk: Walk, node: Apply) -> Found:
    axes = {found.axis for arg in node.args if isinstance(found := walk.of(arg), ByRows)}
    if not axes:
        return walk.from_known(node)
    if isinstance(node.op, Loop):
        raise walk.refused(node, LOOP)
    if len(axes) > 1:
        raise walk.refused(node, PAIRS)
    (axis,) = axes
    operands = [walk.along(arg, axis) for arg in node.args]
    if axis < batch_axes(node):
        return ByRows(*walk.applied(node, operands), axis)
    if node.op not in COMBINATIONS:
        raise walk.refused(node, WHOLE)
    if node.op in BY_ROWS:
        operands = [walk.made_once(one, axis) for one in operands]
    made = COMBINATIONS[node.op].parts(node, [one.expr for one in operands])
    reduced = Reduced(node.op, made, max([one.passes for one in operands]))
    if node.op not in BY_ROWS:
        return reduced
    known = [walk.sending(Known(v, reduced.passes + 1)).expr for v in walk.results(reduced)]
    return ByRows(BY_ROWS[node.op](operands[0].expr, tuple(known)), reduced.passes + 1, axis)


def _part(walk: Walk, node: Part) -> Found:
    found = walk.of(node.args[0])
    if isinstance(found, ByRows):
        return found._replace(expr=parts(application(found.expr))[node.index])
    return walk.from_known(node)


#: What a node is, from what its operands are: a row for each kind that stands below a root.
NODES: Mapping[type[Expr], Callable[..., Found]] = {
    Var: _variable,
    Const: _constant,
    Add: _sum,
    Einsum: split_product,
    Apply: _application,
    Part: _part,
}


def split(roots: Sequence[Expr], rows: Mapping[Var, int]) -> Passes:
    """The passes over the rows of variables that compute the roots.

    Parameters
    ----------
    roots : sequence of Expr
        Without derivatives' roots.
    rows : mapping from Var to int
        The variables that are by rows, and which axis runs over them.

    Raises
    ------
    PartitionError
        A TypeError that names the node which no parts of the rows give, and why.
    """
    walk = Walk(roots, rows)
    for node in walk.nodes:
        walk.found[id(node)] = NODES[type(node)](walk, node)
    return walk.passes(roots)


def row_axes(roots: Sequence[Expr], names: Collection[str]) -> dict[Var, int]:
    """The variables of these names, which are by rows along their first axes.

    Raises
    ------
    PartitionError
        Where the first axes are of several dimensions.
    """
    read = variables(roots)
    first = {name: read[name].shape[0] for name in names if name in read}
    if len(set(first.values())) > 1:
        told = ", ".join([f"{name} over {extent}" for name, extent in first.items()])
        raise PartitionError(
            f"all data by rows have their dimension as first axis, but {told}: what is a parameter "
            "is passed as an array of NumPy's"
        )
    return {read[name]: 0 for name in first}
