"""Integers that index, computed from others: sums, products and conditions, in 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.extents import extent_of
from ...graph.factors import indicates
from ...graph.nodes import Add, Apply, Einsum, Expr
from ...plan.steps import Step
from .frames import Frame, full
from .rows import OF_INTEGERS
from .statements import aligned

#: Characters of an entry; operands may be repeated in it.
MOST = 2000


def integers(frame: Frame, step: Step) -> str:
    """The integers of a step one after the other; without a form in C they are left to Python."""
    (form,), shape = step.params, frame.shape(step)
    leaves = {id(leaf): slot for leaf, slot in zip(form.leaves, step.args, strict=True)}
    try:
        entry = _Entries(frame, leaves, form.sizes).of(form.e, range(len(shape)))
    except _NoForm:
        return "FAIL;"
    loops = "".join([f"for (long i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(shape)])
    place = " + ".join([f"i{k} * {s}L" for k, s in enumerate(full(shape))]) or "0"
    return f"{loops}p{step.out}[{place}] = {entry};"


class _NoForm(Exception):
    """Integers that C has no text for here."""


class _Entries:
    """C for entries of integers, whose axes have indices `i0`, `i1`, ….

    Raises
    ------
    _NoForm
        For what has no form.
    """

    def __init__(self, frame: Frame, leaves: dict[int, int], sizes: dict[str, int]) -> None:
        self.frame, self.leaves, self.sizes = frame, leaves, sizes
        self.whole = frame.plan.integral

    def of(self, e: Expr, axes: Sequence[int]) -> str:
        """The entry of e at the indices of these axes."""
        if id(e) in self.leaves:
            return self._read(self.leaves[id(e)], e, axes)
        if isinstance(e, Add):
            return f"({' + '.join([self.of(arg, axes) for arg in e.args])})"
        if isinstance(e, Einsum):
            return self._product(e, axes)
        assert isinstance(e, Apply)
        if not e.args and not indicates(e) and e.ndim == 1 and not e.params[1:]:
            return f"i{axes[0]}"
        text = OF_INTEGERS.get(e.op.name, "") if e.args else ""
        found = text.format(*[self.of(arg, axes) for arg in e.args])
        if not 0 < len(found) < MOST:
            raise _NoForm
        return found

    def _read(self, slot: int, e: Expr, axes: Sequence[int]) -> str:
        shape = [extent_of(n, self.sizes) for n in e.shape]
        found = self.frame.arrays[slot]
        strides = aligned(tuple(shape), found.shape, found.strides)
        place = " + ".join([f"i{k} * {s}L" for k, s in zip(axes, strides, strict=True)]) or "0"
        entry = f"p{slot}[{place}]"
        return entry if slot in self.whole else f"(long)rint({entry})"

    def _product(self, e: Einsum, axes: Sequence[int]) -> str:
        if e.summed or set(range(len(e.extents))) - set(e.out):
            raise _NoForm
        at = dict(zip(e.out, axes, strict=True))
        factors = [
            self.of(arg, [at[label] for label in word])
            for arg, word in zip(e.args, e.labels, strict=True)
        ]
        coef = int(e.coef.evaluate(self.sizes))
        return f"({' * '.join([*([f'{coef}L'] if coef != 1 or not factors else []), *factors])})"
