"""Steps on whole matrices as calls of routines."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...plan.steps import Step
from .along_axes import ALONG_AXES
from .frames import Frame, StridedArray, checked, full, lies, over_all, start_of, strides
from .loopnests import Nest
from .rows import GENERAL, PAIRWISE, ROUTINES, SEVERAL
from .sharing import BATCH
from .statements import COperand, CStatement, aligned


def _product(frame: Frame, step: Step) -> str:
    one, two = [frame.arrays[a] for a in step.args]
    half, short = step.params or ("", False)
    if not (lies(one) and lies(two)) or len(one.shape) > 2 or len(two.shape) > 2:
        return ""
    if len(one.shape) == 1:
        one = StridedArray((1, *one.shape), (one.shape[0] * one.strides[0], *one.strides))
    if len(two.shape) == 1:
        two = StridedArray((*two.shape, 1), (*two.strides, two.shape[0] * two.strides[0]))
    if not (lies(one) and lies(two)):
        return ""
    (m, k), (_, n) = one.shape, two.shape
    a, b = step.args
    given = f"p{a}, {strides(one)}, p{b}, {strides(two)}"
    out = frame.arrays[step.out]
    ld = out.strides[0] if len(out.shape) == 2 and m > 1 else int(n) if n > 1 else _step(out)
    if half:
        number = {"lower": 1, "upper": 2, "symmetric": 3}[half]
        return f"product_half(1, {given}, 0, p{step.out}, {ld}, {n}, {k}, {number}, {int(short)});"
    mirror = frame.plan.owner[a] == frame.plan.owner[b] and one == StridedArray(
        two.shape[::-1], two.strides[::-1]
    )
    adding = step.out in frame.adding
    if mirror and m > 1 and not adding and _same_start(frame, a, b):
        return f"symmetric_square(p{a}, {strides(one)}, p{step.out}, {m}, {k});"
    return f"{frame.product(step)}(1, {given}, {int(adding)}, p{step.out}, {ld}, {m}, {k}, {n});"


def _gram(frame: Frame, step: Step) -> str:
    """X' diag(d) X, by way of memory for the rows of X."""
    x, d, rows, *_ = step.args
    m, n = frame.arrays[x].shape
    if not lies(frame.arrays[x]):
        return ""
    given = f"p{x}, {strides(frame.arrays[x])}, p{d}, {frame.arrays[d].strides[0]}"
    return f"weighted_square({given}, p{rows}, p{step.out}, {m}, {n});"


def _weighted(frame: Frame, step: Step) -> str:
    """The sum over n of w_jn (a_nl + c_jl)."""
    out, (first, second) = frame.arrays[step.out], step.params
    w, a, c = [
        f"p{slot}, {frame.arrays[slot].strides[0]}, {frame.arrays[slot].strides[1]}"
        for slot in step.args
    ]
    (m, n), k = frame.arrays[step.args[0]].shape, out.shape[1]
    if out.strides[1] != 1:
        return ""
    given = f"{w}, {a}, {first!r}, {c}, {second!r}, p{step.out}, {out.strides[0]}"
    return f"weighted({given}, {int(step.out in frame.adding)}, {m}, {n}, {k});"


def _crossed(frame: Frame, step: Step) -> str:
    """The sum over i and j of x_ilj y_jki."""
    (a, b), (one, two) = step.args, [frame.arrays[a] for a in step.args]
    (m, p, n), q = one.shape, two.shape[1]
    given = [
        f"p{a}, {', '.join(map(str, x.strides))}"
        for a, x in zip(step.args, (one, two), strict=True)
    ]
    return f"crossed({', '.join(given)}, p{step.out}, {m}, {p}, {n}, {q}, {int(a == b)});"


def _step(out: StridedArray) -> int:
    """From one entry of a column to the next."""
    return out.strides[0] if out.shape[0] > 1 else 1


def _same_start(frame: Frame, a: int, b: int) -> bool:
    """Are two slots the same memory, one of them perhaps transposed?"""
    made = frame.plan.transposed
    return made.get(a, a) == made.get(b, b)


def _matmul(frame: Frame, step: Step) -> str:
    one, two = [frame.arrays[a] for a in step.args]
    a, b = step.args
    inner = [StridedArray(x.shape[-2:], x.strides[-2:]) for x in (one, two)]
    if not all(map(lies, inner)):
        return ""
    (m, k), (_, n) = inner[0].shape, inner[1].shape
    found = frame.arrays[step.out]
    lead = found.shape[:-2]
    starts = [
        start_of(slot, aligned(lead, x.shape[:-2], x.strides[:-2]))
        for slot, x in ((a, one), (b, two), (step.out, found))
    ]
    ld = found.strides[-2] if m > 1 else int(n)
    given = ", ".join([f"{at}, {strides(x)}" for at, x in zip(starts, inner, strict=False)])
    called = f"{frame.product(step)}(1, {given}, 0, {starts[-1]}, {ld}, {m}, {k}, {n});"
    return over_all(lead) + called


def _over(frame: Frame, step: Step) -> str:
    """Each matrix of a batch in place. For the error of one, those before it must have none."""
    (a,), (op, *_) = step.args, step.params
    if op.name not in ROUTINES:
        return ""
    *lead, n, _ = step.shape
    many, out, copied = prod(lead), f"p{step.out}", frame.copied(a, step)
    if not lead:
        return f"{copied} if ({op.name}({out}, {n})) {{ FAIL; }}"
    if copied:
        # Where one fails all are copied again.
        each = f"for (long k = FIRST; k < LAST[{many}]; k++)"
        return f"{copied} {BATCH}{each} if ({op.name}({out} + k * {n * n}L, {n})) {{ FAIL; }}"
    tried = f"long k = 0; while (k < {many} && !{op.name}({out} + k * {n * n}L, {n})) k++;"
    return f"{{ {tried} if (k < {many}) {{ identities({out}, k, {n}); FAIL; }} }}"


