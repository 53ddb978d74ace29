"""Symmetric matrices that are inverted, taken to be positive definite where nothing proves it.

A kernel plus noise is, and so are most symmetric matrices that people invert; by their Cholesky
factors a plan has half the operations or fewer. Whether they are is found out by the factorisation:
where it fails, a plan runs that presumes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..graph.applications import is_symmetric, rewritten
from ..graph.extents import extent_of
from ..graph.nodes import Apply, Expr, postorder
from ..graph.operators import Op
from ..ops.elementwise import exp
from ..ops.matrix.definite import inverse_definite, logdet_definite
from ..ops.matrix.inverse import DET, INV, LOGDET

#: Rows from which it is worth being wrong about it now and then.
LEAST = 32
PRESUMES = "symmetric matrices are taken as positive definite; where one is not, another plan runs"

PRESUMED: dict[Op, Callable[[Expr], Expr]] = {
    INV: inverse_definite,
    LOGDET: logdet_definite,
    DET: lambda a: exp(logdet_definite(a)),
}


def presumed_definite(roots: Sequence[Expr], sizes: Mapping[str, int]) -> list[Expr]:
    """The roots with what is only true of positive definite matrices; as they are without any.

    Of a matrix of which something else is computed, as the sign of its determinant, nothing is
    presumed: that would be factored a second time.
    """
    readers: dict[int, set[bool]] = {}
    for e in postorder(roots):
        if isinstance(e, Apply) and len(e.args) == 1 and e.op.kernels.factor is not None:
            readers.setdefault(id(e.args[0]), set()).add(e.op in PRESUMED)

    def change(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Apply) or not isinstance(old, Apply) or new.op not in PRESUMED:
            return new
        (a,) = new.args
        alone = readers[id(old.args[0])] == {True}
        large = extent_of(a.shape[-1], sizes) >= LEAST
        return PRESUMED[new.op](a) if alone and large and is_symmetric(a) else new

    return rewritten(roots, change)
