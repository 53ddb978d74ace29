"""Powers of one base by exponents in equal steps: each half is the one before times one power."""

from __future__ import annotations

from ...plan.steps import Step
from .frames import Frame
from .sharing import items
from .statements import aligned

FUNCTIONS = """
static inline real _whole_power(real x, long n) {
    real found = 1;
    for (; n; n /= 2, x *= x)
        found = n % 2 ? found * x : found;
    return found;
}

/* x^(low + k apart) for k below n, `step` entries apart. */
static inline void _powers(real x, long low, long apart, real *out, long step, long n) {
    real factor = _whole_power(x, apart);
    out[0] = _whole_power(x, low);
    for (long done = 1; done < n; done *= 2, factor *= factor) {
        long more = done < n - done ? done : n - done;
        #pragma omp simd
        for (long k = 0; k < more; k++)
            out[(done + k) * step] = out[k * step] * factor;
    }
}
"""


def powers(frame: Frame, step: Step) -> str:
    (a,), (first, apart) = step.args, step.params
    *shape, count = frame.shape(step)
    found, (*strides, own) = frame.arrays[a], frame.arrays[step.out].strides
    last = first + apart * (count - 1)
    read = _place(a, aligned(tuple(shape), found.shape, found.strides))
    start = _place(step.out, tuple(strides), (count - 1) * own if apart < 0 else 0)
    given = f"{read}, {min(first, last)}, {abs(apart)}, &{start}, {own if apart > 0 else -own}"
    return f"{items(shape[0], shape[1:]) if shape else ''}_powers({given}, {count});"


def _place(slot: int, strides: tuple[int, ...], first: int = 0) -> str:
    return f"p{slot}[{' + '.join([f'{first}L', *[f'i{k} * {s}L' for k, s in enumerate(strides)]])}]"
