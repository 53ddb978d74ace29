"""
Sparse Gaussian process by inducing points
==========================================

The bound of Titsias (2009): the covariance of n observations is taken through m inducing points,
so that a likelihood costs m² n. The places of the inducing points are parameters too, and gradients
by them pass through two Cholesky factors.
"""

import matplotlib.pyplot as plt
import numpy as np

import tcalc as tc

x, y, z = tc.var("x", "n"), tc.var("y", "n"), tc.var("z", "m")
length, noise = tc.var("l"), tc.var("t")


def kernel(a, b):
    return tc.exp(-((a[:, None] - b) ** 2) / 2 * tc.exp(-2 * length))


L = tc.linalg.cholesky(kernel(z, z) + 1e-6 * tc.eye("m"))
A = tc.linalg.solve_triangular(L, kernel(z, x), lower=True) * tc.exp(-noise)
B = tc.linalg.cholesky(tc.eye("m") + A @ A.T)
c = tc.linalg.solve_triangular(B, A @ y, lower=True) * tc.exp(-noise)
count = tc.sum(tc.ones("n"))
loss = (
    tc.linalg.sumlogdiag(B) + count * noise + y @ y * tc.exp(-2 * noise) / 2 - c @ c / 2
    + (count * tc.exp(-2 * noise) - tc.sum(A * A)) / 2
)  # fmt: skip

# %%
# 400 observations, 12 inducing points; SciPy minimises over one flat vector.

from scipy.optimize import minimize

rng = np.random.default_rng(1)
at = rng.uniform(0, 10, 400)
seen = np.sin(at) + 0.5 * np.sin(3 * at) + 0.3 * rng.normal(size=400)
start = {"z": np.linspace(1, 9, 12), "l": 0.0, "t": -1.0}
s = tc.scipy_functions(loss, ("z", "l", "t"), data={"x": at, "y": seen})
first = s.pack((start["z"], start["l"], start["t"]))
found = minimize(s.fun, first, jac=s.jac, method="L-BFGS-B", options={"maxiter": 200})
fitted = s.unpack(found.x)
places, ell, t = (fitted[name] for name in "zlt")
print(f"bound {-s.fun(first):.1f} at the start, {-found.fun:.1f} in the end")

# %%
# Predictions from the inducing points alone.


def gram(a, b):
    return np.exp(-((a[:, None] - b) ** 2) / 2 * np.exp(-2 * ell))


grid = np.linspace(0, 10, 300)
inner = gram(places, places) + gram(places, at) @ gram(at, places) * np.exp(-2 * t)
weights = np.linalg.solve(inner + 1e-6 * np.eye(12), gram(places, at) @ seen) * np.exp(-2 * t)

figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
panel.plot(at, seen, ".", ms=3, color="0.6", label="data")
panel.plot(grid, np.sin(grid) + 0.5 * np.sin(3 * grid), "k--", lw=1, label="what made them")
panel.plot(grid, gram(grid, places) @ weights, label="mean")
panel.plot(places, np.full(12, -2.3), "^", color="C3", label="inducing points")
panel.legend(frameon=False, ncols=4, loc="upper center")
panel.set(xlabel="x", ylim=(-2.6, 2.9))
plt.show()
