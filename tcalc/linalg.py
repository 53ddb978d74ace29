"""Linear algebra under NumPy's names: functions of the last two axes."""

from .ops.cholesky import cholesky
from .ops.eigh import eigh, eigvalsh, syevd
from .ops.lapack import (
    cho_solve,
    gemm,
    gemm2,
    inverse,
    lstsq,
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
from .ops.matrix_functions import expm, logm, sqrtm
from .ops.merge import kron
from .ops.norms import norm
from .ops.packed import extractdiag, extracttrian, makediag, maketrian
from .ops.spectral import matrix_function
from .ops.svd import svd, svdvals
from .ops.triangles import tri_inverse
from .views import trace

__all__ = [
    "adj",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "extractdiag",
    "extracttrian",
    "gelqf",
    "gemm",
    "gemm2",
    "inv",
    "inverse",
    "kron",
    "logdet",
    "logm",
    "lq",
    "lstsq",
    "makediag",
    "maketrian",
    "matrix_function",
    "matrix_power",
    "norm",
    "pinv",
    "potrf",
    "potri",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "sqrtm",
    "sumlogdiag",
    "svd",
    "svdvals",
    "syevd",
    "syrk",
    "trace",
    "tri_inverse",
    "trmm",
    "trsm",
]
