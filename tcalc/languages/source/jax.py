"""JAX source: pure functions of arrays, with shapes that are known where they are traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ...graph.extents import Shape
from .array_operators import Template
from .arrays import ArrayLanguage
from .language import Code
from .places import View


class Jax(ArrayLanguage):
    """JAX source."""

    name = "JAX"
    library = "jnp"
    imports: ClassVar[Mapping[str, str]] = {
        "itertools": "import itertools",
        "math": "import math",
        "jax": "import jax",
        "jnp": "import jax.numpy as jnp",
        "numpy": "import numpy",
        "scipy.linalg": "import scipy.linalg",
        "scipy.special": "import scipy.special",
        "special": "from jax.scipy import special",
    }
    heads: ClassVar[Mapping[str, tuple[str, str]]] = {"dtype": ("{}.dtype", "jnp.zeros(()).dtype")}
    note = "Pure, for jax.jit; float64 takes jax_enable_x64."
    setting: ClassVar[Sequence[str]] = [
        "import jax",
        "",
        'jax.config.update("jax_enable_x64", True)',
    ]
    views = False
    words: ClassVar[Sequence[tuple[str, str]]] = [
        (r"kind='stable'", "stable=True"),
        (r"np\.lib\.stride_tricks\.", ""),
        (r"    with np\.errstate\(all=\"ignore\"\):\n        ", "    "),
    ]
    own_operators: ClassVar[Mapping[str, Template]] = {
        "erfcinv": "-special.ndtri({0} / 2) * 0.5**0.5",
        "polygamma": "_polygamma({0}, {1})",
        "rgamma": "_reciprocal_gamma({0})",
        "softplus": "jnp.logaddexp({0}, 0)",
        "spherical_jn": "_by_host(scipy.special.spherical_jn, jnp.asarray({0}, int), {1})",
        **{
            name: f"_by_host(scipy.special.{name}, {{operands}})"
            for name in ("iv", "ive", "jv", "kv", "stdtr", "yv")
        },
    }
    own_helpers: ClassVar[Sequence[str]] = (
        '''
def _by_host(function, *arrays):
    """A function of entries that JAX does not have, computed by the host."""
    arrays = [jnp.asarray(a) for a in arrays]
    kind = jnp.result_type(*[a for a in arrays if a.dtype.kind == "f"])
    like = jax.ShapeDtypeStruct(jnp.broadcast_shapes(*[a.shape for a in arrays]), kind)

    def entries(*arrays):
        return numpy.asarray(function(*map(numpy.asarray, arrays)), kind)

    return jax.pure_callback(entries, like, *arrays, vmap_method="broadcast_all")
''',
        """
def _divided_differences(g, x):
    eps = jnp.finfo(x.dtype).eps
    d = g[0](x) * jnp.ones_like(x)
    error = eps * jnp.abs(d)
    for j in range(1, x.shape[1]):
        gap = x[:, j:] - x[:, :-j]
        d = (d[:, 1:] - d[:, :-1]) / gap
        error = (error[:, 1:] + error[:, :-1]) / gap + eps * jnp.abs(d)
        points = [x[:, i : i + j + 1] for i in range(d.shape[1])]
        fine, coarse = (
            jnp.stack([_mean_derivative(g, at, j, m) for at in points], axis=1) for m in (9, 8)
        )
        near = ~((error <= 9 * eps * jnp.abs(d)) & jnp.isfinite(d))
        doubt = jnp.abs(fine - coarse) + 2 * eps * jnp.abs(fine)
        better = (doubt < error) & (jnp.abs(fine - d) <= 1e3 * error) | ~jnp.isfinite(d)
        better = near & better
        d, error = jnp.where(better, fine, d), jnp.where(better, doubt, error)
    return d[:, 0]
""",
        """
def _embed(core, word, shape):
    labels = sorted(set(word))
    axes = [jnp.arange(shape[word.index(k)]) for k in labels]
    at = [axes[k].reshape([-1 if k == other else 1 for other in labels]) for k in word]
    return jnp.zeros(shape, core.dtype).at[tuple(at)].set(core)
""",
        """
def _fold(step, states, slices, fixed, count, backward, dtype):
    def following(before, here):
        after = tuple([jnp.asarray(s, dtype) for s in step(*before, *here, *fixed)])
        return after, (after, before)

    states = tuple([jnp.asarray(s, dtype) for s in states])
    last, (after, before) = jax.lax.scan(
        following, states, tuple(slices), length=count, reverse=backward
    )
    return [*last, *after, *before]
""",
        """
