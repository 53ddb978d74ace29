"""Types of arrays and of their extents, for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

#: NumPy's array, of any shape and dtype.
Array = np.ndarray[Any, Any]

#: An array of the namespace that a kernel is given: NumPy's, or another library's.
AnyArray = Any

#: Extents of an array.
Sizes = tuple[int, ...]
