"""
Bayesian linear regression, by Cholesky and by LQ
=================================================

The evidence of a linear model with Gaussian weights, written in two ways: through the Cholesky
factor of X'X + λI, and through the LQ factorisation of the data with the prior's rows behind them,
which never squares the condition of X (Seeger et al. 2018). Both are differentiated twice by the
logarithms of the two precisions.
"""

import matplotlib.pyplot as plt
import numpy as np

import tcalc as tc

X, y = tc.var("X", ("n", "p")), tc.var("y", "n")
a, b = tc.var("a"), tc.var("b")  # logarithms of the precisions of weights and of noise
n, p = tc.sum(tc.ones("n")), tc.sum(tc.ones("p"))

# %%
# By Cholesky: M = exp(a) I + exp(b) X'X.

C = tc.linalg.cholesky(tc.exp(a) * tc.eye("p") + tc.exp(b) * (X.T @ X))
w = tc.linalg.solve_triangular(C, tc.exp(b) * (X.T @ y), lower=True)
constants = -p * a / 2 - n * b / 2
by_cholesky = tc.linalg.sumlogdiag(C) + constants + (tc.exp(b) * (y @ y) - w @ w) / 2

# %%
# By LQ: the rows of [exp(a/2) I, exp(b/2) X'] have the factor L with L L' = M.

stacked = tc.concatenate([tc.exp(a / 2) * tc.eye("p"), tc.exp(b / 2) * X.T], axis=1)
L, Q = tc.linalg.lq(stacked)
v = tc.linalg.solve_triangular(L, tc.exp(b) * (X.T @ y), lower=True)
by_lq = tc.linalg.sumlogdiag(L) + constants + (tc.exp(b) * (y @ y) - v @ v) / 2

# %%
# The two agree, with their Hessians.

rng = np.random.default_rng(0)
design = np.vander(np.linspace(-1, 1, 80), 6)
target = design @ rng.normal(size=6) + 0.1 * rng.normal(size=80)
data = {"X": design, "y": target}
at = {"a": 0.0, "b": 4.0}
for e in (by_cholesky, by_lq):
    step = tc.compile({"f": e, "H": tc.hessian(e, ("a", "b"))}, data=data)(**at)
    print(float(step["f"]), np.array(step["H"]).round(6).tolist())

# %%
# Newton's method finds the precisions; the evidence has one maximum.

found = tc.newton(by_cholesky, {"a": 0.0, "b": 0.0}, data=data)
print({name: round(float(value), 3) for name, value in found.x.items()}, found.nit, "steps")

evidence = tc.compile(by_cholesky, data=data)
grid_a = np.linspace(found.x["a"] - 4, found.x["a"] + 4, 60)
grid_b = np.linspace(found.x["b"] - 2, found.x["b"] + 2, 60)
surface = np.array([[evidence(a=u, b=t) for u in grid_a] for t in grid_b])

figure, panel = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
shown = panel.contourf(grid_a, grid_b, -np.log1p(surface - surface.min()), 20)
panel.plot(found.x["a"], found.x["b"], "k+", ms=12)
panel.set(xlabel="log precision of the weights", ylabel="log precision of the noise")
figure.colorbar(shown, label="-log(1 + what is lost of the evidence)")
plt.show()