def _fold_bounded(step, states, slices, fixed, count, backward, made, dtype):
    most = count if made is None else jnp.clip(jnp.asarray(made, int), 0, count)
    rows = []
    for s in [jnp.asarray(s, dtype) for s in states]:
        row = jnp.zeros((count + 1, *s.shape), dtype)
        rows.append(row.at[most if backward else 0].set(s))

    def going(carry):
        done, rows = carry
        return (done < most) & (made is not None or rows[-1][done] == 0)

    def following(carry):
        done, rows = carry
        t = most - 1 - done if backward else done
        before, after = (t + 1, t) if backward else (t, t + 1)
        found = step(*[row[before] for row in rows], *[x[t] for x in slices], *fixed)
        return done + 1, [row.at[after].set(s) for row, s in zip(rows, found)]

    done, rows = jax.lax.while_loop(going, following, (0, rows)) if count else (0, rows)
    shown = rows if made is not None else rows[:-1]
    results = [row[most - done if backward else done] for row in shown]
    for shift in (0, 1) if backward else (1, 0):
        results += [row[shift:count + shift] for row in shown]
    return results if made is not None else [*results, jnp.asarray(done, dtype)]
""",
        '''
def _inverse_mills(n, x):
    """Orders that are traced are at most 16: no number beyond."""
    most = 16 if isinstance(n, jax.core.Tracer) else int(numpy.max(n, initial=0))
    x, n = jnp.broadcast_arrays(x, jnp.asarray(n, int))
    low = jnp.where(n == 0, -8, jnp.where(n == 1, -4, -3)).astype(x.dtype)
    depth = (8, 24, 40)[min(most, 2)]
    high = jnp.clip(x, low, 60)
    h = [jnp.exp(-0.5 * high * high) / (special.ndtr(high) * math.sqrt(2 * math.pi))]
    u = [high + h[0]]
    for k in range(most):
        h.append(-sum(math.comb(k, j) * h[j] * u[k - j] for j in range(k + 1)))
        u.append(h[-1] + (k == 0))
    z = -jnp.minimum(x, low)
    t = [2 * (depth + 1) / (z + jnp.sqrt(z * z + 4 * (depth + 1)))]
    for m in range(1, most + 1):
        t.append((t[m - 1] - sum(t[j] * t[m - j] for j in range(1, m))) / (2 * t[0] + z))

    def above(k, t):
        below = [z + t[0], *[a - 1 for a in t[1:2]], *t[2:]]
        t = [(depth - k) / below[0]]
        for m in range(1, most + 1):
            t.append(-sum(below[j] * t[m - j] for j in range(1, m + 1)) / below[0])
        return t

    t = jax.lax.fori_loop(0, depth, above, t, unroll=most < 3)
    tail = [a * math.factorial(k) + (z if k == 0 else -(k == 1)) for k, a in enumerate(t)]
    found = [jnp.where(x > low, *both) for both in zip(h, tail)]
    return jnp.select([n == k for k in range(most + 1)], found, jnp.nan)
''',
        """
def _of_matrices(name, a):
    def matrices(a):
        found = [getattr(scipy.linalg, name)(m) for m in a.reshape(-1, *a.shape[-2:])]
        return numpy.real(numpy.array(found)).reshape(a.shape).astype(a.dtype)

    like = jax.ShapeDtypeStruct(a.shape, a.dtype)
    return jax.pure_callback(matrices, like, a, vmap_method="broadcast_all")
""",
        """
def _place(whole, a, starts, steps):
    return whole.at[_places(starts, steps, a.shape)].add(a)
""",
        """
def _places(starts, steps, shape):
    axes = [
        jnp.arange(n).reshape([-1 if j == k else 1 for j in range(len(shape))])
        for k, n in enumerate(shape)
    ]
    return tuple([
        sum([axis * c for axis, c in zip(axes, step)], jnp.full((1,) * len(shape), start))
        for start, step in zip(starts, steps)
    ])
""",
        """
def _put(a, places, v):
    return a.at[(..., *places)].set(v)
""",
        """
def _reciprocal_gamma(x):
    sign = special.gammasgn(x)
    return jnp.where(jnp.isnan(sign) | (sign == 0), 0, sign * jnp.exp(-special.gammaln(x)))
""",
        '''
def _refused(where, a, what):
    """Nothing can be raised where shapes alone are known: no number instead."""
    return jnp.where(where, jnp.nan, a)
''',
        """
def _segment_sum(a, index, n):
    return jnp.zeros((n, *a.shape[index.ndim:]), a.dtype).at[index].add(a)
""",
        """
def _window(a, starts, steps, shape):
    return a[_places(starts, steps, shape)]
""",
    )

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        if tuple(out) == (0, 0):
            return super().embed(c, out, shape)
        labels = {label: k for k, label in enumerate(dict.fromkeys(out))}
        word = tuple([labels[label] for label in out])
        return Code(f"_embed({c.text}, {word}, {self.shape(shape)})")

    def placed(self, onto: Code, c: Code, view: View) -> str:
        return f"{onto.text} = {super().placed(onto, c, view)}"

    def added(self, onto: Code, key: str, c: Code) -> str:
        return f"{onto.text} = {onto.text}.at[{key}].add({c.text})"
