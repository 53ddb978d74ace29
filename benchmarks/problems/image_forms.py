"""Convolutions of images by hand: windows copied tile by tile, or shifts added up.

Rows of an image are one line: a window then is a few stretches of it, and results that would wrap
around are of no use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..problem import Array, Data

TILE = 2048  # places whose windows are copied at a time: they stay in the cache


def with_channels(data: Any) -> tuple[Any, Any, Any]:
    x, w, y = data["x"], data["w"], data["y"]
    return (x[None], w[None, None], y[None]) if x.ndim == 2 else (x, w, y)


def columns(flat: Array, m: int, width: int, start: int, out: Array) -> Array:
    """Windows of rows of images: for every (channel, a, b) the entries from one place on."""
    step = flat.itemsize
    shape = (len(flat), m, m, out.shape[1])
    strides = (flat.strides[0], width * step, step, step)
    out.reshape(shape)[...] = as_strided(flat[:, start:], shape, strides)
    return out


def correlate(flat: Array, w: Array, width: int, out: Array) -> Array:
    """The convolution of rows of images as if they were one line: what wraps around is no use."""
    many, _, m, _ = w.shape
    count = flat.shape[1] - (m - 1) * (width + 1)
    kernel = w.reshape(many, -1)
    out = out[:, :count]
    buffer = np.empty((kernel.shape[1], TILE))
    for start in range(0, count, TILE):
        part = out[:, start : start + TILE]
        if part.shape[1] < TILE:
            buffer = np.empty((kernel.shape[1], part.shape[1]))
        np.matmul(kernel, columns(flat, m, width, start, buffer), out=part)
    return out


def residual(data: Data) -> Array:
    """As many columns as the image has, zeros in those that are no results."""
    x, w, y = with_channels(data)
    many, height, width = y.shape
    whole = np.empty((many, height * x.shape[2]))
    correlate(x.reshape(len(x), -1), w, x.shape[2], whole)
    r = whole.reshape(many, height, -1)
    r[:, :, :width] -= y
    r[:, :, width:] = 0
    return whole


def value(data: Data) -> Any:
    r = residual(data)
    return np.vdot(r, r) / 2


def kernel_gradient(data: Data) -> Array:
    x, w, _ = with_channels(data)
    r, m, width = residual(data), w.shape[2], x.shape[2]
    flat = x.reshape(len(x), -1)
    count = flat.shape[1] - (m - 1) * (width + 1)
    found = np.zeros((len(w), len(x) * m * m))
    for start in range(0, count, TILE):
        part = r[:, start : min(start + TILE, count)]
        found += part @ columns(flat, m, width, start, np.empty((found.shape[1], part.shape[1]))).T
    return found.reshape(data["w"].shape)


def spread(r: Array, w: Array, width: int) -> Array:
    """The transpose of a convolution, of results that fill whole rows."""
    margin = (w.shape[2] - 1) * (width + 1)
    padded = np.zeros((len(r), r.shape[1] + 2 * margin - (w.shape[2] - 1)))
    padded[:, margin : margin + r.shape[1] - (w.shape[2] - 1)] = r[:, : -(w.shape[2] - 1) or None]
    flipped = np.ascontiguousarray(w[:, :, ::-1, ::-1].swapaxes(0, 1))
    return correlate(padded, flipped, width, np.empty((len(flipped), padded.shape[1] - margin)))


def image_gradient(data: Data) -> Array:
    x, w, _ = with_channels(data)
    return spread(residual(data), w, x.shape[2]).reshape(data["x"].shape)


def gram(data: Data) -> Array:
    """The products of all windows with each other, tiles of whole rows at a time."""
    from scipy.linalg.blas import dsyrk

    x, w, y = with_channels(data)
    m, width = w.shape[2], x.shape[2]
    flat = x.reshape(len(x), -1)
    count = flat.shape[1] - (m - 1) * (width + 1)
    found = np.zeros((len(x) * m * m,) * 2, order="F")
    tile = max(1, TILE // width) * width
    for start in range(0, count, tile):
        part = columns(flat, m, width, start, np.zeros((len(found), min(tile, count - start))))
        for a in range(y.shape[2], width):
            part[:, a::width] = 0
        found = dsyrk(1.0, part.T, beta=1.0, c=found, trans=1, overwrite_c=1)
    return np.triu(found) + np.triu(found, 1).T


def core(data: Data) -> Array:
    _, c, m, _ = data["w"].shape
    return gram(data).reshape(c, m, m, c, m, m)


def times(core: Array, data: Data, v: Array) -> Array:
    return np.tensordot(v, core, 3)


def hessian(data: Data) -> Array:
    if data["w"].ndim == 2:
        return gram(data).reshape(data["w"].shape * 2)
    many = np.arange(len(data["w"]))
    dense = np.zeros(data["w"].shape * 2)
    dense[many, :, :, :, many] = core(data)
    return dense


def shifted(x: Array, w: Array) -> Array:
    """One channel: shifts added up, some rows at a time."""
    m, side = len(w), len(x) - len(w) + 1
    width = x.shape[1] - m + 1
    rows = max(1, 4 * TILE // x.shape[1])
    out, term = np.empty((side, width)), np.empty((rows, width))
    for low in range(0, side, rows):
        part = out[low : low + rows]
        product = term[: len(part)]
        for a in range(m):
            for b in range(m):
                view = x[low + a : low + a + len(part), b : b + width]
                np.multiply(view, w[a, b], product if a or b else part)
                if a or b:
                    part += product
    return out


def shifted_residual(data: Data) -> Array:
    r = shifted(data["x"], data["w"])
    return np.subtract(r, data["y"], out=r)


def shifted_value(data: Data) -> Any:
    r = shifted_residual(data)
    return np.vdot(r, r) / 2


def shifted_gradient(data: Data) -> Array:
    """Inner products of the image as one line, shifted, with results as wide as it."""
    x, m = data["x"], len(data["w"])
    r, width = shifted_residual(data), x.shape[1]
    wide = np.zeros((len(r), width))
    wide[:, : r.shape[1]] = r
    count = wide.size - (m - 1)
    line, image = wide.ravel()[:count], x.ravel()
    found = [image[a * width + b :][:count] @ line for a in range(m) for b in range(m)]
    return np.array(found).reshape(m, m)


def shifted_back(r: Array, w: Array) -> Array:
    margin = len(w) - 1
    padded = np.zeros((r.shape[0] + 2 * margin, r.shape[1] + 2 * margin))
    padded[margin : margin + r.shape[0], margin : margin + r.shape[1]] = r
    return shifted(padded, w[::-1, ::-1])


def shifted_image_gradient(data: Data) -> Array:
    return shifted_back(shifted_residual(data), data["w"])


def shifted_product(data: Data) -> Array:
    return shifted_back(shifted(data["v"], data["w"]), data["w"])


def product(data: Data) -> Array:
    """The Hessian in x times v is a convolution, and its transpose."""
    return image_gradient({**data, "x": data["v"], "y": np.zeros_like(data["y"])})
