"""What CUDA calls: functions that a block runs together, and libraries that the host calls."""

from __future__ import annotations

from ...support.records import NamedTuple
from .c_routine_rows import ROUTINES as OF_C
from .c_routine_rows import Routine


class Library(NamedTuple):
    """A function of the host, over cuBLAS or cuSOLVER.

    Attributes
    ----------
    solver : bool
        Does it call cuSOLVER?
    space : int
        How many of its first arguments say what memory it needs; 0: none.
    fails : bool
        May it refuse a matrix?
    """

    solver: bool = False
    space: int = 0
    fails: bool = False


#: Functions of `routines/` that libraries have; all others run on the device.
LIBRARY: dict[str, Library] = {
    "product": Library(),
    "symmetric_product": Library(),
    "batched_product": Library(),
    "row_order": Library(),
    "group_order": Library(),
    "cholesky": Library(True, 1, True),
    "tri_inverse": Library(fails=True),
    "inverse_of_factor": Library(fails=True),
    "solve_lower": Library(fails=True),
    "cholesky_pullback": Library(fails=True),
    "solve_definite": Library(),
    "inv": Library(True, 1, True),
    **dict.fromkeys(("det", "det_sign", "logdet"), Library(True, 1)),
    "eigh": Library(True, 1, True),
    "svd": Library(True, 2, True),
    "pinv": Library(True, 2, True),
    "lq": Library(True, 2),
}

#: Functions that all threads of a block call together.
BLOCKWISE = frozenset([
    "row_max", "row_min", "row_prod", "norm2", "norm_of_order", "logsumexp", "weighted_logsumexp",
    "row_argmax", "row_argmin", "row_hardmax", "row_hardmin", "row_cumsum", "logdet_of_factor",
])  # fmt: skip

_SQUARE = "{n} * {n}"
#: Libraries read what they factor, and work on a copy; sorting takes a second array of places.
ROUTINES: dict[str, Routine] = OF_C | {
    **{
        name: Routine(f"{name}({{n}}, {{0}}, {{out}})", fails=True)
        for name in ("cholesky", "tri_inverse")
    },
    "cholesky_pullback": Routine(
        "cholesky_pullback({n}, {0}, {1}, {out}, {space})", (2, 2), f"2 * {_SQUARE}", True
    ),
    "inverse_definite_of_factor": Routine(
        "inverse_of_factor({n}, {0}, {out}, {space})", space=_SQUARE, fails=True
    ),
    "solve_definite": Routine("solve_definite({n}, {r}, {0}, {out})", (2, -1), over=1),
    "solve_lower": Routine(
        "solve_lower({n}, {r}, {0}, {p[0]}, {out})", (2, -1), fails=True, over=1
    ),
    "argsort": Routine(
        "row_order({n}, {0}, {out}, {space})", (1,), space="{n}", scratch="ptrdiff_t"
    ),
}
