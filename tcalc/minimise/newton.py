"""Newton's method with the compressed Hessian.

A step costs what the Hessian's structure costs, not the cube of the number of unknowns (Laue et al.
2020, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import comb
from typing import Any

import numpy as np

from ..calculus.transforms import hessian, value_and_grad
from ..graph import trees
from ..graph.nodes import Expr
from ..run.binding import OwnData, by_name
from ..run.compile import compile
from ..support.arrays import Array
from ..support.errors import DeclarationError
from ..support.given import no_expression
from ..support.namespaces import is_sparse, on_host
from ..support.progress import Progress
from .scipy_objective import Unknowns, check_options

#: Sufficient decrease of a step (Armijo), and how often it is halved.
DECREASE, MAX_HALVINGS = 1e-4, 50
#: First damping relative to the Hessian's diagonal, and the factor by which it grows: never by 1
#: in all, which would make negative curvature zero.
FIRST_DAMPING, DAMPING_GROWTH, MAX_DAMPINGS = 3e-6, 10.0, 24
#: How much shorter than the one before a step must be, where the gradient vanishes.
SHORTER = 0.999
#: Steps ahead at which the objective is looked at before a point is called a minimum.
BEYOND = (8.0, 64.0)
#: How often a step is doubled to see whether the objective falls without end along it, and how many
#: times as far it falls then.
MAX_DOUBLINGS, ENDLESS = 60, 1e6
#: Units of rounding of the objective that a step must promise to gain.
ROUNDINGS = 16
#: How many times more or less than a quadratic function a step gains where something is wrong.
UNLIKELY = 4.0
#: Values along a step of which the noise of the objective is told, and of what orders differences.
NOISY_VALUES, NOISY_ORDERS = 7, (4, 5, 6)

CONVERGED = "the gradient vanishes"
ROUNDED = "no step gains more than the rounding errors of the objective"
INDEFINITE = "a stationary point that is no minimum: the objective falls from there"
UNTOLD = "a stationary point where the Hessian is not finite: it may be a minimum, or not"
RECEDING = "the gradient vanishes, but steps do not get shorter: there is no minimum near"
UNBOUNDED = "the objective is unbounded below"
LOST = "no direction of descent: the Hessian or the gradient is not finite"
STUCK = "no decrease along a direction of descent: rounding errors, or a kink"
NOT_CONVERGED = "no convergence in as many steps as are allowed"


class _NewtonSearch:
    """The state of one minimisation: the best point so far and what is known there."""

    def __init__(self, f: Expr, start: Mapping[str, Any], data: Any, options: Any) -> None:
        names = tuple(start)
        self.unknowns = Unknowns(f, names)
        self.unknowns.bind(start)
        wanted: Any = {name: name for name in names} if len(names) > 1 else names[0]
        first, second = value_and_grad(f, wanted), hessian(f, wanted)
        self.tuple: Callable[[Any], tuple[Any, ...]] = lambda found: tuple(trees.leaves(found))
        self.nested: Callable[[Any], Any] = lambda parts: trees.rebuild(wanted, list(parts))
        own = OwnData.of(data)
        self.first = compile(first, data=own, **options)
        self.second = compile(second, data=own, structured=True, **options)
        points = [on_host(value) for value in start.values()]
        self.x = [np.array(value, _float_dtype(value)) for value in points]
        self.evaluations = 0
        self.fun, self.gradient = self.evaluate(self.x)
        self.first_fun, self.last_length = self.fun, np.inf
        self.hess: Any = None
        self.definite = self.surprised = False
        self.eps = float(np.finfo(self.x[0].dtype).eps)

    def named(self, arrays: Any) -> dict[str, Array]:
        return dict(zip(self.unknowns.names, arrays, strict=True))

    def evaluate(self, arrays: Any) -> tuple[float, tuple[Array, ...]]:
        self.evaluations += 1
        value, gradient = self.first(self.named(arrays))
        return float(value), tuple(map(on_host, self.tuple(gradient)))

    def evaluate_or_inf(self, arrays: Any) -> tuple[float, tuple[Array, ...]]:
        """The value at a point, infinite where the objective is not defined."""
        try:
            return self.evaluate(arrays)
        except (np.linalg.LinAlgError, DeclarationError):
            return float("inf"), ()

    def update_hessian(self) -> None:
        """Compute the Hessian at the current point."""
        self.hess = self.second(self.named(self.x))

    def is_minimum(self) -> bool:
        """Is no curvature negative, to working precision?"""
        slack = np.sqrt(self.eps) * self.hessian_scale()
        try:
            return bool(self.hess.factor(slack).definite)
        except np.linalg.LinAlgError:
            return False

    def gradient_norm(self) -> float:
        """The largest entry of the gradient in absolute value."""
        return _largest(self.gradient)

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
                    self.definite = not damping
                    return step, along
            damping = damping * DAMPING_GROWTH or FIRST_DAMPING * self.hessian_scale()
            if not np.isfinite(damping):
                break
        return None

    def hessian_scale(self) -> float:
        """The largest entry of the diagonal in absolute value, 1 if that is of no use."""
        largest = _largest(self.tuple(self.hess.diagonal()))
        return largest if np.isfinite(largest) and largest > 0 else 1.0

    def line_search(self, step: tuple[Array, ...], along: float) -> bool:
        """Halve the step until the objective decreases enough (Armijo); False if it never does."""
        length = 1.0
        for _ in range(MAX_HALVINGS):
            point = [x + length * p for x, p in zip(self.x, step, strict=True)]
            value, gradient = self.evaluate_or_inf(point)
            if value <= self.fun + DECREASE * length * along:
                promised = -along * length * (1 - length / 2)
                gained = self.fun - value
                self.surprised = not promised / UNLIKELY <= gained <= promised * UNLIKELY
                self.x = [np.asarray(p, x.dtype) for p, x in zip(point, self.x, strict=True)]
                self.fun, self.gradient = value, gradient
                return True
            length /= 2 if np.isfinite(value) else 10
        return False

    # --- why a search ends ------------------------------------------------------------------------

    def is_stationary(self, tolerance: float) -> bool:
        """Is the gradient small, beside the objective where that was at the start or is now?"""
        scale = max(1.0, min(abs(self.fun), abs(self.first_fun)))
        return self.gradient_norm() <= tolerance * scale

    def settled(self, step: tuple[Array, ...] | None, tolerance: float, last: bool) -> str:
        """The verdict where the gradient is small; empty while steps are long but get shorter.

        At a minimum the next step is short. Where the objective only falls towards a limit, as
        exp(-x) does, steps are as long as before, or longer.
        """
        length = 0.0 if step is None else _largest(step)
        before, self.last_length = self.last_length, length
        short = length <= np.sqrt(tolerance) * (1 + _largest(self.x))
        if not short and length > SHORTER * before:
            return RECEDING
        if short or last:
            if not np.isfinite(_largest(self.tuple(self.hess.diagonal()))):
                return INDEFINITE if self.falls_nearby() else UNTOLD
            lowest = self.is_minimum() and not (step and self.falls_beyond(step))
            return CONVERGED if lowest else INDEFINITE
        return ""

    def falls_beyond(self, step: tuple[Array, ...]) -> bool:
        """Does the objective fall again behind the end of a short step, as x**3 does behind 0?"""
        points = [[x + k * p for x, p in zip(self.x, step, strict=True)] for k in BEYOND]
        gain = self.fun - min([self.evaluate_or_inf(point)[0] for point in points])
        return gain > 0 and not self.is_noise(gain, step)

    def falls_nearby(self) -> bool:
        """Is the objective less a little to either side, as it may be without a finite Hessian?"""
        near = self.eps**0.5 * (1 + _largest(self.x))
        points = [[x + k * near for x in self.x] for k in (1, -1)]
        return min([self.evaluate_or_inf(point)[0] for point in points]) < self.fun

    def is_rounded(self, step: tuple[Array, ...], along: float) -> bool:
        """Is what a step could gain, or many of them, lost in the rounding of the objective?"""
        small = -along <= self.eps**0.5 * max(1.0, abs(self.fun))
        lost = self.definite and small and self.is_noise(-along, step)
        return lost and not self.falls_beyond(step)

    def is_noise(self, gain: float, step: tuple[Array, ...]) -> bool:
        """Is a difference of the objective's values one of rounding?"""
        least = ROUNDINGS * self.eps * max(1.0, abs(self.fun))
        return gain <= least or gain <= ROUNDINGS * self.noise(step)

    def noise(self, step: tuple[Array, ...]) -> float:
        """The standard deviation of the objective's rounding errors, by a few values so close to
        each other that their high differences have nothing else (Moré and Wild 2011, ECnoise).
        """
        relative = _largest(self.x) / (_largest(step) or 1.0)
        apart = max(self.eps**0.5, 64 * self.eps * relative)
        points = [
            [x + k * apart * p for x, p in zip(self.x, step, strict=True)]
            for k in range(NOISY_VALUES)
        ]
        values = np.array([self.evaluate_or_inf(point)[0] for point in points])
        if not np.isfinite(values).all():
            return 0.0
        # A difference of order k has the variance of a value times the binomial of 2k over k.
        return max([
            float(np.sqrt(np.mean(np.diff(values, k) ** 2) / comb(2 * k, k))) for k in NOISY_ORDERS
        ])  # fmt: skip

    def falls_without_end(self, step: tuple[Array, ...]) -> bool:
        """Does the objective fall along a step that is doubled again and again, ever more?"""
        gains = [0.0]
        for k in range(MAX_DOUBLINGS):
            point = [x + 2.0**k * p for x, p in zip(self.x, step, strict=True)]
            gains.append(self.fun - self.evaluate_or_inf(point)[0])
            if not gains[-1] > gains[-2]:
                return False
            if gains[-1] == np.inf:
                return True
        return gains[-1] > ENDLESS * gains[1]


