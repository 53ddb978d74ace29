"""Sums over windows that overlap as calls of routines that read them where they lie."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from ...plan.steps import Step
from ...support.records import NamedTuple
from .frames import Frame, StridedArray, full, over_all, start_of
from .sharing import items
from .statements import Count

#: Most weights that the routines hold, the fewest entries of a line that are worth a call, and how
#: many of a single line are one item of a batch.
HELD, SHORT, LINE = 2048, 16, 4096


class _Operands(NamedTuple):
    """What the call is made of: the short axes of windows, their long ones, what is left of the
    other operand and its axes that are summed, and the result's: of both.
    """

    small: StridedArray
    large: StridedArray
    lines: StridedArray
    summed: StridedArray
    outs: StridedArray
    out: StridedArray


def correlate(frame: Frame, step: Step) -> str:
    """The call; empty for arrays that do not lie along lines, and for windows of windows."""
    windows, other = [frame.arrays[a] for a in step.args]
    few, keeps_many = step.params
    small, large = _cut(windows, few)
    kept = len(other.shape) - len((small if keeps_many else large).shape)
    found = _Operands(small, large, *_cut(other, kept), *_cut(frame.arrays[step.out], kept))
    if any(isinstance(n, Count) for a in found for n in a.shape) or not _are_lines(large):
        return ""
    apart, lead = _one_stride(found.lines), _one_stride(found.outs)
    if apart is None or lead is None:
        return ""
    return (_over_few if keeps_many else _over_many)(step, found, apart, lead)


def _over_few(step: Step, a: _Operands, apart: int, lead: int) -> str:
    """Line by line of the result, a long one by parts."""
    left = prod(a.lines.shape)
    if not _are_lines(a.out) or left * prod(a.small.shape) > HELD:
        return ""
    (x, w), (*rows, n) = step.args, a.large.shape
    starts = [start_of(slot, y.strides[:-1]) for slot, y in ((x, a.large), (step.out, a.out))]
    loops, width = over_all(tuple(rows)), str(n)
    if not rows and n > 2 * LINE:
        loops, rest = items(-(-n // LINE)), f"{n} - i0 * {LINE}L"
        starts = [f"{start} + i0 * {LINE}L" for start in starts]
        width = f"({rest} < {LINE} ? {rest} : {LINE})"
    tables = f"{_table(a.small)}, p{w}, {_table(a.summed)}, {len(a.small.shape)}"
    given = f"{starts[0]}, {tables}, {left}, {apart}, {starts[1]}, {lead}, {width}"
    return f"{loops}windows_over_few({given});"


def _over_many(step: Step, a: _Operands, apart: int, lead: int) -> str:
    """Rows of lines at a time, added to the result."""
    left, count = prod(a.lines.shape), prod(a.small.shape)
    span = 1 + sum([(n - 1) * s for n, s in zip(a.summed.shape, a.summed.strides, strict=True)])
    apart_lines = left == 1 or apart >= span
    dense = a.out.strides == full(a.small.shape)
    if count > HELD or not (dense and apart_lines and _are_lines(a.summed)):
        return ""
    (x, y), (*outer, n) = step.args, a.large.shape
    rows, xr, yr = 1, 0, 0
    if outer:
        rows, xr, yr = outer[-1], a.large.strides[-2], a.summed.strides[-2]
    cleared = f"memset(p{step.out} + l * {lead}L, 0, {count} * sizeof(real));"
    loops = [f"for (long i{k} = 0; i{k} < {m}; i{k}++) " for k, m in enumerate(outer[:-1])]
    one, other = start_of(x, a.large.strides[:-2]), start_of(y, a.summed.strides[:-2])
    given = f"{one}, {_table(a.small)}, {len(a.small.shape)}, {xr}, {other}, {yr}, {left}, {apart}"
    call = f"windows_over_many({given}, {rows}, {n}, p{step.out}, {lead});"
    return f"for (long l = 0; l < {left}; l++) {cleared} {''.join(loops)}{call}"


def _cut(a: StridedArray, axes: int) -> tuple[StridedArray, StridedArray]:
    return (
        StridedArray(a.shape[:axes], a.strides[:axes]),
        StridedArray(a.shape[axes:], a.strides[axes:]),
    )


def _are_lines(a: StridedArray) -> bool:
    return a.strides[-1] == 1 and a.shape[-1] >= SHORT


def _one_stride(a: StridedArray) -> int | None:
    """The stride of all axes as one; None where there is none."""
    pairs = [(n, s) for n, s in zip(a.shape, a.strides, strict=True) if n > 1]
    for (_, outer), (n, inner) in pairwise(pairs):
        if outer != n * inner:
            return None
    return pairs[-1][1] if pairs else 0


def _table(a: StridedArray) -> str:
    """Extents and strides in pairs."""
    pairs = [str(v) for pair in zip(a.shape, a.strides, strict=True) for v in pair]
    return f"(const long[]){{{', '.join(pairs)}}}"
