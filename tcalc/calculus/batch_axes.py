"""`vmap`: an expression for all items of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph import trees
from ..graph.extents import Extent
from ..graph.nodes import Expr, Var, dimensions, variables
from ..graph.normal import view
from ..graph.properties import property_rows
from ..graph.variables import canonical_name, check_extent, var
from ..ops.arithmetic import check_axis
from ..support.errors import ShapeError
from ..support.whole_numbers import whole_number
from .batching import with_batch_axis
from .deep_expressions import shortened
from .projection import as_root, keeping_variables


def vmap(
    e: Any, in_axes: Mapping[Any, int | None], size: Extent | None = None, out_axes: Any = 0
) -> Any:
    """An expression, or a nest of them, with a batch axis.

    Parameters
    ----------
    e : Expr, or nested tuple or dict of them
    in_axes : mapping from variables or their names to int
        Where the batch axis stands in the variables that have one; ``None`` for those without.
    size : int or str, optional
        The extent of the batch: by default the dimension "B", or B1, … where that name is taken.
    out_axes : int, or nested tuple, list or dict of int
        Where the batch axis stands in results: one axis for all of them, or a nest as they are, of
        which a part may be one axis for all below it.

    Returns
    -------
    Expr or nest
        Every variable in `in_axes` is replaced by one of the same name with one more axis. Results
        have the shape ``(size, *e.shape)``, or with the batch axis where `out_axes` says; their
        derivatives keep the unit tensor of the batch.

    Raises
    ------
    TypeError
        For names that the expression does not have, and `out_axes` that nest as no results do;
        `ShapeError` for axes that do not exist.

    Notes
    -----
    Of a Python function of arrays, ``vmap(fun, in_axes=0)`` is a function of arrays that each have
    one more axis. There `in_axes` is one axis for all arguments, or one for each (``None`` for
    those without), which may nest as the argument does.

    Examples
    --------
    >>> import tcalc as tc
    >>> x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
    >>> rows = tc.vmap(x @ A @ x, {"x": 0}, size="B")
    >>> rows.shape, rows.variables["x"].shape
    (('B',), ('B', 'n'))
    >>> print(tc.compress(tc.jacobian(rows, "x")))
    H[i,j,k] = C1[i,k] * delta[i,j]   shape (B, B, n)
      C1 = x*(A + A')  (B, n)
    """
    roots = shortened([as_root(leaf) for leaf in trees.leaves(e)])
    known = variables(roots)
    extent = _size(size, roots)
    items: dict[Var, Expr] = {}
    batched: dict[Var, Var] = {}
    for v, axis in _axes(in_axes, known).items():
        batch = _with_axis(v, axis, extent)
        batched[v] = batch
        items[v] = view(batch, [axis, *[k for k in range(batch.ndim) if k != axis]])
    found = [
        keeping_variables(value, [batched.get(v, v) for v in root.variables.values()])
        for value, root in zip(with_batch_axis(roots, items, extent), roots, strict=True)
    ]
    return with_axes_at(e, found, out_axes)


def with_axes_at(tree: Any, values: Sequence[Expr], axes: Any) -> Any:
    """Results, whose first axis is the batch's, with it at others, nested as `tree`."""
    moved = []
    for value, given in zip(values, _axis_of_each(tree, axes), strict=True):
        place = check_axis(given, value.ndim, "vmap: out_axes")
        rest = list(range(1, value.ndim))
        moved.append(view(value, [*rest[:place], 0, *rest[place:]]) if place else value)
    return trees.rebuild(tree, moved)


def _axis_of_each(tree: Any, axes: Any) -> list[Any]:
    """The axis of each leaf, of axes that nest as the tree does, or as its upper part."""
    if not isinstance(axes, tuple | list | dict):
        return [axes] * len(trees.leaves(tree))
    parts, given = _parts(tree), _parts(axes)
    if parts.keys() != given.keys() or isinstance(tree, dict) is not isinstance(axes, dict):
        shapes = trees.shown_shapes(tree)
        raise TypeError(f"vmap: out_axes={axes!r:.60} for results of shapes {shapes}")
    return [axis for key, part in parts.items() for axis in _axis_of_each(part, given[key])]


def _parts(tree: Any) -> dict[Any, Any]:
    """What stands in a nest, by its place."""
    if isinstance(tree, tuple | list):
        return dict(enumerate(tree))
    return tree if isinstance(tree, dict) else {}


def _size(size: Extent | None, roots: list[Expr]) -> Extent:
    if size is not None:
        return check_extent(size, "vmap: size")
    taken, name, count = set(dimensions(roots)), "B", 0
    while name in taken:
        count += 1
        name = f"B{count}"
    return name


def _axes(in_axes: Any, known: Mapping[str, Var]) -> dict[Var, int]:
    """The variables that have a batch axis, and where: from 0 on."""
    if not isinstance(in_axes, Mapping):
        raise TypeError(f"vmap: in_axes is a mapping from variables to axes, not {in_axes!r:.60}")
    found = {}
    for key, axis in in_axes.items():
        name = key.name if isinstance(key, Var) else canonical_name(key) if key else key
        v = known.get(name) if isinstance(name, str) else None
        if v is None or (isinstance(key, Var) and v is not key):
            raise TypeError(
                f"vmap: {key!s:.60} is no variable of the expression ({', '.join(known)})"
            )
        if axis is None:
            continue
        place = whole_number(axis)
        if not -v.ndim - 1 <= place <= v.ndim:
            raise ShapeError(f"vmap: axis {place} of {name} is out of range for {v.ndim + 1} axes")
        found[v] = place % (v.ndim + 1)
    return found


def _with_axis(v: Var, axis: int, extent: Extent) -> Var:
    """The variable with a batch axis; properties are of the last two axes."""
    shape = (*v.shape[:axis], extent, *v.shape[axis:])
    inside = [row.name for row in property_rows(v.properties) if row.square]
    if inside and axis > v.ndim - 2:
        raise ShapeError(
            f"vmap: {v.name} is {min(inside)} in its last two axes; the batch axis stands before"
        )
    return var(v.name, shape, **dict.fromkeys(v.properties, True))
