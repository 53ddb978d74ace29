"""What compiled functions take and give, as tables for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..graph import trees
from ..graph.extents import Shape, show_shape
from ..graph.nodes import Expr
from ..support import html


def signature_table(
    title: str,
    variables: Mapping[str, Shape],
    bound: Collection[str],
    outputs: Any,
    roots: Sequence[Expr],
) -> str:
    """A row of HTML for each variable and each output; `roots` are the leaves of the outputs."""
    rows = [
        (name, show_shape(shape), "bound" if name in bound else "argument")
        for name, shape in variables.items()
    ]
    for place, root in zip(trees.places(outputs), roots, strict=True):
        rows.append((str(place), show_shape(root.shape), "output"))
    return html.table(title, ("name", "shape", ""), rows)
