"""Three small functions of GradBench: the `llsq`, `lse` and `det` evals.

`least-squares` fits a polynomial with the coefficients x to the signs of t on [-1, 1]; its powers
are written as such. `log-sum-exp` is written out by the largest entry where a library has no own.
`determinant` is a library's own, where the suite's program expands by minors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import namespaces
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval

# --- a polynomial's least squares -----------------------------------------------------------------


def squares(xp: Any, data: Any) -> Any:
    t, x, powers = data["t"], data["x"], data["powers"]
    return 0.5 * xp.sum((data["s"] - t[:, None] ** powers @ x) ** 2)


def squares_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    m = sizes["m"]
    data = {"t": tc.var("t", "n"), "s": tc.var("s", "n"), "x": tc.var("x", m)}
    return squares(tc, data | {"powers": np.arange(m)})


def polynomial(n: int, m: int = 128) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        t = np.linspace(-1, 1, n)
        return {"x": rng.random(m), "t": t, "s": np.sign(t), "powers": np.arange(m)}

    return Case(f"n={n}, m={m}", {"n": n, "m": m}, load, ("value", "gradient", "both"))


def fitted(data: Data) -> tuple[Any, Array]:
    powers = np.vander(data["t"], len(data["x"]), increasing=True)
    off = powers @ data["x"] - data["s"]
    return 0.5 * off @ off, off @ powers


# --- the logarithm of a sum of exponentials -------------------------------------------------------


def logsumexp(xp: Any, data: Any) -> Any:
    return namespaces.logsumexp(xp, data["x"])


def logsumexp_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return logsumexp(tc, {"x": tc.var("x", "n")})


def exponents(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {"x": rng.random(n)}

    return Case(f"n={n}", {"n": n}, load, ("value", "gradient", "both"))


def summed(data: Data) -> tuple[Any, Array]:
    x = data["x"]
    found = np.exp(x - x.max())
    total = found.sum()
    found /= total
    return np.log(total) + x.max(), found


# --- a determinant --------------------------------------------------------------------------------


def det(xp: Any, data: Any) -> Any:
    return xp.linalg.det(data["A"])


def det_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return det(tc, {"A": tc.var("A", ("n", "n"))})


def matrix(n: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {"A": rng.random((n, n))}

    return Case(f"n={n}", {"n": n}, load, ("value", "gradient", "both"))


def cofactors(data: Data) -> tuple[Any, Array]:
    found = np.linalg.det(data["A"])
    return found, found * np.linalg.inv(data["A"]).T


# --- the problems ---------------------------------------------------------------------------------


def problem(
    name: str,
    wrt: str,
    text: str,
    suite: Eval,
    cases: tuple[tuple[Case, ...], Callable[[int], Case]],
    forms: tuple[Callable[..., Any], ...],
    at_most: float,
    operations: Callable[[Sizes], float],
) -> Problem:
    """Cases "tiny", "small" and those of the suite; by hand value and gradient come together."""
    (tiny, small, *paper), of_size = cases
    objective, expression, both = forms
    return Problem(
        name=name,
        wrt=wrt,
        text=text,
        objective=objective,
        expression=expression,
        cases={"tiny": (tiny,), "small": (small,), "paper": tuple(paper)},
        of_size=of_size,
        hand={
            "value": {"": Form(lambda data: both(data)[0], operations)},
            "gradient": {"": Form(lambda data: both(data)[1], operations)},
            "both": {"": Form(both, operations)},
        },
        suite=suite,
        claims=tuple(
            [
                Claim((quantity, "tcalc c"), (quantity, rival), bound)
                for quantity in ("value", "gradient")
                for rival, bound in (("jax", 1.0), ("gradbench", at_most))
            ]
        ),
    )


def functions(wrt: str) -> dict[str, tuple[str, Callable[[Any, Any], Any]]]:
    return {
        "value": ("primal", lambda found, data: found),
        "gradient": ("gradient", lambda found, data: np.reshape(found, data[wrt].shape)),
    }


SMALL_EVALS = (
    problem(
        "least-squares",
        "x",
        "|s - t.^(0 … m-1) x|^2 / 2",
        Eval("llsq", lambda data: {"x": data["x"].tolist(), "n": len(data["t"])}, functions("x")),
        (
            (polynomial(9, 4), polynomial(256), polynomial(256), polynomial(16_392)),
            polynomial,
        ),
        (squares, squares_expression, fitted),
        1.0,
        lambda s: 5.0 * s["n"] * s["m"],
    ),
    problem(
        "log-sum-exp",
        "x",
        "log(sum(exp(x)))",
        Eval("lse", lambda data: {"x": data["x"].tolist()}, functions("x")),
        (tuple(map(exponents, (5, 2500, 2500, 320_000, 1_280_000))), exponents),
        (logsumexp, logsumexp_expression, summed),
        0.6,
        lambda s: 3.0 * s["n"],
    ),
    problem(
        "determinant",
        "A",
        "det(A)",
        Eval(
            "det",
            lambda data: {"A": data["A"].ravel().tolist(), "ell": len(data["A"])},
            functions("A"),
        ),
        (tuple(map(matrix, (3, 5, 5, 7, 9))), matrix),
        (det, det_expression, cofactors),
        1.0,
        lambda s: 2.0 * s["n"] ** 3,
    ),
)
