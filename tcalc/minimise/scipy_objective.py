"""An objective and its exact derivatives over one flat vector, for ``scipy.optimize``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from ..calculus.directional import hvp
from ..calculus.transforms import hessian, value_and_grad
from ..graph import trees
from ..graph.extents import extent_names, extent_of, solved_for
from ..graph.nodes import Expr, Var, dimensions, variables
from ..graph.variables import var
from ..run.binding import OwnData, by_name, name_of, wrong_axes
from ..run.compile import compile
from ..support.arrays import Array
from ..support.errors import DeclarationError, ShapeError
from ..support.given import no_expression

#: Parameters of `compile` that minimisers give themselves.
TAKEN = ("outputs", "args", "data", "structured", "compute")


class Unknowns:
    """Variables to minimise over, as one flat C-order vector and as arrays by name."""

    def __init__(self, f: Expr, wrt: Any) -> None:
        known = variables([f])
        self.names = [name_of(v, "variables to minimise over") for v in trees.leaves(wrt)]
        for name in self.names:
            if name not in known:
                others = ", ".join(known) or "it has none"
                raise TypeError(f"{name} is not a variable of the objective: {others}")
        if len(set(self.names)) < len(self.names) or not self.names:
            raise TypeError(f"variables to minimise over, each once, not {self.names}")
        self.variables: list[Var] = [known[name] for name in self.names]
        self.sizes: dict[str, int] = {}

    def bind(self, values: Mapping[str, Any]) -> None:
        """Bind dimensions to the extents of arrays by name."""
        for v in self.variables:
            if v.name in values:
                shape = np.shape(values[v.name])
                if len(shape) != v.ndim:
                    raise wrong_axes(v.name, shape, v.shape)
                self.bind_shape(v.shape, shape, v.name)

    def bind_shape(self, extents: Any, shape: Any, what: str) -> None:
        """Bind dimensions to the extents of one array; `what` names it in errors."""
        for extent, size in zip(extents, shape, strict=False):
            held = extent
            if isinstance(extent, str):
                if extent.isidentifier():
                    held = self.sizes.setdefault(extent, size)
                else:
                    try:
                        self.sizes.update(solved_for(extent, size, self.sizes))
                    except ShapeError as error:
                        raise ShapeError(f"{what}: {error}") from None
                    known = all(name in self.sizes for name in extent_names((extent,)))
                    held = extent_of(extent, self.sizes) if known else size
            if held != size:
                raise ShapeError(f"{what}: extent {extent} is {held} and {size}")

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the variables, whose dimensions must be bound."""
        missing = [d for d in dimensions(self.variables) if d not in self.sizes]
        if missing:
            raise ShapeError(
                f"the extent of {', '.join(missing)} is not known yet: pack a start first"
            )
        return [tuple([extent_of(e, self.sizes) for e in v.shape]) for v in self.variables]

    def flat(self, values: Any) -> Array:
        """Arrays in the order of `names` as one vector of float64."""
        parts = [np.asarray(value, np.float64).ravel() for value in values]
        return np.concatenate(parts) if parts else np.zeros(0)

    def arrays(self, x: Any) -> dict[str, Array]:
        """A vector as arrays by name, views of it."""
        vector = np.asarray(x, np.float64).ravel()
        shapes = self.shapes()
        wanted = sum([prod(shape) for shape in shapes])
        if vector.size != wanted:
            raise ShapeError(f"a vector of {vector.size} entries, expected {wanted}")
        found, at = {}, 0
        for name, shape in zip(self.names, shapes, strict=True):
            found[name] = vector[at : at + prod(shape)].reshape(shape)
            at += prod(shape)
        return found


