"""Checks of derivatives of Python functions against central differences of their values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import trees
from ..run import transforms

#: Nothing here is a test, for pytest and for doctest.
__test__: dict[str, str] = {}

Function = Callable[..., Any]
#: Distance of the two points of a difference, and what it may be off.
STEP, TOLERANCE = 1e-6, 1e-6
#: What the modes compute: products with the Jacobian, and with its transpose.
PRODUCTS = {"fwd": "jvp", "rev": "vjp"}


def scalar_close(a: Any, b: Any) -> bool:
    """Are two numbers equal up to a relative or absolute error of 1e-6?"""
    return bool(abs(a - b) < TOLERANCE or abs(a - b) / abs(a + b) < TOLERANCE)


def _random(tree: Any) -> Any:
    leaves = [np.random.standard_normal(np.shape(leaf)) for leaf in trees.leaves(tree)]
    return trees.unflatten(tree, iter(leaves))


def _moved(tree: Any, direction: Any, step: float) -> Any:
    pairs = zip(trees.leaves(tree), trees.leaves(direction), strict=True)
    return trees.unflatten(tree, iter([x + step * v for x, v in pairs]))


def _inner(one: Any, other: Any) -> float:
    pairs = zip(trees.leaves(one), trees.leaves(other), strict=True)
    return float(sum([np.sum(np.multiply(a, b)) for a, b in pairs]))


def check_equivalent(x: Any, y: Any) -> None:
    """Assert that two nests of arrays have one structure and equal numbers."""
    one, other = ([np.shape(leaf) for leaf in trees.leaves(tree)] for tree in (x, y))
    assert one == other, f"shapes {one} and {other} differ"
    v = _random(x)
    assert scalar_close(_inner(x, v), _inner(y, v)), f"values differ:\n{x}\n{y}"


def check_grads(
    fun: Function,
    argnum: int | Sequence[int] = 0,
    modes: Sequence[str] = ("fwd", "rev"),
    order: int = 2,
) -> Function:
    """A function of the same arguments that checks derivatives there.

    Parameters
    ----------
    fun : callable
    argnum : int or sequence of int
        The arguments that derivatives are by.
    modes : sequence of {"fwd", "rev"}
    order : int
        Derivatives of derivatives are checked up to this one.

    Raises
    ------
    AssertionError
        Where a derivative along a random direction is not the difference quotient.
    """

    def check(*args: Any, **options: Any) -> None:
        places = [argnum] if isinstance(argnum, int) else list(argnum)

        def of_nest(x: Any) -> Any:
            given = list(args)
            for place, value in zip(places, x, strict=True):
                given[place] = value
            return fun(*given, **options)

        name = getattr(fun, "__name__", "the function")
        _check(of_nest, tuple([args[k] for k in places]), modes, order, name)

    return check


def _check(fun: Function, x: Any, modes: Sequence[str], order: int, name: str) -> None:
    pushforward, pullback = transforms.jvp(fun), transforms.vjp(fun)
    y, v = fun(x), _random(x)
    u = _random(y)
    ends = [fun(_moved(x, v, step)) for step in (STEP / 2, -STEP / 2)]
    wanted = (_inner(u, ends[0]) - _inner(u, ends[1])) / STEP
    derivatives = {
        "fwd": lambda: _inner(u, pushforward(x, v)),
        "rev": lambda: _inner(pullback(x, u), v),
    }
    for mode in modes:
        found = derivatives[mode]()
        failed = f"({PRODUCTS[mode].upper()}) check of {name} failed: {found}, not {wanted}"
        assert scalar_close(found, wanted), failed
    if order > 1:
        further = {
            "fwd": (lambda pair: pushforward(*pair), (x, v)),
            "rev": (lambda pair: pullback(*pair), (x, u)),
        }
        for mode in modes:
            _check(*further[mode], modes, order - 1, f"{PRODUCTS[mode]}_{name}")


def combo_check(fun: Function, *args: Any, **options: Any) -> Function:
    """`check_grads` at all combinations of arguments and options, each given as a list."""
    check = check_grads(fun, *args, **options)

    def check_all(*lists: Any, **keywords: Any) -> None:
        named = [[(key, value) for value in values] for key, values in keywords.items()]
        for given in itertools.product(*lists):
            for pairs in itertools.product(*named):
                check(*given, **dict(pairs))

    return check_all
