"""Newton's method with the compressed Hessian.

A step costs what the Hessian's structure costs, not the cube of the number of unknowns (Laue et al.
2020, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..calculus.transforms import hessian, value_and_grad
from ..graph.nodes import Expr
from ..run.binding import OwnData, by_name
from ..run.compile import compile
from ..support.arrays import Array
from ..support.progress import Progress
from .scipy_objective import Unknowns

#: Sufficient decrease of a step (Armijo), and how often it is halved.
DECREASE, MAX_HALVINGS = 1e-4, 50
#: First damping relative to the Hessian's diagonal, and the factor by which it grows.
FIRST_DAMPING, DAMPING_GROWTH, MAX_DAMPINGS = 1e-6, 10.0, 24


class _NewtonSearch:
    """The state of one minimisation: the best point so far and what is known there."""

    def __init__(self, f: Expr, start: Mapping[str, Any], data: Any, options: Any) -> None:
        names = tuple(start)
        self.unknowns = Unknowns(f, names)
        self.unknowns.bind(start)
        wanted: Any = names if len(names) > 1 else names[0]
        single = len(names) == 1
        first, second = value_and_grad(f, wanted), hessian(f, wanted)
        self.tuple: Callable[[Any], Any] = (lambda found: (found,)) if single else tuple
        self.nested: Callable[[Any], Any] = (lambda parts: parts[0]) if single else tuple
        own = OwnData.of(data)
        self.first = compile(first, data=own, **options)
        self.second = compile(second, data=own, structured=True, **options)
        self.x = [np.array(value, _float_dtype(value)) for value in start.values()]
        self.evaluations = 0
        self.fun, self.gradient = self.evaluate(self.x)
        self.hess: Any = None

    def named(self, arrays: Any) -> dict[str, Array]:
        return dict(zip(self.unknowns.names, arrays, strict=True))

    def evaluate(self, arrays: Any) -> tuple[float, tuple[Array, ...]]:
        self.evaluations += 1
        value, gradient = self.first(self.named(arrays))
        return float(value), self.tuple(gradient)

    def evaluate_or_inf(self, arrays: Any) -> tuple[float, tuple[Array, ...]]:
        """The value at a point, infinite where the objective is not defined."""
        try:
            return self.evaluate(arrays)
        except np.linalg.LinAlgError:
            return float("inf"), ()

    def update_hessian(self) -> None:
        """Compute the Hessian at the current point."""
        self.hess = self.second(self.named(self.x))

    def is_minimum(self) -> bool:
        """Is no curvature negative, to working precision?"""
        slack = np.sqrt(np.finfo(self.x[0].dtype).eps) * self.hessian_scale()
        try:
            return bool(self.hess.factor(slack).definite)
        except np.linalg.LinAlgError:
            return False

    def gradient_norm(self) -> float:
        """The largest entry of the gradient in absolute value."""
        return max([float(np.abs(g).max(initial=0)) for g in self.gradient])

    def direction(self) -> tuple[tuple[Array, ...], float] | None:
        """A descent direction and the slope along it, damped until the matrix is definite."""
        damping = 0.0
        for _ in range(MAX_DAMPINGS):
            try:
                factor = self.hess.factor(damping)
                found = factor.solve(self.nested(self.gradient)) if factor.definite else None
            except np.linalg.LinAlgError:
                found = None
            if found is not None:
                step = tuple([-np.asarray(part) for part in self.tuple(found)])
                along = sum(
                    [float(np.vdot(g, p)) for g, p in zip(self.gradient, step, strict=True)]
                )
                if along < 0 and np.isfinite(along):
                    return step, along
            damping = damping * DAMPING_GROWTH or FIRST_DAMPING * self.hessian_scale()
        return None

    def hessian_scale(self) -> float:
        """The largest entry of the diagonal in absolute value, 1 if that is of no use."""
        parts = self.tuple(self.hess.diagonal())
        largest = max([float(np.abs(part).max(initial=0)) for part in parts])
        return largest if np.isfinite(largest) and largest > 0 else 1.0

    def line_search(self, step: tuple[Array, ...], along: float) -> bool:
        """Halve the step until the objective decreases enough (Armijo); False if it never does."""
        length = 1.0
        for _ in range(MAX_HALVINGS):
            point = [x + length * p for x, p in zip(self.x, step, strict=True)]
            value, gradient = self.evaluate_or_inf(point)
            if value <= self.fun + DECREASE * length * along:
                self.x = [np.asarray(p, x.dtype) for p, x in zip(point, self.x, strict=True)]
                self.fun, self.gradient = value, gradient
                return True
            length /= 2
        return False


def _float_dtype(value: Any) -> Any:
    kind = np.asarray(value).dtype
    return kind if kind == np.float32 else np.float64


def newton(
    f: Expr,
    start: Mapping[Any, Any],
    data: Mapping[Any, Any] | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 100,
    callback: Callable[[Any], None] | None = None,
    **options: Any,
) -> Any:
    """Minimise by damped Newton steps that solve with the compressed Hessian.

    Where the Hessian is not positive definite, multiples of the identity are added until it is, so
    that every step is one of descent and none leads to a saddle point; steps are halved until the
    objective decreases (Armijo's rule). Points where the objective is not defined (a matrix that is
    not positive definite) count as infinite.

    Parameters
    ----------
    f : Expr
        A scalar expression.
    start : mapping
        Names or variables to minimise over, and where to begin.
    data : mapping, optional
        Arrays of all other variables.
    tolerance : float
        Done when no entry of the gradient is larger than this times max(1, |f|).
    max_steps : int
    callback : callable, optional
        Called after every step with the result so far; StopIteration ends the search.
    **options
        Further options of `compile`, as ``memory_limit``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (arrays by name), ``fun``, ``jac`` (arrays by name), ``hess`` (structured: its
        inverse's diagonal gives standard errors), ``nit``, ``nfev``, ``success``, ``message``. An
        interrupt from the keyboard ends the search with the best point so far.

    Examples
    --------
    >>> import numpy as np, tcalc as tc
    >>> f = tc.parse("sum(exp(w)) - c'*w", c=("n",), w=("n",))
    >>> found = tc.newton(f, {"w": np.zeros(2)}, data={"c": [1.0, 2.0]})
    >>> found.x["w"].round(6).tolist()
    [0.0, 0.693147]
    """
    if not isinstance(f, Expr):
        raise TypeError(f"newton minimises an expression, not {type(f).__name__}")
    begin = by_name(start, "the start")
    done, steps = "", 0
    with Progress("newton") as progress:
        search = _NewtonSearch(f, begin, data, options)
        if not np.isfinite(search.fun):
            raise ValueError(f"newton: the objective is {search.fun} at the start")
        try:
            while not done:
                done = _reason_to_stop(search, steps, tolerance, max_steps)
                if not done:
                    done = _advance(search)
                    steps += not done
                    progress.what = f"newton: step {steps}, f = {search.fun:.6g}"
                    if callback is not None and not done:
                        callback(_result(search, steps, ""))
            search.update_hessian()
            if done == CONVERGED and not search.is_minimum():
                done = "a stationary point that is no minimum: the Hessian is indefinite"
        except StopIteration:
            done = "stopped by the callback"
        except KeyboardInterrupt:
            done = f"interrupted after {steps} steps"
    return _result(search, steps, done)


CONVERGED = "the gradient vanishes"


def _reason_to_stop(search: _NewtonSearch, steps: int, tolerance: float, max_steps: int) -> str:
    """Why the search ends before a step, empty if it goes on."""
    if search.gradient_norm() <= tolerance * max(1.0, abs(search.fun)):
        return CONVERGED
    return f"no convergence after {steps} steps" if steps >= max_steps else ""


def _advance(search: _NewtonSearch) -> str:
    """One Newton step; the reason to stop, empty if there is none."""
    search.update_hessian()
    found = search.direction()
    if found is None:
        return "no direction of descent: the Hessian or the gradient is not finite"
    return "" if search.line_search(*found) else "no decrease along the step: at rounding errors"


def _result(search: _NewtonSearch, steps: int, message: str) -> Any:
    from scipy.optimize import OptimizeResult

    return OptimizeResult(
        x=search.named(search.x),
        fun=search.fun,
        jac=search.named(search.gradient),
        hess=search.hess,
        nit=steps,
        nfev=search.evaluations,
        success=message == CONVERGED,
        message=message,
    )
