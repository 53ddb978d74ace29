"""
Softmax regression of digits, its Hessian by blocks
===================================================

The Hessian of a softmax regression with p features and c classes has p c rows. Written over rows of
the data it is a sum of few products, and Newton's method solves with it; the formula says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import tcalc as tc

X, W = tc.var("X", (1000, "p")), tc.var("W", ("p", "c"))
labels = tc.var("t", 1000, integer=True)
scores = tc.log_softmax(X @ W, axis=1)
loss = -tc.sum(scores[np.arange(1000), labels]) / 1000 + 0.0005 * tc.sum(W**2)

# %%
# The gradient as a formula of the scores:

tc.grad(tc.sum(tc.logsumexp(X @ W, axis=1)), W)

# %%
# 1000 images train, at a quarter of their size; the others are guessed.

digits = load_digits()
pixels = digits.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16
data = {"X": pixels[:1000], "t": digits.target[:1000]}
found = tc.newton(loss, {"W": np.zeros((16, 10))}, data=data)
guessed = np.argmax(pixels[1000:] @ found.x["W"], axis=1)
right = np.mean(guessed == digits.target[1000:])
print(f"{found.nit} steps, {found.message}; {right:.1%} of the other images are right")

# %%
# The weights of each class as an image.

limit = abs(found.x["W"]).max()
figure, panels = plt.subplots(2, 5, figsize=(7, 3), layout="constrained")
for k, panel in enumerate(panels.flat):
    panel.imshow(found.x["W"][:, k].reshape(4, 4), cmap="RdBu_r", vmin=-limit, vmax=limit)
    panel.set_axis_off()
    panel.set_title(k)
plt.show()