class SciPyFunctions:
    """An objective and its derivatives over one flat float64 vector (see `scipy_functions`).

    Attributes
    ----------
    names : list of str
        The variables, in the order of the vector.
    """

    def __init__(self, f: Any, wrt: Any, data: Mapping[Any, Any] | None, options: Any) -> None:
        self._unknowns = Unknowns(f, wrt)
        self.names = self._unknowns.names
        self._data = OwnData.of(data)
        self._f, self._options = f, {**options, "data": self._data}
        both = [name for name in self.names if name in self._data]
        if both:
            raise TypeError(f"{', '.join(both)}: both a variable to minimise over and data")
        for v in variables([f]).values():
            if v.name in self._data:
                self._unknowns.bind_shape(v.shape, np.shape(self._data[v.name]), v.name)
        self._first = compile(value_and_grad(f, tuple(self.names)), **self._options)
        self._later: dict[str, Any] = {}
        self._last: tuple[Array, tuple[Any, Array]] | None = None

    def pack(self, values: Any) -> Array:
        """The flat vector of arrays: a mapping by name, or a sequence in the order of `names`."""
        if isinstance(values, Mapping):
            found = by_name(values)
        else:
            found = dict(zip(self.names, trees.leaves(values), strict=True))
        for name in self.names:
            if name not in found:
                raise TypeError(f"{name} is missing: an array for every variable")
        self._unknowns.bind(found)
        return self._unknowns.flat([found[name] for name in self.names])

    def unpack(self, x: Any) -> dict[str, Array]:
        """Arrays by name (views of the vector)."""
        return self._unknowns.arrays(x)

    def fun(self, x: Any) -> float:
        """The objective."""
        return float(self._both(x)[0])

    def jac(self, x: Any) -> Array:
        """The gradient, of the vector's length."""
        return self._both(x)[1].copy()

    def hess(self, x: Any) -> Array:
        """The Hessian as a dense matrix."""
        step = self._step("hess", lambda: hessian(self._f, tuple(self.names)), structured=True)
        return np.asarray(step(self.unpack(x)).tomatrix(), np.float64)

    def hessp(self, x: Any, p: Any) -> Array:
        """The Hessian times a vector, without the Hessian."""
        taken = variables([self._f])
        directions = [
            var(_fresh_name(f"{v.name}_direction", taken), v.shape)
            for v in self._unknowns.variables
        ]
        step = self._step("hessp", lambda: hvp(self._f, tuple(self.names), tuple(directions)))
        along = self.unpack(p)
        seeds = {d.name: along[name] for d, name in zip(directions, self.names, strict=True)}
        return self._unknowns.flat(step({**self.unpack(x), **seeds}))

    def _step(self, name: str, made: Callable[[], Any], **options: Any) -> Any:
        if name not in self._later:
            self._later[name] = compile(made(), **self._options, **options)
        return self._later[name]

    def _both(self, x: Any) -> tuple[Any, Array]:
        """Value and gradient, computed once where minimisers ask for them one after the other."""
        vector = np.array(x, np.float64)
        if self._last is None or not np.array_equal(self._last[0], vector):
            try:
                value, slopes = self._first(self.unpack(vector))
                found = value, self._unknowns.flat(slopes)
            except (np.linalg.LinAlgError, DeclarationError):
                if self._last is None:  # the start: a minimiser would not say why it went nowhere
                    raise
                found = np.inf, np.full(vector.shape, np.nan)
            self._last = vector, found
        return self._last[1]


def check_options(what: str, own: Iterable[str], options: Iterable[str]) -> None:
    """Refuse options that neither a function nor `compile` has, with those that there are."""
    from inspect import signature  # needed where there are options only

    if not options:
        return
    known = [*own, *[n for n in signature(compile).parameters if n not in TAKEN]]
    for name in options:
        if name not in known:
            raise TypeError(f"{what} has no option {name}; there are {', '.join(known)}")


def _fresh_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def scipy_functions(
    f: Expr, wrt: Any, data: Mapping[Any, Any] | None = None, **options: Any
) -> SciPyFunctions:
    """An objective and its exact derivatives as ``scipy.optimize`` takes them.

    Points where the objective is not defined (a matrix that is not positive definite) count as
    infinite, with a gradient of nan, so that line searches and trust regions step back; only the
    first point that is asked for must be one where it is.

    Parameters
    ----------
    f : Expr
        A scalar expression.
    wrt : variable, its name, or a nest of these
        What the flat vector holds, in this order, each in C-order.
    data : mapping, optional
        Arrays of all other variables, bound once.
    **options
        Further options of `compile`.

    Returns
    -------
    SciPyFunctions
        With ``fun(x)``, ``jac(x)``, ``hess(x)`` (dense), ``hessp(x, p)``, ``pack`` and ``unpack``.

    Raises
    ------
    TypeError
        For names that are no variables of f.
    ShapeError
        For a vector of another length, or where extents are not known from the data: pack a start
        first.
    LinAlgError
        Of `fun` and `jac`, where the first point has no value; of `hess` and `hessp` at any.

    Examples
    --------
    >>> import numpy as np, tcalc as tc
    >>> from scipy.optimize import minimize
    >>> f = tc.parse("norm2(A*w - b)^2", A=("m", "n"), b=("m",), w=("n",))
    >>> s = tc.scipy_functions(f, "w", data={"A": np.eye(2), "b": [1.0, 2.0]})
    >>> found = minimize(s.fun, np.zeros(2), jac=s.jac, hess=s.hess, method="trust-exact")
    >>> s.unpack(found.x)["w"].round(6).tolist()
    [1.0, 2.0]
    """
    if not isinstance(f, Expr):
        raise TypeError(f"scipy_functions takes an expression, not {no_expression(f)}")
    check_options("scipy_functions", (), options)
    return SciPyFunctions(f, wrt, data, options)
