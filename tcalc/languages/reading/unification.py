"""Dimensions that are declared, or become equal by use: unification, and names in the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count

from ...graph.extents import Extent

_DIMENSION_LETTERS = "mnkpqrst"


class DimensionUnifier:
    """Dimensions as ints, and which of them are equal (union-find).

    A dimension has an extent (declared: rigid), or is unknown. Unknown ones of variables carry the
    axes they stand for, and are named in the end; others must be inferred.

    Parameters
    ----------
    reserved : iterable of str
        Names that a fresh dimension must not take.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self.reserved = set(reserved)
        self.parent: list[int] = []
        self.extents: list[Extent | None] = []
        self.axes: list[frozenset[str]] = []
        self.known: dict[Extent, int] = {}

    def new(self, axis: str = "", extent: Extent | None = None) -> int:
        """A dimension: of a variable's axis (rows, columns, entries), of an extent, or to infer."""
        self.parent.append(len(self.parent))
        self.extents.append(extent)
        self.axes.append(frozenset([axis] if axis else []))
        return len(self.parent) - 1

    def rigid(self, extent: Extent) -> int:
        if extent not in self.known:
            self.known[extent] = self.new(extent=extent)
        return self.known[extent]

    def find(self, dim: int) -> int:
        parent = self.parent
        while parent[dim] != dim:
            parent[dim] = parent[parent[dim]]
            dim = parent[dim]
        return dim

    def extent(self, dim: int) -> Extent | None:
        return self.extents[self.find(dim)]

    def may_be_equal(self, a: int, b: int) -> bool:
        """Could they be made equal?"""
        a, b = self.find(a), self.find(b)
        return a == b or self.extents[a] is None or self.extents[b] is None

    def unify(self, a: int, b: int) -> bool:
        """Make two dimensions equal; False where both are known and differ."""
        a, b = sorted((self.find(a), self.find(b)))
        if a == b:
            return True
        if self.extents[a] is not None and self.extents[b] is not None:
            return False
        if self.extents[b] is not None:
            self.extents[a] = self.extents[b]
        self.parent[b] = a
        self.axes[a] |= self.axes[b]
        return True

    def names(self) -> dict[int, str]:
        """Names for the unknown dimensions of variables, by representative, in order of first use.

        Dimensions that only count rows (and entries) would be m, others n.
        """
        found: dict[int, str] = {}
        taken = self.reserved | {e for e in self.extents if isinstance(e, str)}
        for dim in range(len(self.parent)):
            if self.parent[dim] == dim and self.extents[dim] is None and self.axes[dim]:
                rows = "rows" in self.axes[dim] and "columns" not in self.axes[dim]
                names = chain("m" if rows else "n", _DIMENSION_LETTERS, _numbered(len(found)))
                found[dim] = next(name for name in names if name not in taken)
                taken.add(found[dim])
        return found

    def settle(self) -> None:
        """Give the unknown dimensions of variables their names."""
        for dim, name in self.names().items():
            self.extents[dim] = name

    def named(self, dim: int) -> Extent | None:
        """The extent; an unknown one of a variable gets its name now."""
        root = self.find(dim)
        if self.extents[root] is None:
            self.extents[root] = self.names().get(root)
        return self.extents[root]

    def shown(self, dim: int) -> Extent:
        """The extent for a message; `?` where nothing is known."""
        root = self.find(dim)
        extent = self.extents[root]
        return self.names().get(root, "?") if extent is None else extent


def _numbered(taken: int) -> Iterator[str]:
    """m1, n1, …, from where `taken` names have used up the first ones."""
    for number in count(max(1, taken // len(_DIMENSION_LETTERS))):
        for letter in _DIMENSION_LETTERS:
            yield f"{letter}{number}"
