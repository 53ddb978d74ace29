"""Random effects: a logistic regression with groups.

6366 women answered a magazine's questions about their marriages (statsmodels' fair); the model says
how probable at least one affair is, from what they told of their marriage, and from their group:
everyone with the same education, occupation, and husband's occupation shares an effect u_g,
normally distributed with mean 0 and standard deviation s.

The formula only says `u[group]`. No observation belongs to two groups, so the Hessian with respect
to the effects is diagonal, and its entries are sums over the observations of each group
(`segment_sum`). Solving eliminates the effects by divisions and leaves as many equations as there
are weights b.

How large s should be is decided by the marginal likelihood. Laplace's approximation of it needs the
joint mode and the logarithm of the determinant of the effects' block, which
`hess["u"]["u"].logdet()` gives from its diagonal. One integral for each group is small enough to
check that approximation by quadrature (Gauss and Hermite's, of 40 points).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tcalc as tc

from .report import BLUE, GREY, ORANGE, Figure, Found, Table, axes, save, size

WEIGHTS = ("constant", "rating of the marriage", "age", "years married", "children", "religious")
COLUMNS = ("rate_marriage", "age", "yrs_married", "children", "religious")
GROUPS = ("educ", "occupation", "occupation_husb")


def objective() -> tc.Expr:
    """Minus the joint log density of answers and effects, but for constants and count * log(s)."""
    X, y, b = tc.var("X", ("m", "p")), tc.var("y", ("m",)), tc.var("b", ("p",))
    u, s, group = tc.var("u", ("q",)), tc.var("s"), tc.var("group", ("m",), integer=True)
    eta = X @ b + u[group]
    return tc.sum(tc.softplus(eta) - y * eta) + tc.sum((u / s) ** 2) / 2


def marriages() -> tuple[dict[str, Any], int]:
    """Answers with standardised columns, and how many groups there are."""
    import statsmodels.api as sm

    table = sm.datasets.fair.load_pandas().data
    columns = table[list(COLUMNS)].to_numpy()
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    found, group = np.unique(table[list(GROUPS)].to_numpy(), axis=0, return_inverse=True)
    X = np.column_stack([np.ones(len(table)), columns])
    y = (table["affairs"] > 0).to_numpy(float)
    return {"X": X, "y": y, "group": group.ravel()}, len(found)


def fit(data: dict[str, Any], q: int, s: float) -> Any:
    start = {"b": np.zeros(data["X"].shape[1]), "u": np.zeros(q)}
    return tc.newton(objective(), start, data={**data, "s": s})


def laplace(found: Any, q: int, s: float) -> float:
    """The logarithm of the marginal likelihood, approximately."""
    return float(-found.fun - q * np.log(s) - found.hess["u"]["u"].logdet() / 2)


def quadrature(found: Any, data: dict[str, Any], s: float, nodes: int = 40) -> float:
    """The same by integrating over each group's effect around its mode."""
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    u, width = found.x["u"], 1 / np.sqrt(found.hess["u"]["u"].diagonal())
    effect = u + width * places[:, None]  # (nodes, q)
    eta = (data["X"] @ found.x["b"]) + effect[:, data["group"]]
    density = -(effect**2) / (2 * s**2) - np.log(s)
    for row, terms in zip(density, data["y"] * eta - np.logaddexp(0, eta), strict=True):
        row += np.bincount(data["group"], terms, minlength=len(u))
    scaled = density + places[:, None] ** 2 / 2 + np.log(weights)[:, None]
    most = scaled.max(axis=0)
    inside = np.log(np.exp(scaled - most).sum(axis=0)) + most
    return float((inside + np.log(width) - np.log(2 * np.pi) / 2).sum())


