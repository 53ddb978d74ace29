"""Integers of the index language are exact: generators of random numbers as subscripts."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc

TABLE = np.arange(8.0)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1103515245*i + 12345", lambda i: 1103515245 * i + 12345),
        ("-1103515245*i - 1", lambda i: -1103515245 * i - 1),
        ("999999999999*i", lambda i: 999999999999 * i),
        ("4*i - 9007199254740991", lambda i: 4 * i - 9007199254740991),
    ],
)
def test_linear_congruential_places_are_exact(text: str, place: object, named: bool) -> None:
    count = 10_000_000
    extent: int | str = "n" if named else 8
    f = tc.parse_index(
        f"f[i=0..2] = x[mod({text.replace('i', f'(i+{count})')}, {extent})]", x=extent
    )
    sizes = {"n": 8} if named else {}
    assert callable(place)
    wanted = [TABLE[place(i + count) % 8] for i in range(3)]
    np.testing.assert_array_equal(f(x=TABLE, **sizes), wanted)


def test_values_modulo_a_number_are_exact() -> None:
    f = tc.parse_index("f[i=0..4] = mod(1103515245*(i+123456789) + 12345, 2147)")
    wanted = [(1103515245 * (i + 123456789) + 12345) % 2147 for i in range(5)]
    np.testing.assert_array_equal(f(), wanted)


def test_entries_of_integer_variables_modulo_a_number_are_exact() -> None:
    seeds = tc.var("seeds", "k", integer=True)
    f = tc.parse_index("f[i] = x[mod(1103515245*seeds[i] + 12345, 8)]", x=8, seeds=seeds)
    data = np.array([10**7, 3 * 10**8 + 1, 2**40 + 7])
    wanted = [TABLE[(1103515245 * int(s) + 12345) % 8] for s in data]
    with pytest.raises(tc.ParseError):
        tc.parse_index("f[i] = x[mod(1103515245*seeds[i] + 12345, 8)]", x=8, seeds="k")
    np.testing.assert_array_equal(f(x=TABLE, seeds=data), wanted)
