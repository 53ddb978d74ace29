"""Which values have a say in the dtype that is computed in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..support.arrays import Array

_PYTHON_NUMBERS = (int, float, bool)


def is_exact(constant: Array) -> bool:
    """Are its numbers whole ones in single precision, as masks and their sums are: of no dtype?"""
    return constant.dtype == np.float32 and bool((constant == np.trunc(constant)).all())


def is_weak(value: Any) -> bool:
    """Is it a number of Python's, which takes the dtype of the arrays in an operation?"""
    return type(value) in _PYTHON_NUMBERS


def is_of_no_dtype(value: Any) -> bool:
    """Does it take the dtype of the arrays in an operation, as numbers of Python's and masks do?"""
    return is_weak(value) or getattr(value, "dtype", None) == np.bool_