def main(folder: Path, count: int = 25) -> Found:
    import statsmodels.api as sm

    data, q = marriages()
    grid = np.geomspace(0.02, 1.5, count)
    fits = [fit(data, q, s) for s in grid]
    near = np.array([laplace(found, q, s) for found, s in zip(fits, grid, strict=True)])
    exact = np.array([quadrature(found, data, s) for found, s in zip(fits, grid, strict=True)])
    chosen = int(near.argmax())
    best, s = fits[chosen], float(grid[chosen])
    errors = [np.sqrt(part) for part in best.hess.inverse().diagonal().values()]
    plain = sm.Logit(data["y"], data["X"]).fit(disp=False, tol=1e-12)
    without = fit(data, q, 1e-5)
    dense = 8 * best.hess.shape[0] ** 2
    curvature = tc.hessian(objective(), "u")
    result = Found(
        facts={
            "converged": all(found.success for found in fits),
            "s": s, "bytes": best.hess.nbytes, "dense": dense,
            "laplace": float(np.abs(near - exact).max()),
            "without groups": float(np.abs(without.x["b"] - plain.params).max()),
            "errors without": float(
                np.abs(np.sqrt(without.hess.inverse().diagonal()["b"]) - plain.bse).max()
            ),
        },
        formulas=[
            ("Hessian with respect to u, compressed", str(tc.compress(curvature))),
            ("What `hess.explain()` says", best.hess.explain()),
        ],
    )  # fmt: skip
    off = max(result.facts["without groups"], result.facts["errors without"])
    result.notes = [
        f"{len(data['y'])} answers in {q} groups, {best.nit} Newton steps, "
        f"{size(best.hess.nbytes)} held, dense {size(dense)}.",
        f"The marginal likelihood is largest near s = {s:.2f} on this grid; Laplace's "
        f"approximation is off by {abs(near - exact)[chosen]:.3f} there, and by at most "
        f"{result.facts['laplace']:.2f}, where s is largest.",
        "With s near 0 the effects vanish, and estimates and standard errors are those of "
        f"statsmodels' `Logit` to {off:.0e}.",
    ]
    result.tables = [
        Table(
            "Weights of standardised columns, with group effects (tcalc), without (statsmodels).",
            ["", "with groups", "standard error", "without", "standard error"],
            [
                [name, *(f"{value:.4f}" for value in values)]
                for name, *values in zip(
                    WEIGHTS, best.x["b"], errors[0], plain.params, plain.bse, strict=True
                )
            ],
        )
    ]
    result.figures = [
        likelihood(folder, grid, near, exact), effects(folder, best.x["u"], errors[1], data)
    ]  # fmt: skip
    return result


def likelihood(folder: Path, grid: Any, near: Any, exact: Any) -> Figure:
    figure, panel = axes(1, 1, 5.6, 3.1)
    panel.semilogx(grid, near, color=BLUE, label="Laplace")
    panel.semilogx(grid, exact, "o", ms=4, mfc="none", color=ORANGE, label="quadrature")
    panel.set_xlabel("standard deviation s of the effects")
    panel.set_ylabel("log marginal likelihood")
    panel.legend(frameon=False)
    save(figure, folder, "effects-likelihood.svg")
    return Figure(
        "effects-likelihood.svg", "Every point is a fit of all weights and effects at that s."
    )


def effects(folder: Path, u: Any, errors: Any, data: dict[str, Any]) -> Figure:
    order = np.argsort(u)
    answers = np.bincount(data["group"], minlength=len(u))[order]
    figure, panel = axes(1, 1, 8, 3.1)
    places = np.arange(len(u))
    panel.errorbar(places, u[order], 1.96 * errors[order], fmt="none", lw=0.7, color=GREY)
    dots = panel.scatter(places, u[order], c=answers, s=9, cmap="viridis", norm="log", zorder=3)
    figure.colorbar(dots, label="answers in the group")
    panel.axhline(0, color="black", lw=0.6)
    panel.set_xlabel("groups, by their effect")
    panel.set_ylabel("effect on the log-odds")
    save(figure, folder, "effects-groups.svg")
    return Figure(
        "effects-groups.svg",
        "Effects of all groups with 95% intervals at the chosen s; groups of few stay near 0.",
    )
