"""What programs over array modules carry along: functions where they call them, and self-checks.

Data: a function a text, in NumPy's words, of which languages have rewritings. `array_operators`
says which operator calls which.
"""

from __future__ import annotations

SOURCES = (
    """
def _adj(a, *directions):
    u, s, v = np.linalg.svd(a)
    q, n, eye = len(directions) + 1, a.shape[-1], np.eye(a.shape[-1], dtype=a.dtype)
    left, right = np.swapaxes(u, -1, -2), np.swapaxes(v, -1, -2)
    taken = sum([eye.reshape((1,) * k + (n,) + (1,) * (q - 1 - k) + (n,)) for k in range(q)])
    others = np.where(taken > 0, 1, s.reshape(s.shape[:-1] + (1,) * q + (n,)))
    others = others.prod(axis=-1) * (taken <= 1).all(axis=-1)
    inner = 0
    for order in itertools.permutations(range(q)):
        operands = [others, [..., *range(q)]]
        for k, e in enumerate(directions):
            operands += [left @ e @ right, [..., k, order[k]]]
        sign = math.prod([-1 if i > j else 1 for i, j in itertools.combinations(order, 2)])
        last = [order[-1], q - 1] if order[-1] < q - 1 else [q - 1]
        term = sign * np.einsum(*operands, [..., *last])
        inner = inner + (term if len(last) > 1 else term[..., None] * eye)
    sign = np.linalg.det(u) * np.linalg.det(v)
    return (right @ (sign[..., None, None] * inner) @ left).astype(a.dtype)
""",
    """
def _cholesky_pullback(a, b):
    a = np.tril(a)
    m = np.tril(np.swapaxes(a, -1, -2) @ b)
    m = m + np.swapaxes(np.tril(m, -1), -1, -2)
    x = np.linalg.inv(a)
    return np.swapaxes(x, -1, -2) @ m @ x / 2
""",
    """
def _diagonal(a, word):
    strides = [sum(s for s, k in zip(a.strides, word) if k == label) for label in sorted(set(word))]
    shape = [a.shape[word.index(label)] for label in sorted(set(word))]
    return np.lib.stride_tricks.as_strided(a, shape, strides)
""",
    """
def _divided_differences(g, x):
    eps = np.finfo(x.dtype).eps
    d = g[0](x) * np.ones_like(x)
    error = eps * np.abs(d)
    for j in range(1, x.shape[1]):
        gap = x[:, j:] - x[:, :-j]
        d = (d[:, 1:] - d[:, :-1]) / gap
        error = (error[:, 1:] + error[:, :-1]) / gap + eps * np.abs(d)
        for i in range(d.shape[1]):
            near = ~((error[:, i] <= 9 * eps * np.abs(d[:, i])) & np.isfinite(d[:, i]))
            points = x[near, i : i + j + 1]
            fine, coarse = (_mean_derivative(g, points, j, m) for m in (9, 8))
            doubt = np.abs(fine - coarse) + 2 * eps * np.abs(fine)
            better = (doubt < error[near, i]) & (np.abs(fine - d[near, i]) <= 1e3 * error[near, i])
            better |= ~np.isfinite(d[near, i])
            d[near, i] = np.where(better, fine, d[near, i])
            error[near, i] = np.where(better, doubt, error[near, i])
    return d[:, 0]
""",
    """
def _extracttrian(a, offset, lower):
    n = a.shape[-1]
    places = np.tril_indices(n, offset) if lower else np.triu_indices(n, offset)
    return a[(..., *places)]
""",
    """
def _fold(step, states, slices, fixed, count, backward, dtype):
    rows = [np.empty((count + 1, *np.shape(s)), dtype) for s in states]
    first, last = (count, 0) if backward else (0, count)
    before, after = (1, 0) if backward else (0, 1)
    for row, s in zip(rows, states):
        row[first] = s
    for t in reversed(range(count)) if backward else range(count):
        found = step(*[row[t + before] for row in rows], *[x[t] for x in slices], *fixed)
        for row, s in zip(rows, found):
            row[t + after] = s
    results = [row[last] for row in rows]
    for shift in after, before:
        results += [row[shift:count + shift] for row in rows]
    return results
""",
    """
def _fold_bounded(step, states, slices, fixed, count, backward, made, dtype):
    rows = [np.zeros((count + 1, *np.shape(s)), dtype) for s in states]
    most = count if made is None else min(max(int(made), 0), count)
    before, after = (1, 0) if backward else (0, 1)
    for row, s in zip(rows, states):
        row[most if backward else 0] = s
    done = 0
    while done < most and (made is not None or not rows[-1][done]):
        t = most - 1 - done if backward else done
        found = step(*[row[t + before] for row in rows], *[x[t] for x in slices], *fixed)
        for row, s in zip(rows, found):
            row[t + after] = s
        done += 1
    shown = rows if made is not None else rows[:-1]
    results = [row[most - done if backward else done] for row in shown]
    for shift in after, before:
        results += [row[shift:count + shift] for row in shown]
    return results if made is not None else [*results, np.asarray(done, dtype)[()]]
""",
    """
def _frechet(name, a, *directions):
    if not math.prod(a.shape):
        return a
    n, dtype = a.shape[-1], a.dtype
    for k, e in enumerate(directions):
        e = np.kron(np.eye(2**k, dtype=a.dtype), e)
        a = np.concatenate([
            np.concatenate([a, e], axis=-1), np.concatenate([np.zeros_like(e), a], axis=-1)
        ], axis=-2)
    return _of_matrices(name, a)[..., :n, -n:].astype(dtype)
""",
    """
def _gaps(w, degenerate):
    d, off = w[..., None, :] - w[..., :, None], _off_diagonal(w)
    tied = off & (np.abs(d) <= _rounding(w)[..., None])
    least = 1e-10 if degenerate == "epsilon" else degenerate
    if isinstance(least, float):
        d = np.clip(np.abs(d), least, None) * np.where(d < 0, -1, 1)
    elif degenerate == "nan":
        d = np.where(tied, np.nan, d)
    else:
        d = _refused(tied, d, "equal eigenvalues")
    return np.where(off, 1 / np.where(off, d, 1), 0).astype(w.dtype)
""",
    """
def _inverse_mills(n, x):
    if getattr(n, "ndim", 0):
        found = x + 0 * n
        for order in np.unique(n):
            found = np.where(n == order, _inverse_mills(order, x), found)
        return found
    n = int(n)
    low, depth = ((-8, 8), (-4, 24), (-3, 40))[min(n, 2)]
    high = np.clip(x, low, 60)
    h = [np.exp(-0.5 * high * high) / (special.ndtr(high) * math.sqrt(2 * math.pi))]
    u = [high + h[0]]
    for k in range(n):
        h.append(-sum(math.comb(k, j) * h[j] * u[k - j] for j in range(k + 1)))
        u.append(h[-1] + (k == 0))
    z = -np.clip(x, None, low)
    t = [2 * (depth + 1) / (z + np.sqrt(z * z + 4 * (depth + 1)))]
    for m in range(1, n + 1):
        t.append((t[m - 1] - sum(t[j] * t[m - j] for j in range(1, m))) / (2 * t[0] + z))
    for k in range(depth, 0, -1):
        below = [z + t[0], *[a - 1 for a in t[1:2]], *t[2:]]
        t = [k / below[0]]
        for m in range(1, n + 1):
            t.append(-sum(below[j] * t[m - j] for j in range(1, m + 1)) / below[0])
    tail = t[n] * math.factorial(n) + (z if n == 0 else -(n == 1))
    return np.where(x > low, h[n], tail)
""",
    """
def _lq(a):
    q, r = np.linalg.qr(np.swapaxes(a, -1, -2))
    sign = np.sign(np.diagonal(r, 0, -2, -1))[..., None, :]
    return np.swapaxes(r, -1, -2) * sign, np.swapaxes(q * sign, -1, -2)
""",
    """
def _largest(a, axis):
    a = np.abs(a)
    if not math.prod(a.shape):
        return a.sum(axis=axis, keepdims=True)
    return a.max(axis=axis, keepdims=True)
""",
    """
def _makediag(v, offset):
    n, k = v.shape[-1] + abs(offset), np.arange(v.shape[-1])
    a = np.zeros((*v.shape[:-1], n, n), dtype=v.dtype)
    return _put(a, (k + max(0, -offset), k + max(0, offset)), v)
""",
    """
def _maketrian(v, offset, lower):
    n = int((8 * v.shape[-1] + 1) ** 0.5 - 1) // 2 + abs(offset)
    places = np.tril_indices(n, offset) if lower else np.triu_indices(n, offset)
    return _put(np.zeros((*v.shape[:-1], n, n), dtype=v.dtype), places, v)
""",
    """
def _mean_derivative(g, x, order, nodes):
    u, c = numpy.polynomial.legendre.leggauss(nodes)
    u = numpy.array(list(itertools.product((u + 1) / 2, repeat=order)))
    c = numpy.array(list(itertools.product(c / 2, repeat=order)))
    c = (c * u ** numpy.arange(order - 1, -1, -1)).prod(1)
    at = np.asarray(numpy.cumprod(u, 1).T, dtype=x.dtype)
    at = x[:, :1] + (x[:, 1:] - x[:, :-1]) @ at
    return (g[order](at) * np.ones_like(at)) @ np.asarray(c, dtype=x.dtype)
""",
    """
def _merge(a, core, target):
    return a.reshape(a.shape[:a.ndim - core] + target)
""",
    """
def _norm2(a, axis):
    top = _largest(a, axis)
    scale = np.exp2(np.floor(np.log2(np.where(top > 0, top, 1))))
    scale = np.where(np.isfinite(scale), scale, 1)
    found = np.sqrt(np.square(a / scale).sum(axis=axis))
    return found * scale.reshape(found.shape)
""",
    """
def _norm(a, order, axis):
    top = _largest(a, axis)
    scale = np.where((top > 0) & np.isfinite(top), top, 1)
    found = ((np.abs(a) / scale) ** order).sum(axis=axis) ** (1 / order)
    return found * scale.reshape(found.shape)
""",
    """
def _off_diagonal(w):
    return np.eye(w.shape[-1], dtype=w.dtype) == 0
""",
    """
def _of_matrices(name, a):
    found = [getattr(scipy.linalg, name)(m) for m in a.reshape(-1, *a.shape[-2:])]
    return np.real(np.array(found)).reshape(a.shape)
""",
    """
def _place(whole, a, starts, steps):
    strides = [sum(n * s for n, s in zip(step, whole.strides)) for step in zip(*steps)]
    first = whole[tuple([slice(start, None) for start in starts])]
    places = np.lib.stride_tricks.as_strided(first, a.shape, strides)
    places += a
""",
    """
def _polygamma(n, x):
    found = np.exp(special.gammaln(n + 1)) * special.zeta(n + 1, x)
    return np.where(n == 0, special.digamma(x), np.where(n % 2 == 0, -found, found))
""",
    """
def _put(a, places, v):
    a[(..., *places)] = v
    return a
""",
    """
def _refused(where, a, what):
    if where.any():
        raise np.linalg.LinAlgError(what)
    return a
""",
    """
def _rounding(w):
    size = max(w.shape[-1], 16) * np.finfo(w.dtype).eps
    return size * _largest(w, -1)
""",
    """
def _segment_sum(a, index, n):
    total = np.zeros((n, *a.shape[index.ndim:]), dtype=a.dtype)
    np.add.at(total, index, a)
    return total
""",
    """
def _shares(a, top, axis):
    hit = np.where(a == top, 1, 0).astype(a.dtype)
    return hit / hit.sum(axis=axis, keepdims=True)
""",
    """
def _signs(v):
    top = np.abs(v).argmax(axis=-2)[..., None, :]
    return np.where(np.take_along_axis(v, top, axis=-2)[..., 0, :] < 0, -1, 1).astype(v.dtype)
""",
    """
def _spectral(g, a, w, v, *directions):
    t, k, n = np.swapaxes(v, -1, -2), len(directions), w.shape[-1]
    if not k:
        return (v * (g[0](w) * np.ones_like(w))[..., None, :]) @ t
    e = [t @ (e + np.swapaxes(e, -1, -2)) @ v / 2 for e in directions]
    index = numpy.sort(numpy.indices((n,) * (k + 1)).reshape(k + 1, -1), 0).T
    with np.errstate(all="ignore"):
        table = _divided_differences(g, w[..., np.asarray(index)].reshape(-1, k + 1))
    table = table.reshape(w.shape[:-1] + (n,) * (k + 1))
    words = [[..., i, i + 1] for i in range(k)]
    total = 0
    for order in itertools.permutations(e):
        pairs = [part for pair in zip(order, words) for part in pair]
        total = total + np.einsum(table, [..., *range(k + 1)], *pairs, [..., 0, k])
    return v @ total @ t
""",
    """
def _svd_gaps(s, degenerate):
    row, column, off = s[..., None, :], s[..., :, None], _off_diagonal(s)
    d, total, rounding = row - column, row + column, _rounding(s)[..., None]
    tied, instead = off & (np.abs(d) <= rounding), np.nan
    least = 1e-10 if degenerate == "epsilon" else degenerate
    if degenerate in ("raise", "norm", "spectral"):
        refused = tied[..., :1, :] if degenerate == "spectral" else tied
        d = _refused(refused, d, "equal singular values")
    if isinstance(least, float):
        d, tied = np.clip(np.abs(d), least, None) * np.where(d < 0, -1, 1), off & ~off
    elif degenerate in ("nuclear", "spectral"):
        instead = np.where(total > rounding, 0.5 / np.where(total > rounding, total, 1), 0)
    share = row / np.where(total > 0, total, 1)
    found = np.where(tied, instead, share / np.where(off & ~tied, d, 1))
    return np.where(off, found, 0).astype(s.dtype)
""",
    """
def _svd_reciprocal(s, degenerate):
    least = 1e-10 if degenerate == "epsilon" else degenerate
    if isinstance(least, float):
        return (1 / np.clip(s, least, None)).astype(s.dtype)
    zero, norm = s <= _rounding(s), degenerate in ("nuclear", "spectral")
    found = np.where(zero, 0 if norm else np.nan, 1 / np.where(zero, 1, s)).astype(s.dtype)
    if degenerate != "nan" and not norm:
        return _refused(zero, found, "a singular value of 0")
    return found
""",
    """
def _window(a, starts, steps, shape):
    strides = [sum([n * s for n, s in zip(step, a.strides) if n]) for step in zip(*steps)]
    first = a[tuple([slice(start, None) for start in starts])]
    return np.lib.stride_tricks.as_strided(first, shape, strides)
""",
)

