"""Operators that routines compute: of rows, of matrices, of stacks of them; or that only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .c_nests import Array, Call, Line, Node, atom, nest, place
from .c_values import (
    Strided,
    Value,
    added,
    along,
    by_rows,
    entry_of,
    in_memory,
    pulled,
    viewed,
)
from .c_writer import Writer
from .language import Code, Operator

#: How ties are treated, as routines read it.
_TIES = {
    "'raise'": "'r', 0", "'nan'": "'n', 0", "'epsilon'": "'e', 1e-10", "'nuclear'": "'u', 0",
    "'spectral'": "'s', 0", "'norm'": "'o', 0", "True": "1", "False": "0",
}  # fmt: skip


def _parameter(op: Operator, text: str) -> str:
    if op.name in ("gaps", "svd_gaps", "svd_reciprocal") and text not in _TIES:
        return f"'e', {text}"
    return _TIES.get(text, text)


def routine_call(language: Writer, op: Operator, args: Sequence[Value]) -> Value | None:
    """What an operator makes of arrays; None where C has no word for it."""
    if op.name in READ:
        return READ[op.name](language, op, args)
    return _called(language, op, args) if op.name in language.routines else None


def _called(language: Writer, op: Operator, args: Sequence[Value]) -> Value:
    """The results of a routine's call, for every item of a stack."""
    row = language.routines[op.name]
    first = row.over or 0
    cores = [op.core if c < 0 else c for c in row.core]
    cores += [2] * (len(args) - len(cores))
    if row.over is not None and row.core[first] < 0:
        cores[first] = len(args[first].shape)
    whole = args[first]
    copies = list[Value]()
    if row.over is not None:
        copies.append(language.filled(whole.shape, whole, kind="real", rows=True))
    args = [
        copies[0] if k == row.over else _contiguous(language, a, core)
        for k, (a, core) in enumerate(zip(args, cores, strict=True))
    ]
    stack = args[first].shape[: len(args[first].shape) - cores[first]]
    core = args[0].shape[len(args[0].shape) - cores[0] :]
    index = language.index(len(stack))
    shapes = [language.shape(s) for s in op.shapes] or [args[first].shape]
    kind = "ptrdiff_t" if row.returns == "ptrdiff_t" or op.name == "argsort" else "real"
    made, outs = list[Array](), [*copies]
    for shape in shapes[len(copies) :]:
        array, out = language.storage(shape or ("1",), kind=kind)
        made.append(array)
        outs.append(replace(out, whole=kind == "real" and bool(shape)))
    pointers = [
        _pointer(a, index if len(a.shape) > c else ()) for a, c in zip(args, cores, strict=True)
    ]
    directions = pointers[len(row.core) :]
    fields = {
        "m": core[-2] if len(core) > 1 else "",
        "n": core[-1],
        "rows": shapes[0][-1] if shapes[0] else "",
        "size": " * ".join(map(atom, core)),
        "r": " * ".join(map(atom, args[first].shape[len(stack) + 1 :])) or "1",
        "p": [_parameter(op, p) for p in op.params],
        "q": str(len(args) - len(row.core)),
        "directions": language.listed("const real *", directions) if directions else "NULL",
        "space": "",
    }
    if row.space:
        space = row.space if isinstance(row.space, str) else row.space(len(args) - len(row.core))
        rows = core[-2] if len(core) > 1 else "1"
        size = space.format(m=atom(rows), n=atom(core[-1]))
        scratch, fields["space"] = language.scratch(stack, size, row.scratch, index)
        made.append(scratch)
    for k, out in enumerate(outs):
        fields[f"out{k or ''}"] = _pointer(out, index)
    call = row.call.format(*pointers, **fields)
    if row.returns:
        target = outs[0].entry(index if stack else ["0"]).text
        body: list[Node] = [Line(target, "=", call)]
    else:
        written = [*[v.text for v in copies], *[a.name for a in made]]
        body = [Call(call, tuple(written), "1" if row.fails else "")]
    language.emit(*language.stacked(index, stack, body), made=made)
    found = [_given(language, o, shape, kind) for o, shape in zip(outs, shapes, strict=True)]
    return Value("", parts=tuple(found)) if len(found) > 1 else found[0]


def _given(language: Writer, v: Value, shape: Sequence[str], kind: str) -> Value:
    """A result as this language's numbers; one alone is read from its place."""
    if not shape:
        v = pulled((), partial(_first, v))
    if kind == language.kind:
        return v
    return pulled(v.shape, lambda index: Code(f"({language.kind}){v.entry(index).text}"))


def _first(v: Value, index: Sequence[str]) -> Code:
    """The number in an array of one."""
    return v.entry(["0"])


def _contiguous(language: Writer, v: Value, core: int) -> Value:
    """Numbers in an array, its last axes row by row in memory; a number as an array of one."""
    if v.memory is not None:
        rows = in_memory("", v.shape[len(v.shape) - core :]).memory
        if rows and v.memory.strides[len(v.shape) - core :] == rows.strides:
            return v
    shape = v.shape or ("1",)
    given = pulled(shape, lambda index: entry_of(v, index))
    return language.filled(shape, given, kind="real", rows=True)


def _pointer(v: Value, index: Sequence[str]) -> str:
    """Where the core of an operand or a result begins, at a place of the stack."""
    assert v.memory is not None
    if by_rows(v) and index:
        start = place([*index, *["0"] * (len(v.shape) - len(index))], v.shape)
    else:
        steps = zip(index, v.memory.strides, strict=False)
        start = added(v.memory.start, *[f"{i} * {atom(n)}" for i, n in steps if n != "0"])
    return v.memory.name if start == "0" else f"{v.memory.name} + {start}"


