"""Entries that come to affine places: the views of a result that take them, against loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tcalc.backends.numpy.strided import regions


@pytest.mark.parametrize("seed", range(60))
def test_regions_have_every_entry_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = tuple(map(int, rng.integers(1, 4, rng.integers(1, 4))))
    forms = [
        (int(rng.integers(-2, 3)), [int(c) for c in rng.choice([0, 0, 1, -1, 2], len(counts))])
        for _ in range(rng.integers(1, 5))
    ]
    for k in range(len(counts)):  # every label stands somewhere
        forms[rng.integers(len(forms))][1][k] = 1
    places = [(start, tuple(coefs)) for start, coefs in forms]
    shape = tuple(map(int, rng.integers(1, 6, len(forms))))
    array = rng.normal(size=counts)
    wanted, found = np.zeros(shape), np.asfortranarray(np.zeros(shape))
    for at in product(*map(range, counts)):
        where = tuple(start + int(np.dot(coefs, at)) for start, coefs in places)
        if all(0 <= k < n for k, n in zip(where, shape, strict=True)):
            wanted[where] += array[at]
    for region in regions(counts, places, shape):
        entries = region.of(found)
        entries += array[region.source].transpose(region.order)
    np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=1e-15)


def test_a_diagonal_of_several_axes_is_one_view() -> None:
    """As where the second derivative of differences along two axes puts its entries."""
    forms = [(0, (1, 0)), (1, (0, 1)), (1, (1, 0)), (0, (0, 1))]
    (region,) = regions((400, 300), forms, (401, 301, 401, 301))
    assert region.of(np.broadcast_to(0.0, (401, 301, 401, 301))).shape == (400, 300)
