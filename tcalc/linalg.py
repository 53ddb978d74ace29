"""Linear algebra under NumPy's names: functions of the last two axes."""

from .array import kron
from .ops.factorisations import cholesky, eigh, gelqf, lq, qr, syevd, tri_inverse
from .ops.linalg import adj, det, inv, logdet, solve
from .ops.reductions import norm
from .views import trace

__all__ = [
    "adj",
    "cholesky",
    "det",
    "eigh",
    "gelqf",
    "inv",
    "kron",
    "logdet",
    "lq",
    "norm",
    "qr",
    "solve",
    "syevd",
    "trace",
    "tri_inverse",
]
