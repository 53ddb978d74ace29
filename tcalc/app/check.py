"""An independent test of a derivative: numerical differentiation of values along random lines.

Along x + t v the derivative of order k is the k-th derivative of a function of t, which values
alone determine, by interpolation at a few points around 0. It uses nothing symbolic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..calculus.transforms import check_order, derivative, variables_named
from ..graph import trees
from ..graph.extents import Shape, extent_of, show_shape
from ..graph.nodes import Derivative, Expr, Var, dimensions, postorder
from ..graph.properties import direction, sample
from ..graph.variables import checked_extent
from ..run.binding import Declared, ExtentBinding, by_name, to_array
from ..run.compile import compile
from ..support.arrays import Array
from ..support.byte_counts import show_bytes
from ..support.errors import Error, MemoryLimitError, RangeError, ShapeError
from ..support.given import no_expression
from ..support.machine import machine_memory
from ..support.records import NamedTuple

#: Points with smooth lines that are wanted, points that are tried, and lines through each.
POINTS, MAX_POINTS, DIRECTIONS = 3, 12, 3
#: Relative error by order.
TOLERANCES = (1e-7, 1e-5, 1e-6, 1e-4)
#: Distances of the nodes along a line.
STEP_SIZES = (0.08, 0.02, 0.005)
#: Arrays like the data that exist at one time.
COPIES = 20
#: What is added to the smallest extents until no array is empty.
LARGER = (0, 1, 2, 4, 8, 16, 32, 64)


class Report(NamedTuple):
    """Result of a check.

    Attributes
    ----------
    error : float
        The largest relative error.
    tolerance : float
    lines : int
        Random lines along which values were smooth enough.
    sizes : dict
        Extents of the dimensions.
    """

    error: float
    tolerance: float
    lines: int
    sizes: dict[str, int]

    @property
    def passed(self) -> bool:
        return self.error <= self.tolerance

    def __str__(self) -> str:
        verdict = "agrees" if self.passed else "DIFFERS"
        sizes = ", ".join(f"{k}={v}" for k, v in self.sizes.items()) or "as declared"
        return (
            f"{verdict}: largest relative error {self.error:.1e} along {self.lines} random lines "
            f"(tolerated {self.tolerance:.0e}; sizes {sizes})"
        )


def check(
    e: Expr,
    wrt: Any,
    order: int = 1,
    mode: str = "auto",
    seed: int = 0,
    at: Mapping[Any, Any] | None = None,
) -> Report:
    """Compare a derivative with numerical differentiation, on random data or at a point.

    Parameters
    ----------
    e : Expr
    wrt : variable, name of a variable, or a nested tuple, list or dict of these
        Several move together along each line, so that mixed derivatives count too.
    order : int
        From 1 to 4.
    mode : str
        As for `derivative`.
    seed : int
    at : mapping, optional
        Data of variables, and extents of dimensions, by name. What is not given is random; extents
        are small, and as large as it takes for every array to have entries.

    Returns
    -------
    Report

    Raises
    ------
    Error
        Where no random data, or not those of `at`, give finite values; where values are not smooth
        along random lines; where there are no entries to compare.
    ValueError
        Of another order, or without a variable; MemoryLimitError where random data do not fit.
    TypeError
        Of anything but one expression; of a name in `at` that is none of its own.
    """
    if not isinstance(e, Expr):
        raise TypeError(f"one expression is checked, not {no_expression(e)}")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed= is a whole number from 0 on, not {seed!r}")
    if not 1 <= check_order(order) <= 4:
        raise ValueError(
            f"order {order}: derivatives of order 1 to 4 can be checked; numerical differentiation,"
            " which they are compared with, is not accurate enough beyond"
        )
    wrt = tuple(dict.fromkeys(trees.leaves(variables_named(wrt, e))))
    if not wrt:
        raise ValueError("a check needs a variable to differentiate by")
    root = derivative(e, wrt, order, mode)
    known = {**e.variables, **{x.name: x for x in wrt}}
    given, bound = _given(at, known, dimensions([e, *wrt]))
    value, slope = compile(e, backend="numpy"), compile(root, backend="numpy")
    rng = np.random.default_rng(seed)
    for sizes in _extents([e, *wrt], bound):
        _check_fits(known.values(), sizes)
        try:
            _finite_data(value, known, rng, sizes, given)
            break
        except RangeError as problem:  # an index that needs larger extents
            outside = problem
    else:
        raise outside
    tolerance = TOLERANCES[order - 1]
    worst, lines = 0.0, 0
    for _ in range(MAX_POINTS):
        data = _finite_data(value, known, rng, sizes, given)
        for _ in range(DIRECTIONS):
            line = {x.name: _direction(rng, data[x.name], x) for x in wrt}
            along = _along(trees.leaves(root), trees.leaves(slope({**sizes, **data})), line)
            error = _line_error(value, {**sizes, **data}, line, along, order, tolerance)
            if error is not None:
                worst, lines = max(worst, error), lines + 1
        if lines >= POINTS * DIRECTIONS:
            break
    if not lines:
        raise Error("values along random lines are not smooth enough for numerical derivatives")
    return Report(worst, tolerance, lines, sizes)


def _given(
    at: Mapping[Any, Any] | None, known: Mapping[str, Var], names: list[str]
) -> tuple[dict[str, Array], dict[str, int]]:
    """Data of variables that a user gives, and the extents that these have or that are given."""
    data, extents = dict[str, Array](), ExtentBinding()
    for name, value in by_name({} if at is None else at, "at").items():
        if name in known:
            declared = Declared.of(known[name], names)
            data[name] = to_array(value, declared)
            extents.bind_array(declared, data[name])
        elif name in names:
            extents.bind_extent(name, checked_extent(name, value))
        else:
            there = ", ".join([*known, *names])
            raise TypeError(f"at: {name} is no variable or dimension of the expression ({there})")
    extents.solve()
    return data, extents.sizes


def _extents(nodes: list[Expr], bound: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Extents of all dimensions, growing, for which no array of the expression is empty.

    If there are none, such for which neither its value nor a variable is.
    """
    names = dimensions(nodes)
    options = [
        {name: 2 + more + k % 4 for k, name in enumerate(names)} | dict(bound) for more in LARGER
    ]
    everything = list({node.shape: None for node in postorder(nodes)})
    for shapes in (everything, [node.shape for node in nodes]):
        found = [each for each in options if not any(_is_empty(shape, each) for shape in shapes)]
        if found:
            yield from found
            return
    empty = next(shape for shape in shapes if _is_empty(shape, options[-1]))
    raise Error(
        f"there is nothing to compare: an array of shape {show_shape(empty)} has no entries"
    )


