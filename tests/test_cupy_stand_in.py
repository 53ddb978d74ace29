"""The stand-in for CuPy is as strict as CuPy: no other names, no other signatures, no mixing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cupy_stand_in import STAND_IN

cp = STAND_IN["cupy"]
x = cp.asarray(np.arange(3.0))

REFUSED: list[tuple[type[Exception], Any]] = [
    (AttributeError, lambda: cp.linalg.svdvals),
    (AttributeError, lambda: cp.errstate),
    (AttributeError, lambda: x.device_put),
    (TypeError, lambda: x.max(initial=0)),
    (TypeError, lambda: cp.lib.stride_tricks.as_strided(x, (3,), (8,), writeable=False)),
    (TypeError, lambda: x + np.ones(3)),
    (TypeError, lambda: np.ones(3) + x),
    (TypeError, lambda: cp.exp(np.ones(3))),
    (TypeError, lambda: x[np.array([0, 1])]),
    (TypeError, lambda: np.asarray(x)),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_it_refuses_what_cupy_refuses(case: int) -> None:
    error, call = REFUSED[case]
    with pytest.raises(error):
        call()


def test_it_computes_with_its_own_arrays() -> None:
    found = cp.asnumpy(cp.einsum("i,i->i", cp.exp(x), 2 * x)[::-1])
    np.testing.assert_allclose(found, (2 * np.exp(np.arange(3.0)) * np.arange(3.0))[::-1])
