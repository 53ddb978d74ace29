"""The library's functions by name, as the text languages call them.

The surface holds what modules have made public, so those that do are imported here.
"""

from __future__ import annotations

from ..ops import (  # noqa: F401
    elementwise,
    lapack,
    linalg,
    matrix_functions,
    merge,
    norms,
    packed,
    reductions,
    svd,
)
from ..surface import surface as surface
