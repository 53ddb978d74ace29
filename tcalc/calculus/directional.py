"""Products of derivatives with vectors, without the derivatives where the mode allows it.

Directions and results are projected onto the properties of variables, as derivatives are: a product
here is the full derivative times the vector, whatever the vector is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..accumulation.orders import pullback, pushforward
from ..graph import trees
from ..graph.bound_variables import shown
from ..graph.extents import show_shape
from ..graph.nodes import Derivative, Expr, Var
from ..graph.normal import add, einsum
from ..graph.properties import slots_of
from ..ops.arithmetic import as_expr
from ..rules.row_spaces import by_row_spaces, of_factors
from ..support.errors import ShapeError
from .deep_expressions import shortened
from .projection import as_root, keeping_variables, project
from .transforms import (
    check_mode,
    derivative,
    grad,
    require_scalar,
    unprojected,
    variables_named,
)


def jvp(e: Any, x: Any, v: Any, mode: str = "auto") -> Expr:
    """The product of the Jacobian with v: the directional derivative of e along v.

    Parameters
    ----------
    e : Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    v : array_like or Expr, or a nest of them like x
        Of x's shape, or with further axes, the same for all of a nest, for several directions.
    mode : {"auto", "forward", "reverse", "cross-country"}
        "auto" is forward mode, which makes no Jacobian; the others multiply the Jacobian that they
        accumulate.

    Returns
    -------
    Expr
        Of shape ``e.shape`` and then the further axes.

    Raises
    ------
    ShapeError
        Where shapes do not fit. ValueError where `v` is no nest like x, or for an unknown mode.
    """
    return _along_directions("jvp", e, x, v, mode)


def _along_directions(what: str, e: Any, x: Any, v: Any, mode: str) -> Expr:
    check_mode(mode)
    root = as_root(e)
    seeds: dict[Var, Expr] = {}
    for target, direction in _pairs(variables_named(x, root), v, what):
        seed = as_expr(direction)
        if seed.shape[: target.ndim] != target.shape:
            raise ShapeError(
                f"{what}: the direction for {shown(target.name)} has shape "
                f"{show_shape(seed.shape)}, expected {show_shape(target.shape)}"
            )
        seeds[target] = project(seed, slots_of(0, (target,)))
    if len({s.shape[t.ndim :] for t, s in seeds.items()}) > 1:
        raise ShapeError(f"{what}: all directions need the same further axes")
    if mode in ("auto", "forward"):
        found = pushforward(by_row_spaces(shortened([unprojected(root)]))[0], seeds)
    else:
        found = add([_along(derivative(root, t, 1, mode), s, t.ndim) for t, s in seeds.items()])
    value = project(of_factors([found])[0], _slots(root, 0))
    return keeping_variables(value, root.variables.values())


def vjp(e: Any, x: Any, u: Any, mode: str = "auto") -> Any:
    """The product of u with the Jacobian.

    Parameters
    ----------
    e : Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    u : array_like or Expr
        Of e's shape, or with further axes in front for several products.
    mode : {"auto", "forward", "reverse", "cross-country"}
        "auto" is reverse mode, which makes no Jacobian; the others multiply the Jacobian that they
        accumulate.

    Returns
    -------
    Expr, or a nest of them where x is a nest
        Of the further axes and then x's shape, projected onto the properties of x.

    Raises
    ------
    ShapeError
        Where the shape of `u` does not end in that of `e`. ValueError for an unknown mode.
    """
    check_mode(mode)
    root = as_root(e)
    seed = as_expr(u)
    lead = seed.ndim - root.ndim
    if lead < 0 or seed.shape[lead:] != root.shape:
        raise ShapeError(
            f"vjp: u has shape {show_shape(seed.shape)}, expected {show_shape(root.shape)}"
        )
    seed = project(seed, _slots(root, lead))
    targets = variables_named(x, root)
    wrt = trees.leaves(targets)
    if mode in ("auto", "reverse"):
        found = pullback(by_row_spaces(shortened([unprojected(root)]))[0], seed, wrt)
    else:
        found = [_against(derivative(root, t, 1, mode), seed, root.ndim) for t in wrt]
    parts = [
        keeping_variables(project(p, slots_of(lead, (t,))), root.variables.values())
        for p, t in zip(of_factors(found), wrt, strict=True)
    ]
    return trees.rebuild(targets, parts)


def hvp(f: Any, x: Any, v: Any, mode: str = "auto") -> Any:
    """The product of the Hessian of a scalar expression with v.

    Parameters
    ----------
    f : Expr
        Of shape ().
    x : variable, name of a variable, or a nested tuple or dict of these
    v : array_like or Expr, or a nest of them like x
        Directions, as for `jvp`.
    mode : {"auto", "forward", "reverse", "cross-country"}
        Of the gradient and of its product with v. "auto" is forward over reverse mode.

    Returns
    -------
    Expr, or a nest of them where x is a nest
        Of x's shape and then further axes of the directions.
    """
    require_scalar(f, "hvp")
    root = as_root(f)
    targets = variables_named(x, root)
    gradient = grad(root, targets, "reverse" if mode == "auto" else mode)
    return trees.mapped(lambda g: _along_directions("hvp", g, targets, v, mode), gradient)


def _slots(root: Expr, lead: int) -> list[Any]:
    """Where a root is projected, with axes in front of its own."""
    return slots_of(lead + root.of.ndim, root.wrt) if isinstance(root, Derivative) else []


def _along(jacobian: Derivative, seed: Expr, core: int) -> Expr:
    """The Jacobian times a direction of a variable of `core` axes."""
    n = jacobian.ndim - core
    summed, further = range(n, n + core), range(n + core, n + seed.ndim)
    words = [range(jacobian.ndim), [*summed, *further]]
    return einsum([jacobian.inner, seed], words, [*range(n), *further])


def _against(jacobian: Derivative, seed: Expr, core: int) -> Expr:
    """The cotangent of an expression of `core` axes times the Jacobian."""
    lead = seed.ndim - core
    kept = range(seed.ndim, lead + jacobian.ndim)
    words = [range(seed.ndim), [*range(lead, seed.ndim), *kept]]
    return einsum([seed, jacobian.inner], words, [*range(lead), *kept])


def _pairs(targets: Any, values: Any, what: str) -> list[tuple[Var, Any]]:
    """Variables and their directions, of nests that must have the same structure."""
    if isinstance(targets, dict):
        if not isinstance(values, Mapping) or values.keys() != targets.keys():
            names = ", ".join(map(repr, targets))
            raise ValueError(f"{what}: directions for a dict are a dict with the keys {names}")
        return [pair for key in targets for pair in _pairs(targets[key], values[key], what)]
    if isinstance(targets, tuple):
        given = values if isinstance(values, tuple | list) else [values]
        if len(given) != len(targets):
            raise ValueError(f"{what}: {len(given)} directions for {len(targets)} variables")
        pairs = zip(targets, given, strict=True)
        return [pair for t, v in pairs for pair in _pairs(t, v, what)]
    return [(targets, values)]
