"""The type of NumPy's arrays in annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

#: An array of numbers, of any shape and dtype.
Array = np.ndarray[Any, Any]
