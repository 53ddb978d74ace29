"""Data for the rows, and their derivatives along directions, by jax."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .evaluation import evaluate
from .row import SIZES, Formula
from .text import read

Arrays = dict[str, np.ndarray[Any, np.dtype[np.float64]]]


def data(row: Formula) -> Arrays:
    """Numbers for the variables: positive, square matrices well conditioned, properties kept."""
    rng = np.random.default_rng(len(row.text))
    found = {}
    for name, shape in row.shapes.items():
        numbers = rng.uniform(0.2, 0.9, [SIZES[n] for n in shape])
        if len(shape) == 2 and shape[0] == shape[1]:
            numbers = numbers + 2 * np.eye(SIZES[shape[0]])
        found[name] = (numbers + numbers.T) / 2 if name in row.properties else numbers
    return found


def directions(row: Formula) -> list[tuple[str, np.ndarray[Any, np.dtype[np.float64]]]]:
    """One generic direction for each derivative."""
    rng = np.random.default_rng(1)
    shapes = row.shapes
    return [(n, rng.uniform(-1, 1, [SIZES[k] for k in shapes[n]])) for n in row.by.split()]


def expected(row: Formula) -> Any:
    """The derivative of the row's function along its directions, by jax's forward mode.

    A symmetric variable enters as its symmetric part, so that derivatives are along its subspace.
    """
    query, held = read(row.text), row.properties

    def value(arrays: Mapping[str, Any]) -> Any:
        inside = {n: (a + a.T) / 2 if n in held else a for n, a in arrays.items()}
        return evaluate(query, inside, SIZES).array

    call: Callable[[Mapping[str, Any]], Any] = value
    for name, along in directions(row):
        call = _derivative(call, name, along)
    return np.asarray(call({n: jnp.asarray(a) for n, a in data(row).items()}))


def _derivative(call: Callable[..., Any], name: str, along: Any) -> Callable[..., Any]:
    def derivative(arrays: Mapping[str, Any]) -> Any:
        def of(x: Any) -> Any:
            return call({**arrays, name: x})

        return jax.jvp(of, (arrays[name],), (jnp.asarray(along),))[1]

    return derivative


def along(row: Formula, derivative: Any) -> Any:
    """A derivative's array, contracted with the row's directions."""
    found = np.asarray(derivative)
    for _, direction in reversed(directions(row)):
        found = np.tensordot(found, direction, direction.ndim)
    return found


def form_along(row: Formula, text: str) -> Any:
    """A formula's value along the row's directions; a number may stand for all entries."""
    value = np.asarray(evaluate(read(text), data(row), SIZES).array)
    shape = tuple(itertools.chain.from_iterable(d.shape for _, d in directions(row)))
    return along(row, value if value.ndim else np.full(shape, value))
