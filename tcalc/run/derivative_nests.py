"""Which nests of derivatives are one Hessian or one Jacobian, over which outputs and variables."""

from __future__ import annotations

from typing import Any

from ..graph import trees
from ..graph.nodes import Derivative, Var


def hessian_over(tree: Any) -> Any:
    """The pytree of variables' names of which a pytree of derivatives is the Hessian, or None."""
    if not isinstance(tree, tuple | list | dict):
        return None
    found = trees.leaves(tree)
    count = round(len(found) ** 0.5)
    if not found or count * count != len(found):
        return None
    if not all(isinstance(d, Derivative) and len(d.wrt) == 2 and not d.of.shape for d in found):
        return None
    wrt: list[Var] = [d.wrt[1] for d in found[:count]]
    pairs = [(wrt[i], wrt[j]) for i in range(count) for j in range(count)]
    for derivative, (x, y) in zip(found, pairs, strict=True):
        first, second = derivative.wrt
        if first is not x or second is not y or derivative.of is not found[0].of:
            return None
    row = tree
    while isinstance(row, tuple | list | dict):
        row = next(iter(row.values())) if isinstance(row, dict) else row[0]
        if len(trees.leaves(row)) == count and _has_leaves(tree, row, row):
            return trees.rebuild(row, [v.name for v in wrt])
    return None


def _has_leaves(tree: Any, template: Any, leaf: Any) -> bool:
    """Whether a pytree is the template with a pytree like `leaf` at its leaves."""
    if isinstance(template, dict):
        return (
            isinstance(tree, dict)
            and list(tree) == list(template)
            and all(_has_leaves(tree[key], template[key], leaf) for key in template)
        )
    if isinstance(template, tuple | list):
        return (
            isinstance(tree, tuple | list)
            and len(tree) == len(template)
            and all(_has_leaves(t, part, leaf) for t, part in zip(tree, template, strict=True))
        )
    return leaf is None or _has_leaves(tree, leaf, None)


def jacobian_over(tree: Any) -> tuple[Any, Any] | None:
    """The pytrees of outputs' and of variables' names of which a nest is the Jacobian, or None.

    That is a nest as `jacobian` makes it: of outputs, and in each place of these the same nest of
    derivatives of one output by the variables.
    """
    found = trees.leaves(tree)
    made = isinstance(tree, trees.Block | trees.NamedBlock)
    if not (made and found and all(isinstance(d, Derivative) and d.wrt for d in found)):
        return None
    row: Any = tree
    while True:
        outputs = _around(tree, row)
        if outputs is not None and _by_the_same(found, len(trees.leaves(row))):
            names = [d.wrt[-1].name for d in trees.leaves(row)]
            return outputs, trees.unflatten(row, iter(names))
        if not isinstance(row, tuple | list | dict):
            return None
        row = next(iter(row.values())) if isinstance(row, dict) else row[0]


def _by_the_same(found: list[Derivative], count: int) -> bool:
    """Is every row, of so many derivatives, one of one expression by the same variables?"""
    rows = [found[k : k + count] for k in range(0, len(found), count)]
    by = [tuple([d.wrt[-1] for d in row]) for row in rows]
    one = all(len({(d.of, d.wrt[:-1]) for d in row}) == 1 for row in rows)
    return one and len(set(by)) == 1 and len(set(by[0])) == count


def _around(tree: Any, row: Any, path: str = "") -> Any:
    """The nest around nests like `row`, with their paths as leaves; None where others stand."""
    if _alike(tree, row):
        return path or "the output"
    if not isinstance(tree, tuple | list | dict):
        return None
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    parts = {key: _around(value, row, f"{path}[{key!r}]") for key, value in items}
    if None in parts.values():
        return None
    return parts if isinstance(tree, dict) else tuple(parts.values())


def _alike(one: Any, other: Any) -> bool:
    """Are two nests of one structure?"""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return not isinstance(one, tuple | list | dict) and not isinstance(other, tuple | list | dict)
