"""Linear algebra under NumPy's names: functions of the last two axes."""

from .array import kron
from .ops.cholesky import cholesky
from .ops.eigh import eigh, syevd
from .ops.lapack import (
    cho_solve,
    extractdiag,
    gemm,
    gemm2,
    inverse,
    lstsq,
    makediag,
    matrix_power,
    pinv,
    potrf,
    potri,
    solve_triangular,
    sumlogdiag,
    syrk,
    trmm,
    trsm,
)
from .ops.linalg import adj, det, inv, logdet, slogdet, solve
from .ops.lq import gelqf, lq, qr
from .ops.norms import norm
from .ops.triangles import tri_inverse
from .views import trace

__all__ = [
    "adj",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "extractdiag",
    "gelqf",
    "gemm",
    "gemm2",
    "inv",
    "inverse",
    "kron",
    "logdet",
    "lq",
    "lstsq",
    "makediag",
    "matrix_power",
    "norm",
    "pinv",
    "potrf",
    "potri",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "sumlogdiag",
    "syevd",
    "syrk",
    "trace",
    "tri_inverse",
    "trmm",
    "trsm",
]
