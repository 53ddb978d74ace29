"""How the tests run programs over each array library: arrays in, and NumPy's arrays out."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.trees import leaves, unflatten
from tests.cupy_stand_in import STAND_IN, has_device


class Library(NamedTuple):
    """An array library, what makes its arrays of NumPy's and back, and how functions are called.

    `typed` takes a function and its arguments, and tells the shapes and dtypes of what it returns.
    """

    module: str
    array: Callable[[Any, Any], Any]
    host: Callable[[Any], np.ndarray] = np.asarray
    ready: Callable[[Callable[..., Any], list[str]], Callable[..., Any]] = lambda f, sizes: f
    typed: Callable[..., Any] | None = None


LIBRARIES = {
    "numpy": Library("numpy", lambda np, a: np.asarray(a)),
    "jax": Library(
        "jax.numpy",
        lambda jnp, a: jnp.asarray(a),
        ready=lambda f, sizes: jax.jit(f, static_argnames=sizes),
        typed=jax.eval_shape,
    ),
    "cupy": Library("cupy", lambda cp, a: cp.asarray(a), lambda a: sys.modules["cupy"].asnumpy(a)),
    "torch": Library("torch", lambda torch, a: torch.as_tensor(np.array(a))),
}


def library_of(language: str) -> tuple[Library, Any]:
    """A row and its module; the test is skipped where it is not installed."""
    row = LIBRARIES[language]
    if language == "cupy" and not has_device():
        return row, STAND_IN["cupy"]
    try:
        return row, importlib.import_module(row.module)
    except ImportError as error:
        pytest.skip(f"{language} programs are not run: {error}")


def computed(e: Any, arrays: Mapping[str, Any], language: str, **extents: int) -> Any:
    """What the source of outputs computes, in a namespace of its own."""
    return _run(e, arrays, language, extents, False)


def typed(e: Any, arrays: Mapping[str, Any], language: str) -> Any:
    """The same, or only shapes and dtypes where the library finds them without computing.

    They take none of the time that compilers take.
    """
    return _run(e, arrays, language, {}, LIBRARIES[language].typed is not None)


def _run(
    e: Any, arrays: Mapping[str, Any], language: str, extents: Mapping[str, int], only: bool
) -> Any:
    row, module = library_of(language)
    scope: dict[str, Any] = {}
    stand_in = STAND_IN if module is STAND_IN["cupy"] else {}
    with mock.patch.dict(sys.modules, stand_in):
        exec(tc.to_code(e, language), scope)
        f = scope["f"]
        names = list(inspect.signature(f).parameters)
        given = {name: row.array(module, a) for name, a in arrays.items()} | dict(extents)
        if only and row.typed is not None:
            return row.typed(f, *[given[name] for name in names])
        ready = row.ready(f, [name for name in names if name in extents])
        found = ready(**{name: given[name] for name in names})
        return unflatten(found, iter([row.host(a) for a in leaves(found)]))


def run_checked(source: str, language: str) -> None:
    """A program run as a script, with the library in its place."""
    _, module = library_of(language)
    with mock.patch.dict(sys.modules, STAND_IN if module is STAND_IN["cupy"] else {}):
        exec(source, {"__name__": "__main__"})