def _largest(arrays: Iterable[Array]) -> float:
    """The largest entry of some arrays in absolute value."""
    return max([float(np.abs(on_host(a)).max(initial=0)) for a in arrays])


def _not_finite(values: Mapping[str, Any]) -> str:
    """Which of these arrays hold what is no number, as an error goes on."""
    names = []
    for name, value in values.items():
        array = on_host(value)
        held: Any = array.data if is_sparse(array) else np.asarray(array)
        if held.dtype.kind == "f" and not np.isfinite(held).all():
            names.append(name)
    verb = "hold" if len(names) > 1 else "holds"
    return f", as {' and '.join(names)} {verb} nan or inf" if names else ""


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
        Done when no entry of the gradient is larger than this times ``max(1, |f|)``, where f
        is not larger in size than at the start, and the next step would be shorter than its square
        root times ``1 + max |x|``.
    max_steps : int
    callback : callable, optional
        Called after every step with the result so far; StopIteration ends the search.
    **options
        Further options of `compile`, as ``memory_limit``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (arrays by name), ``fun``, ``jac`` (arrays by name), ``hess`` (structured,
        with blocks ``hess["a"]["b"]`` of several variables: its inverse's diagonal gives standard
        errors, by name as well), ``nit``, ``nfev``, ``success``, ``message``. An
        interrupt from the keyboard ends the search with the best point so far. An objective that
        falls without end, or towards a limit that it does not reach, is no success.

    Examples
    --------
    >>> import numpy as np, tcalc as tc
    >>> f = tc.parse("sum(exp(w)) - c'*w", c=("n",), w=("n",))
    >>> found = tc.newton(f, {"w": np.zeros(2)}, data={"c": [1.0, 2.0]})
    >>> found.x["w"].round(6).tolist()
    [0.0, 0.693147]
    """
    if not isinstance(f, Expr):
        raise TypeError(f"newton minimises an expression, not {no_expression(f)}")
    check_options("newton", ("tolerance", "max_steps", "callback"), options)
    if not isinstance(tolerance, int | float | np.number) or not 0 <= tolerance < np.inf:
        raise ValueError(f"newton: tolerance= is a number from 0 on, not {tolerance!r}")
    if not isinstance(max_steps, int | np.integer) or max_steps < 0:
        raise ValueError(f"newton: max_steps= is a whole number from 0 on, not {max_steps!r}")
    begin = by_name(start, "the start")
    done, steps = "", 0
    with Progress("newton", library=True) as progress:
        search = _NewtonSearch(f, begin, data, options)
        if not np.isfinite(search.fun):
            found = _not_finite({**by_name(data or {}, "the data"), **begin})
            raise ValueError(f"newton: the objective is {search.fun} at the start{found}")
        try:
            while not done:
                done = _advance(search, tolerance, steps >= max_steps)
                if not done:
                    steps += 1
                    progress.what = f"newton: step {steps}, f = {search.fun:.6g}"
                    if callback is not None:
                        callback(_result(search, steps, ""))
        except StopIteration:
            done = "stopped by the callback"
        except KeyboardInterrupt:
            done = f"interrupted after {steps} steps"
    return _result(search, steps, done)


def _advance(search: _NewtonSearch, tolerance: float, last: bool) -> str:
    """One Newton step; the reason to stop, empty if there is none."""
    if search.fun == -np.inf:
        return UNBOUNDED
    search.update_hessian()
    found = search.direction()
    if search.is_stationary(tolerance):
        done = search.settled(found[0] if found else None, tolerance, last)
        if done:
            return done
    if found is None:
        downhill = tuple([-g for g in search.gradient])
        return UNBOUNDED if search.falls_without_end(downhill) else LOST
    step, along = found
    if last:
        return UNBOUNDED if search.falls_without_end(step) else NOT_CONVERGED
    if search.surprised and search.is_rounded(step, along):
        return ROUNDED
    if search.line_search(step, along):
        return ""
    return ROUNDED if search.is_rounded(step, along) else STUCK


def _result(search: _NewtonSearch, steps: int, message: str) -> Any:
    from scipy.optimize import OptimizeResult

    return OptimizeResult(
        x=search.named(search.x),
        fun=search.fun,
        jac=search.named(search.gradient),
        hess=search.hess,
        nit=steps,
        nfev=search.evaluations,
        success=message in (CONVERGED, ROUNDED),
        message=message,
    )
