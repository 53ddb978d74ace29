"""
Kalman filter, its likelihood differentiated through the loop
=============================================================

A local level model: a state that wanders, observed with noise. The filter is one loop over time,
a ``tc.fold`` whose state is mean, variance and likelihood so far; its gradient is a loop as well,
and so is its Hessian, from which standard errors come.
"""

import matplotlib.pyplot as plt
import numpy as np

import tcalc as tc

y = tc.var("y", "T")
q, r = tc.var("q"), tc.var("r")  # logarithms of the variances of steps and of noise


def step(state, i):
    mean, variance, loss = state
    ahead = variance + tc.exp(q)
    total = ahead + tc.exp(r)
    error = y[i] - mean
    gain = ahead / total
    return mean + gain * error, (1 - gain) * ahead, loss + (tc.log(total) + error**2 / total) / 2


_, _, loss = tc.fold(step, (0.0, 10.0, 0.0), "T")

# %%
# A river's level, simulated; Newton's method on both variances.

rng = np.random.default_rng(3)
level = np.cumsum(0.3 * rng.normal(size=200))
seen = level + 0.8 * rng.normal(size=200)
found = tc.newton(loss, {"q": -1.0, "r": 0.0}, data={"y": seen})
deviations = {name: float(np.exp(value / 2)) for name, value in found.x.items()}
print({name: round(value, 3) for name, value in deviations.items()}, "made with 0.3 and 0.8")

# %%
# Standard errors of the logarithms, from the inverse of the Hessian.

errors = found.hess.inverse().diagonal()
print({name: round(float(np.sqrt(v)), 3) for name, v in errors.items()})

# %%
# The filtered means, from the same loop with its history.

history = tc.fold(step, (0.0, 10.0, 0.0), "T", history=True)
means, variances, _ = tc.compile(history)(y=seen, **found.x)
means, band = means[-200:], 2 * np.sqrt(variances[-200:])

figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
panel.plot(seen, ".", ms=3, color="0.6", label="observed")
panel.plot(level, "k--", lw=1, label="level")
panel.plot(means, label="filtered")
panel.fill_between(np.arange(200), means - band, means + band, alpha=0.25)
panel.legend(frameon=False, ncols=3)
panel.set(xlabel="time")
plt.show()
