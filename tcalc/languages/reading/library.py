"""The library's functions by name, as the text languages call them.

The surface holds what modules have made public, so those that do are imported here.
"""

from __future__ import annotations

from ...graph.arraylike import surface as surface
from ...ops import elementwise, packed, reductions, reshape  # noqa: F401
from ...ops.matrix import functions, inverse, lapack_names, norms, svd  # noqa: F401
