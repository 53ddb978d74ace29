"""What NumPy programs carry along for sums over windows that overlap.

No product of matrices reads such views, and `einsum` takes their entries one by one. Windows along
a line are a filter's; of others parts are copied that stay in cache, as plans do.
"""

HELPERS = (
    '''
def _correlate(windows, other, axes):
    """Windows that overlap, of which so many axes are kept, times the last axes of an array."""
    line = axes == 1 and windows.ndim == 2 and abs(windows.strides[0]) == abs(windows.strides[1])
    if not windows.size * other.size:
        summed = range(axes, windows.ndim)
        return np.tensordot(other, windows, [[k - windows.ndim for k in summed], summed])
    if line and windows.strides[0] != windows.strides[1]:
        windows, other = windows[:, ::-1], other[..., ::-1]
    left = other.ndim + axes - windows.ndim
    if line and not left:
        return _filtered(_line(windows), other)
    if line and _alike(windows, other):
        return _lags(windows, other)
    if math.prod(windows.shape[:axes]) >= math.prod(windows.shape[axes:]):
        return _over_few(windows, other, axes)
    if left:
        return _over_many(windows, other, axes)
    return np.einsum(windows, [*range(windows.ndim)], other, [*range(axes, windows.ndim)])
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
    rows = count // size  # of a matrix, times the weights, further down in each column
    matrix, found = np.zeros((2 * size - 1, size), line.dtype), np.empty(count, line.dtype)
    step, (along,) = matrix.strides, line.strides
    np.lib.stride_tricks.as_strided(matrix, (size, size), (sum(step), step[0]))[...] = weights
    whole, shape = found[: rows * size].reshape(rows, size), (rows, size - 1)
    after = np.lib.stride_tricks.as_strided(line[size:], shape, (size * along, along))
    with np.errstate(invalid="ignore"):
        np.dot(line[: rows * size].reshape(rows, size), matrix[:size], out=whole)
        for k in range(0, rows, 32):
            whole[k : k + 32] += after[k : k + 32] @ matrix[size:]
    if not np.isfinite(whole).all():  # what is not finite has met a zero
        return np.correlate(line, weights, "valid")
    found[rows * size :] = np.correlate(line[rows * size :], weights, "valid")
    return found
''',
    '''
def _lags(windows, other):
    """Inner products of windows of lines: the one before, less a product, plus one."""
    (across, count), down = windows.shape, len(other)
    a, b, same = _line(windows), _line(other), _same(windows, other)
    found = np.empty((down, across), a.dtype)
    found[0] = _filtered(a, b[:count])
    found[:, 0] = found[0] if same else _filtered(b, a[:count])
    np.multiply(b[count:, None], a[count:], out=found[1:, 1:])
    for k in range(1, down):
        found[k, 1:] -= b[k - 1] * a[: across - 1]
        found[k, 1:] += found[k - 1, :-1]
    return found
''',
    """
def _same(a, b):
    return a.__array_interface__ == b.__array_interface__
""",
    '''
def _alike(windows, other):
    """Are both windows of lines that so much resemble each other in size that no digits cancel?"""
    if len(set(windows.strides + other.strides)) > 1:
        return False
    return _even(windows) and (_same(windows, other) or _even(other))
''',
    """
def _even(windows):
    line, (across, count) = _line(windows), windows.shape
    change = line[count:] ** 2 - line[: across - 1] ** 2
    energy = line[:count] @ line[:count] + np.append(0, np.cumsum(change))
    return energy.min() >= energy.max() / 4
""",
    '''
def _over_few(windows, other, axes):
    """Products with parts of windows, of whose first axes many entries are kept."""
    shape, left = windows.shape[:axes], other.shape[: other.ndim - windows.ndim + axes]
    matrix = other.reshape(math.prod(left), -1)
    windows = windows.transpose(*range(axes, windows.ndim), *range(axes))
    found = np.empty((len(matrix), math.prod(shape)), windows.dtype)
    step, rest = max(1, 28672 * shape[0] // windows.size), math.prod(shape[1:])
    space = np.empty((*windows.shape[:-axes], min(step, shape[0]), *shape[1:]), windows.dtype)
    all_few = (slice(None),) * (windows.ndim - axes)
    for k in range(0, shape[0], step):
        part = windows[(*all_few, slice(k, k + step))]
        copy = space[(*all_few, slice(part.shape[-axes]))]
        np.copyto(copy, part)
        out = found[:, k * rest : (k + step) * rest]
        np.matmul(matrix, copy.reshape(matrix.shape[1], -1), out=out)
    return found.reshape(*left, *shape)
''',
    '''
def _over_many(windows, other, axes):
    """Products with parts of windows, of whose last axes many entries are summed."""
    shape, left = windows.shape[:axes], other.shape[: other.ndim - windows.ndim + axes]
    found = np.zeros((math.prod(left), math.prod(shape)), windows.dtype)
    same = _same(windows, other)
    step = max(1, 28672 * windows.shape[axes] // windows.size)
    high, width = min(step, windows.shape[axes]), windows.shape[axes + 1 :]
    space, all_few = np.empty((*shape, high, *width), windows.dtype), (slice(None),) * axes
    for k in range(0, windows.shape[axes], step):
        part = windows[(*all_few, slice(k, k + step))]
        copy = space[(*all_few, slice(part.shape[axes]))]
        np.copyto(copy, part)
        part = copy.reshape(found.shape[1], -1)
        rows = part if same else other[(*[slice(None)] * len(left), slice(k, k + step))]
        found += rows.reshape(len(found), -1) @ part.T
    return found.reshape(*left, *shape)
''',
)
