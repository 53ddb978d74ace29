"""
Gaussian process, its kernel fitted by Newton's method
======================================================

The negative logarithm of the marginal likelihood of a Gaussian process goes through a Cholesky
factor, as it should be computed; gradient and Hessian by the kernel's parameters follow, and share
that factor.
"""

import matplotlib.pyplot as plt
import numpy as np

import tcalc as tc

D, y = tc.var("D", ("n", "n"), symmetric=True), tc.var("y", "n")
scale, length, noise = tc.var("s"), tc.var("l"), tc.var("t")
K = tc.exp(2 * scale - D / 2 * tc.exp(-2 * length)) + tc.exp(2 * noise) * tc.eye("n")
L = tc.linalg.cholesky(K)
white = tc.linalg.solve_triangular(L, y, lower=True)
loss = white @ white / 2 + tc.linalg.sumlogdiag(L)

# %%
# The derivative by the length, as a formula:

tc.grad(loss, length)

# %%
# Newton's method on the three parameters needs a few steps.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 60))
values = np.sin(x) + 0.2 * rng.normal(size=x.size)
data = {"D": (x[:, None] - x) ** 2, "y": values}
found = tc.newton(loss, {"s": 0.0, "l": 0.0, "t": -1.0}, data=data)
print(found.message, {name: round(float(value), 3) for name, value in found.x.items()})

# %%
# The prediction is arithmetic of arrays with the parameters that were found.

s, ell, t = (found.x[name] for name in "slt")


def kernel(a, b):
    return np.exp(2 * s - (a[:, None] - b) ** 2 / 2 * np.exp(-2 * ell))


at = np.linspace(-1, 11, 200)
gram = kernel(x, x) + np.exp(2 * t) * np.eye(x.size)
mean = kernel(at, x) @ np.linalg.solve(gram, values)
shrink = np.einsum("ij,ji->i", kernel(at, x), np.linalg.solve(gram, kernel(x, at)))
band = 2 * np.sqrt(np.exp(2 * s) - shrink)

figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
panel.fill_between(at, mean - band, mean + band, alpha=0.25, label="two standard deviations")
panel.plot(at, mean, label="mean")
panel.plot(x, values, "k.", ms=4, label="data")
panel.legend(frameon=False, ncols=3, loc="upper center")
panel.set(xlabel="x", ylabel="f(x)", ylim=(-2, 2.4))
plt.show()
