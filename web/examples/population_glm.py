"""Population of neurons: Poisson regressions side by side.

Every neuron i has p weights of its own that make its spike rate exp(x_m' w_i) in time bin m out of
p features that all neurons share. All are fitted at once: the unknowns are the matrix W, one row
for each neuron, and nothing is said about rows being independent.

The formula says it. The delta of the neurons' index is left standing beside a core with one p x p
block for each neuron, so the memory and the time of a Newton step grow with the number of neurons,
not with its square and its cube. The inverse has the same form; its diagonal gives standard errors.

The spike counts are simulated (Poisson, weights drawn from a normal distribution), as no recording
of this size comes with the libraries that the tests install. Of the first neurons, estimates and
standard errors are compared with statsmodels' `GLM`, one neuron at a time.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import tcalc as tc

from .report import BLUE, GREY, ORANGE, Figure, Found, Table, axes, save, size

BINS, FEATURES = 200, 5


def objective() -> tc.Expr:
    X, W, Y = tc.var("X", ("m", "p")), tc.var("W", ("n", "p")), tc.var("Y", ("n", "m"))
    eta = W @ X.T
    return tc.sum(tc.exp(eta) - Y * eta)


def simulated(neurons: int) -> dict[str, Any]:
    """Features of a constant and noise, weights, and the counts they make."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(BINS), rng.normal(size=(BINS, FEATURES - 1))])
    W = 0.3 * rng.normal(size=(neurons, FEATURES))
    return {"X": X, "Y": rng.poisson(np.exp(W @ X.T)).astype(float), "W": W}


def main(
    folder: Path,
    counts: tuple[int, ...] = (250, 500, 1000, 2000, 4000, 8000, 16000),
    compared: int = 20,
) -> Found:
    f = objective()
    result = Found(
        formulas=[
            ("Hessian with respect to W", str(tc.hessian(f, "W"))),
            ("the same, compressed", str(tc.compress(tc.hessian(f, "W")))),
        ]
    )
    held, seconds = [], []
    for count in counts:
        data = simulated(count)
        zeros = np.zeros_like(data["W"])
        found = tc.newton(f, {"W": zeros}, data={"X": data["X"], "Y": data["Y"]})
        held.append(found.hess.nbytes)
        seconds.append(newton_step(f, data))
        result.facts[f"converged {count}"] = bool(found.success)
    errors = np.sqrt(found.hess.inverse().diagonal())
    covered = np.mean(np.abs(found.x["W"] - data["W"]) < 1.96 * errors)
    result.facts |= {
        "bytes": held, "counts": list(counts), "seconds": seconds, "covered": float(covered),
        "difference": against_statsmodels(data, found.x["W"], errors, compared),
    }  # fmt: skip
    result.notes = [
        f"{counts[-1]} neurons, {counts[-1] * FEATURES} unknowns: {found.nit} Newton steps "
        f"from zero, {size(held[-1])} held, dense {size(8 * (counts[-1] * FEATURES) ** 2)}.",
        f"{covered:.1%} of the weights that made the data lie within 1.96 standard errors of their "
        "estimates (95% are expected).",
        f"Largest difference to statsmodels over {compared} neurons, estimates and standard "
        f"errors: {result.facts['difference']:.0e}.",
    ]
    result.figures = [
        growth(folder, counts, held, seconds),
        intervals(folder, data, found.x["W"], errors),
    ]
    result.tables = [
        Table(
            "Standard errors of the first neuron.",
            ["", "true", "estimate", "standard error"],
            [
                [f"feature {j}", f"{data['W'][0, j]:.3f}", f"{found.x['W'][0, j]:.3f}",
                 f"{errors[0, j]:.3f}"]
                for j in range(FEATURES)
            ],
        )
    ]  # fmt: skip
    return result


def newton_step(f: tc.Expr, data: dict[str, Any]) -> float:
    """Seconds of one step at the true weights, the best of three: gradient, Hessian, solve."""
    slope, hessian = tc.compile(tc.grad(f, "W")), tc.compile(tc.hessian(f, "W"), structured=True)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        hessian(data).solve(slope(data))
        times.append(time.perf_counter() - start)
    return min(times[1:])


def against_statsmodels(data: dict[str, Any], W: Any, errors: Any, compared: int) -> float:
    """The largest difference of estimates and standard errors, one regression at a time."""
    import statsmodels.api as sm

    largest = 0.0
    for counts, w, error in list(zip(data["Y"], W, errors, strict=True))[:compared]:
        other = sm.GLM(counts, data["X"], family=sm.families.Poisson()).fit(tol=1e-12)
        largest = max(largest, np.abs(other.params - w).max(), np.abs(other.bse - error).max())
    return float(largest)


def growth(folder: Path, counts: tuple[int, ...], held: list[int], seconds: list[float]) -> Figure:
    figure, (left, right) = axes(1, 2, 8, 3.1)
    n = np.array(counts)
    left.loglog(n, np.array(held) / 2**20, "o-", ms=4, color=BLUE, label="held")
    left.loglog(n, 8 * (n * FEATURES) ** 2 / 2**20, "--", color=GREY, label="dense")
    left.set_ylabel("Hessian, MiB")
    right.loglog(n, np.array(seconds) * 1e3, "o-", ms=4, color=BLUE, label="measured")
    slope = seconds[-1] * 1e3 * n / n[-1]
    right.loglog(n, slope, ":", color=ORANGE, label="in proportion")
    right.set_ylabel("one Newton step, ms")
    for panel in (left, right):
        panel.set_xlabel("neurons")
        panel.legend(frameon=False)
    save(figure, folder, "population-growth.svg")
    return Figure(
        "population-growth.svg",
        f"Bytes and time against the number of neurons ({FEATURES} weights, {BINS} bins each); the "
        "dense Hessian is computed, not measured.",
    )


def intervals(folder: Path, data: dict[str, Any], W: Any, errors: Any) -> Figure:
    """One weight of some neurons with its interval, against the weight that made the data."""
    some = slice(0, 60)
    true, found, error = data["W"][some, 1], W[some, 1], errors[some, 1]
    figure, panel = axes(1, 1, 4.6, 4.2)
    ends = np.array([min(true.min(), found.min()), max(true.max(), found.max())])
    panel.plot(ends, ends, color=GREY, lw=1)
    panel.errorbar(true, found, 1.96 * error, fmt="o", ms=3, lw=0.8, color=BLUE)
    panel.set_xlabel("weight that made the data")
    panel.set_ylabel("estimate, 95% interval")
    save(figure, folder, "population-intervals.svg")
    return Figure(
        "population-intervals.svg",
        "The second weight of 60 neurons: estimates, intervals from `hess.inverse().diagonal()`.",
    )
