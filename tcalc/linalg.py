"""Linear algebra under the names of NumPy, SciPy and LAPACK: functions of the last two axes.

Leading axes are a batch. All functions have derivatives of any order, in every mode.

- factorisations: `cholesky potrf lq gelqf qr eigh eigvalsh syevd svd svdvals`
- solves and inverses: `solve solve_triangular cho_solve trsm lstsq inv inverse tri_inverse potri
  pinv adj`
- products: `gemm gemm2 trmm syrk kron matrix_power`
- numbers: `det logdet slogdet sumlogdiag trace norm`
- functions of matrices: `expm logm sqrtm matrix_function`
- symmetric parts, packed triangles and diagonals: `sym extracttrian maketrian extractdiag makediag`

`cholesky`, `eigh` and `matrix_function` are of (A + A') / 2, so that gradients are symmetric and
agree with central differences of every entry. What several functions have in common, such as a
Cholesky factor, is computed once.

Examples
--------
>>> import tcalc as tc
>>> A, b = tc.var("A", ("n", "n")), tc.var("b", ("n",))
>>> print(tc.grad(tc.linalg.logdet(A), A))
inv(A)'
>>> w, V = tc.linalg.eigh(A)
>>> (w.shape, V.shape)
(('n',), ('n', 'n'))
"""

from .ops.diagonals import trace
from .ops.matrix.adjugate import adj
from .ops.matrix.cholesky import cholesky
from .ops.matrix.eigh import eigh, eigvalsh, syevd
from .ops.matrix.functions import expm, logm, sqrtm
from .ops.matrix.inverse import det, inv, logdet, slogdet, solve
from .ops.matrix.lapack_names import (
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
from .ops.matrix.lq import gelqf, lq, qr
from .ops.matrix.norms import norm
from .ops.matrix.spectral import matrix_function
from .ops.matrix.svd import svd, svdvals
from .ops.matrix.symmetric import sym
from .ops.matrix.triangular import tri_inverse
from .ops.packed import extractdiag, extracttrian, makediag, maketrian
from .ops.reshape import kron

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
    "sym",
    "syrk",
    "trace",
    "tri_inverse",
    "trmm",
    "trsm",
]
