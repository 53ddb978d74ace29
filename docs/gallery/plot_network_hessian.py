"""
The Hessian of a small network
==============================

All second derivatives of a loss by the weights of a network with one hidden layer, as one block
object: exact, with structure, and with eigenvalues to look at.
"""

import matplotlib.pyplot as plt
import numpy as np

import tcalc as tc

X, t = tc.var("X", ("m", "p")), tc.var("t", "m")
A, b, c = tc.var("A", ("p", "h")), tc.var("b", "h"), tc.var("c", "h")
output = tc.tanh(X @ A + b) @ c
loss = tc.mean((output - t) ** 2) / 2

# %%
# The block of the last layer, and that between the layers, as formulas:

tc.hessian(loss, c)

# %%

tc.jacobian(tc.grad(loss, b), c)

# %%
# Gradient descent on a curve, and the eigenvalues of the Hessian before and after.

rng = np.random.default_rng(0)
at = np.linspace(-2, 2, 60)[:, None]
target = np.sin(2 * at[:, 0])
w = {"A": rng.normal(size=(1, 12)), "b": rng.normal(size=12), "c": 0.3 * rng.normal(size=12)}
step = tc.compile(tc.value_and_grad(loss, {"A": A, "b": b, "c": c}), data={"X": at, "t": target})
hessian = tc.compile(tc.hessian(loss, (A, b, c)), structured=True, data={"X": at, "t": target})
before = np.linalg.eigvalsh(hessian(**w).tomatrix())
losses = []
for _ in range(3000):
    value, slopes = step(**w)
    w = {name: w[name] - 0.1 * slopes[name] for name in w}
    losses.append(float(value))
after = np.linalg.eigvalsh(hessian(**w).tomatrix())
print(f"loss {losses[0]:.3f}, then {losses[-1]:.5f}")

# %%
# Most directions are flat; negative curvature goes.

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
left.semilogy(losses)
left.set(xlabel="step", ylabel="loss")
right.plot(before, "o", ms=3, label="before")
right.plot(after, "o", ms=3, label="after")
right.set_yscale("symlog", linthresh=1e-6)
right.set(xlabel="number", ylabel="eigenvalue")
right.legend(frameon=False)
plt.show()