def _kernel(frame: Frame, step: Step) -> str:
    form = _KERNELS.get(step.params[0].name)
    return form(frame, step) if form else _general(frame, step) or _routine(frame, step)


def _pairwise(frame: Frame, step: Step) -> str:
    """A function of all pairs of rows of two matrices."""
    one, two = [frame.arrays[a] for a in step.args]
    out = frame.arrays[step.out]
    if len(out.shape) != 2 or (out.shape[1] > 1 and out.strides[1] != 1):
        return ""
    (m, n), k, (a, b) = out.shape, one.shape[1], step.args
    strides = [f"{r}, {c}" for r, c in (one.strides, two.strides)]
    given = f"p{a}, {strides[0]}, p{b}, {strides[1]}, p{step.out}, {out.strides[0]}L"
    return f"{step.params[0].name}({given}, {m}, {n}, {k});"


def _general(frame: Frame, step: Step) -> str:
    """A row of square matrices, each by itself, from the matrix or the factor that it wants."""
    op, a = step.params[0], step.args[0]
    if op.name not in GENERAL:
        return ""
    if a in frame.held:
        return f"if ({op.name}_lu(p{a}, p{step.out}, {frame.plan.shapes[a][-1]})) {{ FAIL; }}"
    found, out = frame.arrays[a], frame.arrays[step.out]
    lead, (r, c) = found.shape[:-2], found.strides[-2:]
    starts = [
        start_of(slot, aligned(lead, x.shape[: len(lead)], x.strides[: len(lead)]))
        for slot, x in ((a, found), (step.out, out))
    ]
    call = f"{op.name}({starts[0]}, {r}, {c}, {starts[1]}, {found.shape[-1]})"
    return checked(lead, call)


def several(frame: Frame, step: Step) -> str:
    """A row with several results of each matrix, one behind the other."""
    (a,), (op, *params) = step.args, step.params
    if op.name not in SEVERAL:
        return ""
    name, square = SEVERAL[op.name]
    found = frame.arrays[a]
    lead, core = found.shape[:-2], found.shape[-2:]
    starts = [start_of(a, found.strides[:-2])]
    apart = 0
    for shape in op.meaning.shape(tuple(params), found.shape):
        size = prod(shape[len(lead) :])
        start = start_of(step.out, tuple([s * size for s in full(lead)]))
        starts.append(f"{start} + {apart}L")
        apart += prod(shape)
    extents = f"{core[0]}" if square else f"{core[0]}, {core[1]}"
    (r, c) = found.strides[-2:]
    call = f"{name}({starts[0]}, {r}, {c}, {', '.join(starts[1:])}, {extents})"
    return checked(lead, call)


def _routine(frame: Frame, step: Step) -> str:
    """A row whose operands are matrices of one shape, with strides for all."""
    op, found = step.params[0], [frame.arrays[a] for a in step.args]
    shapes = {x.shape for x in found}
    if op.name not in ROUTINES or len(shapes) > 1 or len(found[0].shape) < 2:
        return ""
    *lead, m, n = found[0].shape
    out = frame.arrays[step.out]
    given = [
        f"{start_of(a, x.strides[:-2])}, {x.strides[-2]}, {x.strides[-1]}"
        for a, x in zip(step.args, found, strict=True)
    ]
    given += [start_of(step.out, out.strides[: len(lead)]), f"{m}, {n}"]
    call = f"{op.name}({', '.join(given)})"
    return checked(tuple(lead), call)


def _embed(frame: Frame, step: Step) -> str:
    """Zeros, and the operand along the distinct labels of a pattern."""
    (a,), o = step.args, step.out
    zeros = "" if o in frame.cleared else f"memset(p{o}, 0, {prod(step.shape)} * sizeof(real));"
    return f"{zeros} {_placed(frame, step, a, '{1}')}"


def _embed_add(frame: Frame, step: Step) -> str:
    onto, a = step.args
    return f"{frame.copied(onto, step)} {_placed(frame, step, a, '({0} + {1})')}"


def _placed(frame: Frame, step: Step, a: int, entry: str) -> str:
    (pattern,) = step.params
    extents, strides = [0] * (max(pattern) + 1), [0] * (max(pattern) + 1)
    for label, n, s in zip(pattern, step.shape, full(step.shape), strict=True):
        extents[label] = n
        strides[label] += s
    shape, place = tuple(extents), tuple(strides)
    target = COperand(step.out, place)
    args = (target, frame.operand(a, shape))
    return Nest(shape, [CStatement(target, entry, args)], {step.out}).text()


#: C for rows of kernels, by name.
_KERNELS: dict[str, Callable[[Frame, Step], str]] = {
    **ALONG_AXES,
    **dict.fromkeys(PAIRWISE, _pairwise),
}
#: C for steps, by kind.
CALLS: dict[str, Callable[[Frame, Step], str]] = {
    "dot": _product,
    "matmul": _matmul,
    "over": _over,
    "kernel": _kernel,
    "kernels": several,
    "embed": _embed,
    "embed_add": _embed_add,
    "finish": _general,
    "gram": _gram,
    "weighted": _weighted,
    "crossed": _crossed,
}
