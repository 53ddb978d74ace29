"""Derivatives that are asked for by name, as each library spells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import nests

Loss = Callable[[Any], Any]


def product(xp: Any, f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """The Hessian of f at x times v, never made."""
    if xp.__name__ == "jax.numpy":
        import jax

        return jax.jvp(jax.grad(f), (x,), (v,))[1]
    if xp.__name__ == "torch":
        return xp.func.jvp(xp.func.grad(f), (x,), (v,))[1]
    from autograd import hessian_vector_product

    return hessian_vector_product(f)(x, v)


def forward(xp: Any, f: Callable[[Any], Any], x: Any) -> Any:
    """The Jacobian of f at x by forward mode, one direction for every entry of x."""
    if xp.__name__ == "jax.numpy":
        import jax

        return jax.jacfwd(f)(x)
    if xp.__name__ == "torch":
        return xp.func.jacfwd(f)(x)
    from autograd import make_jvp
    from autograd.numpy import eye, stack

    rows = [make_jvp(f)(x)(row)[1] for row in eye(x.size).reshape(x.size, *x.shape)]
    columns = stack(rows, axis=-1)
    return columns.reshape(columns.shape[:-1] + x.shape)


def jaxed(loss: Loss, wrt: nests.Nest, quantity: str) -> Callable[[Any, Any], Any]:
    """A quantity of a loss of jax's arrays, for `Problem.batched`."""

    def call(arrays: Mapping[str, Any], rhs: Any) -> Any:
        import jax

        def at(point: nests.Nest) -> Any:
            names, values = nests.leaves(wrt), nests.leaves(point)
            return loss({**arrays, **dict(zip(names, values, strict=True))})

        transform: dict[str, Callable[..., Any]] = {
            "value": lambda f: f,
            "gradient": jax.grad,
            "both": jax.value_and_grad,
            "hessian": jax.hessian,
        }
        return transform[quantity](at)(nests.each(arrays.__getitem__, wrt))

    return call


def spelled(
    losses: Mapping[str, Loss], wrt: nests.Nest, quantities: tuple[str, ...]
) -> dict[str, dict[str, Callable[[Any, Any], Any]]]:
    """`Problem.batched` of several ways to write one loss with jax."""
    return {
        quantity: {name: jaxed(loss, wrt, quantity) for name, loss in losses.items()}
        for quantity in quantities
    }


def multiplied(losses: Mapping[str, Loss], wrt: str) -> dict[str, Callable[[Any, Any], Any]]:
    """Hessian times data["v"], for the ways to write one loss with jax."""

    def bound(loss: Loss) -> Callable[[Any, Any], Any]:
        def call(arrays: Mapping[str, Any], rhs: Any) -> Any:
            import jax.numpy as jnp

            return product(jnp, lambda x: loss({**arrays, wrt: x}), arrays[wrt], arrays["v"])

        return call

    return {name: bound(loss) for name, loss in losses.items()}