def _is_empty(shape: Shape, sizes: Mapping[str, int]) -> bool:
    try:
        return any(extent_of(n, sizes) == 0 for n in shape)
    except ShapeError:  # it would be negative
        return True


def _check_fits(variables: Iterable[Var], sizes: Mapping[str, int]) -> None:
    """Refuse data of which the copies on a line would not fit into memory."""
    need = COPIES * 8 * sum([math.prod(extent_of(n, sizes) for n in x.shape) for x in variables])
    have = machine_memory()
    if have is not None and need > have:
        raise MemoryLimitError(
            f"a check on random data of these extents needs {show_bytes(need)}, "
            f"{show_bytes(have)} available; declare smaller ones"
        )


def _direction(rng: np.random.Generator, at: Any, x: Var) -> Any:
    return direction(rng.normal(size=np.shape(at)), at, x.properties)


def _along(blocks: list[Derivative], values: list[Any], line: Mapping[str, Any]) -> Any:
    """The derivative along a line: all blocks, each with a direction in the place of a variable."""
    total: Any = 0.0
    for block, along in zip(blocks, values, strict=True):
        for x in reversed(block.wrt):
            along = np.tensordot(along, line[x.name], np.ndim(line[x.name]))
        total = total + along
    return total


def _finite_data(
    value: Any, known: Mapping[str, Var], rng: np.random.Generator, sizes: Mapping[str, int],
    given: Mapping[str, Array],
) -> dict[str, Any]:  # fmt: skip
    """Values of variables, random if not given, at which a value is finite: normal, else positive,
    else small.
    """
    outside = None
    for center, spread in ((0.0, 1.0), (1.0, 0.5), (0.25, 0.15)):
        for _ in range(5):
            data = {
                name: sample(
                    _spread(rng, center, spread, [extent_of(x, sizes) for x in v.shape]),
                    v.properties,
                )
                for name, v in known.items()
            } | dict(given)
            try:
                if np.isfinite(value({**sizes, **data})).all():
                    return data
                outside = None
            except RangeError as error:  # random integers may be no indices
                outside = error
    if outside is not None:
        raise outside
    if given.keys() >= known.keys():
        raise Error("the expression is not finite at the data of at")
    raise Error("no random data were found at which the expression is finite; at= gives some")


def _spread(rng: np.random.Generator, center: float, width: float, shape: list[int]) -> Any:
    """Normal around 0, uniform around other centres."""
    return center + width * (rng.uniform(-1, 1, shape) if center else rng.normal(size=shape))


def _line_error(
    value: Any, data: dict[str, Any], line: Mapping[str, Any], found: Any, order: int,
    tolerance: float,
) -> float | None:  # fmt: skip
    """Relative error of `found` along one line, the best of several steps: kinks spoil wide ones.

    None where it is too large and estimates of different steps do not agree much better: the line
    crosses a kink or a pole next to its origin, and says nothing.
    """
    best = spread = math.inf
    last = None
    for h in STEP_SIZES:
        nodes = h * np.arange(-order - 3, order + 4)
        moved = [{name: data[name] + t * v for name, v in line.items()} for t in nodes]
        values = np.stack([value({**data, **at}) for at in moved])
        weights = _weights(nodes / h, order) / h**order
        numeric = np.tensordot(weights, values, 1)
        scale = max(1e-2 * _largest(values), 1e-12, _largest(numeric))
        best = min(best, _finite(_largest(found - numeric) / max(scale, _largest(found))))
        if last is not None:
            spread = min(spread, _finite(_largest(numeric - last) / scale))
        last = numeric
    return best if best <= tolerance or spread <= min(tolerance, best / 10) else None


def _largest(a: np.ndarray) -> float:
    return float(np.abs(a).max(initial=0))


def _finite(error: float) -> float:
    return error if math.isfinite(error) else math.inf


def _weights(nodes: np.ndarray, order: int) -> np.ndarray:
    """Weights of values at nodes that give the derivative at 0 of the polynomial through them."""
    powers = nodes[None, :] ** np.arange(len(nodes))[:, None]
    target = np.zeros(len(nodes))
    target[order] = math.factorial(order)
    return np.linalg.solve(powers, target)
