"""What NumPy programs carry along for sums over windows that overlap.

No product of matrices reads such views, and `einsum` takes their entries one by one. Windows along
a line are a filter's; of others parts are copied that stay in cache, as plans do.
"""

HELPERS = (
    '''
def _correlate(subscripts, windows, other):
    """An einsum of windows that overlap, which is a filter or products of parts of them."""
    words, out = subscripts.split("->")
    word, right = words.split(",")
    summed, own = [k for k in word if k not in out], [k for k in word if k in out]
    left = [k for k in right if k not in summed]
    if not windows.size * other.size or set(own) & set(left) or len(left + summed) < len(right):
        return np.einsum(subscripts, windows, other)
    windows = windows.transpose([word.index(k) for k in own + summed])
    other = other.transpose([right.index(k) for k in left + summed])
    line = len(own) == len(summed) == 1 and abs(windows.strides[0]) == abs(windows.strides[1])
    if line and windows.strides[0] != windows.strides[1]:
        windows, other = windows[:, ::-1], other[..., ::-1]
    if line and not left:
        found = _filtered(_line(windows), other)
    elif line and len(set(other.strides + windows.strides)) == 1 and _even(windows) and _even(other):
        found = _lags(windows, other)
    else:
        found = _by_parts(windows, other, len(own))
    return np.einsum("".join(left + own) + "->" + out, found)
''',
    '''
def _line(windows):
    """The vector of which these are windows, one entry further each."""
    length = sum(windows.shape) - 1
    return np.lib.stride_tricks.as_strided(windows, (length,), windows.strides[:1])
''',
    '''
def _filtered(line, weights):
    """Inner products of weights with all windows of a line."""
    size, count = len(weights), len(line) - len(weights) + 1
    if size > count:  # by parts of the weights, which stay in cache
        found = np.zeros(count, line.dtype)
        for k in range(0, size, 4096):
            part = weights[k : k + 4096]
            found += np.correlate(line[k : k + len(part) + count - 1], part, "valid")
        return found
    if size < 12 or count < 12 * size:
        return np.correlate(line, weights, "valid")
    rows = count // size  # of a matrix, times one that has the weights further down in each column
    matrix = np.zeros((2 * size - 1, size), line.dtype)
    step = matrix.strides
    np.lib.stride_tricks.as_strided(matrix, (size, size), (sum(step), step[0]))[...] = weights
    found, step = np.empty(count, line.dtype), line.strides[0]
    whole = found[: rows * size].reshape(rows, size)
    after = np.lib.stride_tricks.as_strided(line[size:], (rows, size - 1), (size * step, step))
    np.dot(line[: rows * size].reshape(rows, size), matrix[:size], out=whole)
    for k in range(0, rows, 64):
        whole[k : k + 64] += after[k : k + 64] @ matrix[size:]
    if not np.isfinite(whole).all():  # what is not finite has met a zero
        return np.correlate(line, weights, "valid")
    found[rows * size :] = np.correlate(line[rows * size :], weights, "valid")
    return found
''',
    '''
def _lags(windows, other):
    """Inner products of windows of lines: the one before, less a product, plus one."""
    (across, count), down = windows.shape, len(other)
    a, b = _line(windows), _line(other)
    found = np.empty((down, across), a.dtype)
    found[0], found[:, 0] = _filtered(a, b[:count]), _filtered(b, a[:count])
    for k in range(1, down):
        gained = b[count + k - 1] * a[count : count + across - 1]
        found[k, 1:] = found[k - 1, :-1] + (gained - b[k - 1] * a[: across - 1])
    return found
''',
    '''
def _even(windows):
    """Have windows of a line so much alike in size that no digits cancel between them?"""
    line, (across, count) = _line(windows), windows.shape
    change = line[count:] ** 2 - line[: across - 1] ** 2
    energy = line[:count] @ line[:count] + np.append(0, np.cumsum(change))
    return energy.min() >= energy.max() / 4
''',
    '''
def _by_parts(windows, other, axes):
    """Products of matrices with parts of windows: over the last axes, the first ones are kept."""
    shape, left = windows.shape, other.shape[: other.ndim - windows.ndim + axes]
    kept, taken = math.prod(shape[:axes]), math.prod(shape[axes:])
    moved = np.moveaxis(windows, range(axes), range(-axes, 0))
    if kept >= taken:
        found, matrix = np.empty((*left, *shape[:axes]), windows.dtype), other.reshape(-1, taken)
        step = max(1, 4096 * shape[0] // (kept * taken))
        for k in range(0, shape[0], step):
            part = moved[(*[slice(None)] * (windows.ndim - axes), slice(k, k + step))]
            rows = found[(*[slice(None)] * len(left), slice(k, k + step))]
            rows[...] = (matrix @ part.reshape(taken, -1)).reshape(rows.shape)
        return found
    found = np.zeros((math.prod(left), kept), windows.dtype)
    step = max(1, 4096 * shape[axes] // (kept * taken))
    for k in range(0, shape[axes], step):
        part = windows[(*[slice(None)] * axes, slice(k, k + step))].reshape(kept, -1)
        rows = other[(*[slice(None)] * len(left), slice(k, k + step))]
        found += rows.reshape(len(found), -1) @ part.T
    return found.reshape(*left, *shape[:axes])
''',
)