# --- what is only read ----------------------------------------------------------------------------


def _cells(condition: Callable[[str, str], str], half: bool = False) -> Callable[..., Value]:
    """A constant matrix: 1 where a condition on row and column holds; 1/2 on the diagonal."""

    def made(language: Any, op: Operator, args: Sequence[Value]) -> Value:
        shape = tuple(language.shape(op.shapes[0]))

        def entry(index: Sequence[str]) -> Code:
            text = condition(atom(index[0]), atom(index[1]))
            if half:
                return Code(f"({text} ? 1 : {atom(index[0])} == {atom(index[1])} ? 0.5 : 0)")
            return Code(f"({text})", condition=text)

        return pulled(shape, entry)

    return made


def _iota(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    cast = "" if language.integers else "(real)"
    shape = language.shape(op.shapes[0])
    return pulled(shape, lambda index: Code(f"{cast}{atom(index[0])}"))


def _extracted(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    (a,), offset = args, int(op.params[0])

    def index(given: Sequence[str]) -> list[str]:
        *stack, k = given
        return [*stack, added(k, str(max(0, -offset))), added(k, str(max(0, offset)))]

    return viewed(a, language.shape(op.shapes[0]), index)


def _made(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    (a,), offset = args, int(op.params[0])
    found: Value = language.zeros(language.shape(op.shapes[0]))
    *stack, k = index = language.index(len(a.shape))
    target = [*stack, added(k, str(max(0, -offset))), added(k, str(max(0, offset)))]
    line = Line(found.entry(target).text, "=", entry_of(a, index).text)
    language.emit(*nest(index, a.shape, [line]))
    return found


def _merged(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    v = _contiguous(language, args[0], len(args[0].shape))
    assert v.memory is not None
    name, start = v.memory.name, v.memory.start
    whole = in_memory(name, language.shape(op.shapes[0]))
    if start == "0":
        return whole
    assert whole.memory is not None
    found = pulled(
        whole.shape,
        lambda index: Code(
            f"{name}[{added(start, place(along(index, whole.shape), whole.shape))}]"
        ),
    )
    return replace(found, memory=Strided(name, start, whole.memory.strides))


def _transposed(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    (a,) = args
    n = len(a.shape)
    found: Value = language.transpose(a, [*range(n - 2), n - 1, n - 2])
    return found


def _selected(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    (a,) = args
    (shape,) = op.shapes

    def entry(index: Sequence[str]) -> Code:
        text = f"index_mod({entry_of(a, index[:-1]).text}, {shown[-1]}) == {atom(index[-1])}"
        return Code(f"({text})", condition=text)

    shown = language.shape(shape)
    return pulled(shown, entry)


def _distances(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    x, y = args
    n = len(x.shape)
    shape = (*x.shape[:-1], y.shape[-2], x.shape[-1])
    left = pulled(shape, lambda i: x.entry([*i[: n - 1], i[-1]]))
    right = pulled(shape, lambda i: y.entry([*i[: n - 2], *i[n - 1 :]]))
    apart = language.filled(shape, language.add([left, language.negate(right)]))
    word = list(range(n + 1))
    found: Value = language.einsum([apart, apart], [word, word], word[:-1])
    return found


def _eye(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    n = str(int(float(args[0].text)))

    def entry(index: Sequence[str]) -> Code:
        text = f"{atom(index[0])} == {atom(index[1])}"
        return Code(f"({text})", condition=text)

    return pulled((n, n), entry)


def _half(sign: str) -> Callable[..., Value]:
    """A matrix of which one half is kept."""

    def made(language: Any, op: Operator, args: Sequence[Value]) -> Value:
        (a,) = args

        def entry(index: Sequence[str]) -> Code:
            i, j = (atom(k) for k in index[-2:])
            return Code(f"({j} {sign} {i} ? {entry_of(a, index).text} : 0)")

        return pulled(a.shape, entry)

    return made


def _diagonal(language: Any, op: Operator, args: Sequence[Value]) -> Value:
    (a,) = args
    if len(a.shape) == 2:
        return viewed(a, a.shape[:1], lambda index: [index[0], index[0]])

    def entry(index: Sequence[str]) -> Code:
        i, j = map(atom, index)
        return Code(f"({i} == {j} ? {a.entry(index[:1]).text} : 0)")

    return pulled((a.shape[0], a.shape[0]), entry)


READ: dict[str, Callable[..., Value]] = {
    "eye": _eye,
    "tril": _half("<="),
    "triu": _half(">="),
    "diag": _diagonal,
    "iota": _iota,
    "leading_rows": _cells(lambda i, j: f"{i} == {j}"),
    "lower_half": _cells(lambda i, j: f"{j} < {i}", half=True),
    "lower_ones": _cells(lambda i, j: f"{j} <= {i}"),
    "lower_trapezoid": _cells(lambda i, j: f"{j} <= {i}"),
    "upper_ones": _cells(lambda i, j: f"{j} > {i}"),
    "lower_triangle": _half("<="),
    "extractdiag": _extracted,
    "makediag": _made,
    "merge_axes": _merged,
    "matrix_transpose": _transposed,
    "selection": _selected,
    "squared_distances": _distances,
}
