"""
Deep kernel: a Gaussian process behind a network
================================================

The inputs of the kernel are features that a small network computes; network and kernel are fitted
together by the marginal likelihood, through one Cholesky factor.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import tcalc as tc

x, y = tc.var("x", "n"), tc.var("y", "n")
a, b, C = tc.var("a", "h"), tc.var("b", "h"), tc.var("C", ("h", "d"))
noise = tc.var("t")
features = tc.tanh(x[:, None] * a + b) @ C
distances = tc.sum((features[:, None, :] - features) ** 2, axis=2)
K = tc.exp(-distances / 2) + tc.exp(2 * noise) * tc.eye("n")
L = tc.linalg.cholesky(K)
white = tc.linalg.solve_triangular(L, y, lower=True)
loss = white @ white / 2 + tc.linalg.sumlogdiag(L)

# %%
# A step, which a stationary kernel would blur.

rng = np.random.default_rng(0)
at = np.sort(rng.uniform(-2, 2, 80))
seen = np.sign(at) + 0.1 * rng.normal(size=80)
names = ("a", "b", "C", "t")
start = (np.linspace(1, 4, 6), rng.normal(size=6), 0.5 * rng.normal(size=(6, 2)), -1.0)
s = tc.scipy_functions(loss, names, data={"x": at, "y": seen})
found = minimize(s.fun, s.pack(start), jac=s.jac, method="L-BFGS-B", options={"maxiter": 150})
fitted = s.unpack(found.x)
print(f"loss {s.fun(s.pack(start)):.1f} at the start, {found.fun:.1f} in the end")

# %%
# The kernel that was learned is constant on both sides of the step.

learned = tc.compile(K)(x=at, **fitted)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
ends = (at[0], at[-1], at[-1], at[0])
left.imshow(learned, extent=ends)
left.set_title("covariance", fontsize=10)
right.plot(at, seen, "k.", ms=3)
right.plot(at, (learned - np.exp(2 * fitted["t"]) * np.eye(80)) @ np.linalg.solve(learned, seen))
right.set_title("data and mean", fontsize=10)
plt.show()