#: What every program makes of its arguments.
FLOATS = '''
def floats(*given):
    """Arrays of one dtype: float32 where all arrays are that, else float64."""
    arrays = [np.asarray(a) for a in given]
    kinds = [b.dtype for a, b in zip(given, arrays) if not isinstance(a, (bool, int, float))]
    single = kinds and all(kind.kind == "f" and kind.itemsize <= 4 for kind in kinds)
    found = [np.asarray(a, np.float32 if single else np.float64) for a in arrays]
    return found if found[1:] else found[0]
'''

#: The end of a self-check: derivatives against central differences, or shapes.
DIFFERENCES = """
    x, step = values["{x}"], 1e-6
    expected = np.empty(found.shape)
    for place in np.ndindex(x.shape):
        unit = np.zeros(x.shape)
        unit[place] = 1.0
        {numbers} = {asarray}(unit)
        direction = {direction}
        above = before(**{{**values, "{x}": x + step * direction}}{extra})
        below = before(**{{**values, "{x}": x - step * direction}}{extra})
        expected[(..., *place)] = {host}(above - below) / (2 * step)
    error = np.abs(found - expected).max(initial=0) / max(1.0, np.abs(expected).max(initial=0))
    print(f"largest difference from central differences: {{error:.1e}}")
    if not error < 1e-6:
        raise SystemExit(1)
"""

SHAPES = """

    def leaves(tree):
        if isinstance(tree, dict):
            tree = tuple(tree.values())
        return [a for part in tree for a in leaves(part)] if isinstance(tree, tuple) else [tree]

    if [np.shape(a) for a in leaves(found)] != shapes:
        raise SystemExit(1)
    print("shapes are as expected")
"""
