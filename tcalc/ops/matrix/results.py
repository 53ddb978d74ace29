"""The parts of factorisations by the names that NumPy gives them."""

from __future__ import annotations

from ...graph.nodes import Expr
from ...support.records import NamedTuple


class SVDResult(NamedTuple):
    """Singular vectors in columns, singular values, and singular vectors in rows."""

    U: Expr
    S: Expr
    Vh: Expr


class EighResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Expr
    eigenvectors: Expr


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Expr
    R: Expr


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Expr
    logabsdet: Expr
