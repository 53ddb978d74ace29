"""Functions of NumPy and SciPy that expressions do not have: what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats

import tcalc as tc


@pytest.mark.parametrize(
    "function",
    [
        lambda i: i & 1, lambda i: 4 | i, lambda i: ~i, lambda i: np.bitwise_xor(i, 3),
        lambda i: np.invert(i), lambda i: i & np.arange(4),
    ],
)  # fmt: skip
def test_bits_of_whole_numbers_are_refused(function: Any) -> None:
    """They are no conditions."""
    with pytest.raises(TypeError, match="joins conditions, such as x != 0"):
        tc.vmap(function)(np.arange(4))


def test_conditions_are_joined_as_bits() -> None:
    a, held = np.array([1.0, -2.0, 3.0]), np.array([True, True, False])
    found = tc.compile(lambda x, m: [(x > 0) & m, (x > 0) | ~m, np.bitwise_xor(x > 0, held)])(
        a, held
    )
    for value, wanted in zip(found, [(a > 0) & held, (a > 0) | ~held, (a > 0) ^ held], strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_what_is_refused_names_no_other_function() -> None:
    """A hint is a function of ours that is written almost so, and none that only sounds like it."""
    x = tc.var("x", 3)
    with pytest.raises(tc.TraceError, match=r"^scipy\.linalg\.toeplitz does not take expressions$"):
        tc.scipy.linalg.toeplitz(x)
    with pytest.raises(tc.TraceError, match=r"^expi does not take expressions$"):
        scipy.special.expi(x)
    with pytest.raises(tc.TraceError, match=r"tcalc\.scipy\.stats has some for expressions"):
        scipy.stats.rayleigh.logpdf(x)
    with pytest.raises(tc.TraceError, match=r"^a sparse matrix takes no expressions: give it"):
        scipy.sparse.eye_array(3).tocsr() @ x
