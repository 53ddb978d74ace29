"""Choices: how people travel, and whom they vote for.

210 travellers between Sydney and Melbourne chose air, train, bus or car (statsmodels' modechoice).
In the conditional logit, the utility of an alternative is linear in its attributes, here cost,
waiting time, and a constant for each alternative but the car, with the household's income for air.
944 voters of 1996 place themselves in one of seven classes, from strong Democrat to strong
Republican (statsmodels' anes96). In the multinomial logit, every class but the first has weights of
its own.

Both objectives are the negative logarithm of a softmax at what was chosen. These Hessians are small
and full: nothing is compared in them, so nothing is compressed, and the same calls apply:
`tc.newton` fits, `hess.inverse().diagonal()` gives the squares of the standard errors. They are set
beside those of statsmodels' own `ConditionalLogit` and `MNLogit`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tcalc as tc

from .report import BLUE, GREY, ORANGE, Figure, Found, Table, axes, save

ATTRIBUTES = ("air", "train", "bus", "generalised cost", "waiting time", "income, air")
WEIGHTS = ("constant", "log population", "left to right", "age", "education", "income")
PARTIES = (
    "weak Democrat", "leaning Democrat", "independent", "leaning Republican", "weak Republican",
    "strong Republican",
)  # fmt: skip


def travel() -> tc.Expr:
    X, b = tc.var("X", ("n", "a", "p")), tc.var("b", ("p",))
    chosen = tc.var("chosen", ("n",), integer=True)
    return -tc.sum(tc.log_softmax(X @ b, axis=-1)[tc.arange("n"), chosen])


def vote() -> tc.Expr:
    """The first class's weights are zero: `others` puts W's columns behind a column of zeros."""
    X, W, others = tc.var("X", ("n", "p")), tc.var("W", ("p", "q")), tc.var("others", ("q", "a"))
    chosen = tc.var("chosen", ("n",), integer=True)
    return -tc.sum(tc.log_softmax(X @ (W @ others), axis=-1)[tc.arange("n"), chosen])


def travel_fit() -> tuple[Any, Any, Any]:
    """tcalc's result, its standard errors, and statsmodels' result."""
    import statsmodels.api as sm
    from statsmodels.discrete.conditional_models import ConditionalLogit

    data = sm.datasets.modechoice.load_pandas().data
    constants = [data["mode"] == mode for mode in (1, 2, 3)]
    income = data["hinc"] * (data["mode"] == 1)
    rows = np.column_stack([*constants, data["gc"], data["ttme"], income]).astype(float)
    chosen = data["choice"].to_numpy()
    arrays = {
        "X": rows.reshape(-1, 4, rows.shape[1]),
        "chosen": chosen.reshape(-1, 4).argmax(axis=1),
    }
    found = tc.newton(travel(), {"b": np.zeros(rows.shape[1])}, data=arrays)
    other = ConditionalLogit(chosen, rows, groups=data["individual"].to_numpy())
    return found, np.sqrt(found.hess.inverse().diagonal()), other.fit(method="newton", disp=False)


def vote_fit() -> tuple[Any, Any, Any]:
    """tcalc's result, its standard errors, and statsmodels' result."""
    import statsmodels.api as sm

    data = sm.datasets.anes96.load_pandas()
    X, chosen = sm.add_constant(data.exog.to_numpy()), data.endog.to_numpy().astype(int)
    arrays = {"X": X, "chosen": chosen, "others": np.eye(7)[1:]}
    found = tc.newton(vote(), {"W": np.zeros((X.shape[1], 6))}, data=arrays)
    other = sm.MNLogit(chosen, X).fit(method="newton", disp=False)
    return found, np.sqrt(found.hess.inverse().diagonal()), other


def main(folder: Path) -> Found:
    first, first_errors, conditional = travel_fit()
    second, second_errors, multinomial = vote_fit()
    b, W = first.x["b"], second.x["W"]
    result = Found(
        facts={
            "converged": bool(first.success and second.success),
            "travel estimates": float(np.abs(b - conditional.params).max()),
            "travel errors": float(np.abs(first_errors - conditional.bse).max()),
            "vote estimates": float(np.abs(W - multinomial.params).max()),
            "vote errors": float(np.abs(second_errors - multinomial.bse).max()),
        },
        formulas=[
            ("The objective of the multinomial logit", str(vote())),
            ("Its gradient with respect to W", str(tc.grad(vote(), "W"))),
        ],
        figures=[effects(folder, W, second_errors)],
    )
    result.notes = [
        f"Conditional logit: {first.nit} Newton steps, log-likelihood {-first.fun:.4f}, "
        f"statsmodels' {conditional.llf:.4f}.",
        f"Multinomial logit: {second.nit} Newton steps, log-likelihood {-second.fun:.4f}, "
        f"statsmodels' {multinomial.llf:.4f}.",
    ]
    header = ["", "tcalc", "standard error", "statsmodels", "standard error"]
    result.tables = [
        Table(
            "Conditional logit of 210 travellers: utility in the units of the data (cost and time "
            "of the whole trip in one number, minutes at the terminal, thousands of dollars).",
            header,
            rows(ATTRIBUTES, b, first_errors, conditional.params, conditional.bse),
        ),
        Table(
            "Multinomial logit of 944 voters: the weights of the strong Republicans, against the "
            "strong Democrats.",
            header,
            rows(
                WEIGHTS, W[:, -1], second_errors[:, -1],
                multinomial.params[:, -1], multinomial.bse[:, -1],
            ),
        ),
    ]  # fmt: skip
    return result


def rows(names: tuple[str, ...], *columns: Any) -> list[list[str]]:
    return [
        [name, *(f"{value:.5f}" for value in values)]
        for name, *values in zip(names, *columns, strict=True)
    ]


def effects(folder: Path, W: Any, errors: Any) -> Figure:
    """Two weights across the parties with their intervals."""
    figure, panels = axes(1, 2, 8, 3.1, sharey=True)
    places = np.arange(len(PARTIES))[::-1]
    for panel, row, color in zip(panels, (2, 5), (BLUE, ORANGE), strict=True):
        panel.axvline(0, color=GREY, lw=1)
        panel.errorbar(
            W[row], places, xerr=1.96 * errors[row], fmt="o", ms=4, color=color, capsize=2
        )
        panel.set_title(WEIGHTS[row])
        panel.set_xlabel("weight per step of the scale")
    panels[0].set_yticks(places, PARTIES)
    save(figure, folder, "choice-effects.svg")
    return Figure(
        "choice-effects.svg",
        "Multinomial logit: what a step to the right on the voter's own scale (left) and a step of "
        "income (right) add to the log-odds against strong Democrat, with 95% intervals.",
    )
