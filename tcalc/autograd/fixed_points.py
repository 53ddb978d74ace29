"""Fixed points of iterations, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..numpy import adapters
from .extend import defvjp, primitive
from .transforms import make_vjp
from .vector_spaces import vspace

Iteration = Callable[[Any], Callable[[Any], Any]]


def _iterate(f: Iteration, a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float) -> Any:
    """The point x = f(a)(x) to which iterations from `x0` tend, up to a distance of `tol`.

    Parameters
    ----------
    f : callable
        ``f(a)(x)`` is the next point; `a` an array or a nest of them.
    distance : callable
        Of two points that follow each other.
    """
    step, last = f(a), x0
    x = step(last)
    while distance(x, last) > tol:
        x, last = step(x), x
    return x


fixed_point = primitive(_iterate, shape=lambda f, a, x0, distance, tol: adapters.shape(x0))


def _pullback(ans: Any, f: Iteration, a: Any, x0: Any, distance: Any, tol: float) -> Any:
    """u (I - df/dx)^-1 df/da: the left factor is a fixed point too, of v -> u + v df/dx."""

    def adjoint(given: Any) -> Callable[[Any], Any]:
        at, x, u = given
        pulled, _ = make_vjp(f(at))(x)
        return lambda v: vspace(u).add(pulled(v), u)

    by_parameters, _ = make_vjp(lambda parameters: f(parameters)(ans))(a)
    return lambda u: by_parameters(
        fixed_point(adjoint, (a, ans, u), vspace(ans).zeros(), distance, tol)
    )


defvjp(fixed_point, None, _pullback, None)
