"""Functions of `scipy.special` that are made of others, and their derivatives."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.scipy import special

#: Functions, with numbers in their domain and what their derivative by the first operand is.
ONE: dict[str, Any] = {
    "entr": lambda x: -mp.log(x) - 1,
    "i0e": lambda x: mp.exp(-x) * (mp.besseli(1, x) - mp.besseli(0, x)),
    "i1e": lambda x: mp.exp(-x) * (mp.besseli(0, x) - mp.besseli(1, x) / x - mp.besseli(1, x)),
    "log_expit": lambda x: 1 / (1 + mp.exp(x)),
}
TWO: dict[str, Any] = {
    "kl_div": lambda x, y: mp.log(x / y),
    "rel_entr": lambda x, y: mp.log(x / y) + 1,
    "xlog1py": lambda x, y: mp.log(1 + y),
}
AT = np.array([0.3, 0.9, 2.5])
OTHER = np.array([0.2, 1.7, 0.6])


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_values_and_derivatives(name: str) -> None:
    theirs = getattr(scipy.special, name)
    given = (AT,) if name in ONE else (AT, OTHER)
    slope = np.array([float({**ONE, **TWO}[name](*at)) for at in zip(*given, strict=True)])
    for function in (theirs, getattr(special, name)):

        def f(x: Any, function: Any = function) -> Any:
            return np.sum(function(x, *given[1:]))

        np.testing.assert_allclose(tc.grad(f)(AT), slope, rtol=1e-11)
        np.testing.assert_allclose(tc.value_and_grad(f)(AT)[0], np.sum(theirs(*given)), rtol=1e-13)
    np.testing.assert_array_equal(getattr(special, name)(*given), theirs(*given))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_values_at_the_ends_are_those_of_scipy(name: str) -> None:
    theirs = getattr(scipy.special, name)
    ends = np.array([-1.0, 0.0, 1.0, 800.0, -800.0])
    x, y = tc.var("x", 5), tc.var("y", (5, 1))
    data = {"x": ends, "y": ends[:, None]}
    both = name in TWO
    found = theirs(x, y) if both else theirs(x)
    with np.errstate(all="ignore"):
        wanted = theirs(ends, ends[:, None]) if both else theirs(ends)
    np.testing.assert_allclose(found(**{k: data[k] for k in found.variables}), wanted, rtol=1e-13)


def test_no_digit_of_a_small_number_is_lost() -> None:
    x, y = tc.var("x"), tc.var("y")
    assert scipy.special.xlog1py(x, y)(x=2.0, y=1e-20) == 2e-20
    assert scipy.special.log_expit(x)(x=-800.0) == -800.0
