"""Operators that routines compute: of rows, of matrices, of stacks of them; or that only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from .c_nests import Call, Line, Node, atom, nest, place
from .c_values import Value, added, by_rows, entry_of, in_memory, pulled, viewed
from .c_writer import Writer
from .language import Code, Operator


class Routine(NamedTuple):
    """A function of `routines/`.

    Attributes
    ----------
    call : str
        Its call: operands are ``{0}``, ``{1}``, results ``{out}`` and ``{out1}`` …, ``{m}`` and
        ``{n}`` the extents of the first operand's core, ``{size}`` their product, ``{space}`` its
        scratch memory, ``{p[0]}`` a parameter; further operands, as many as ``{q}``, are
        ``{directions}``.
    core : tuple of int
        Of each operand.
    space : str or callable
        How many numbers of scratch memory it takes, in ``{m}`` and ``{n}``; a function of q.
    fails : bool
        Does it return a status?
    returns : str
        The type of what it returns, where that is the result.
    """

    call: str
    core: tuple[int, ...] = (2,)
    space: str | Callable[[int], str] = ""
    fails: bool = False
    returns: str = ""


_MATRIX, _SQUARE, _PIVOTED = "{n}, {0}, {out}", "{n} * {n}", "{n} * ({n} + 1)"
ROUTINES: dict[str, Routine] = {
    # rows
    **{
        name: Routine(f"{own}({{size}}, {{0}})", (-1,), returns="real")
        for name, own in (
            ("max", "row_max"), ("min", "row_min"), ("prod", "row_prod"), ("norm2", "norm2"),
            ("logsumexp", "logsumexp"),
        )
    },
    "weighted_logsumexp": Routine(
        "weighted_logsumexp({size}, {0}, {1})", (-1, -1), returns="real"
    ),
    **{
        name: Routine(f"row_{name}({{n}}, {{0}})", (1,), returns="ptrdiff_t")
        for name in ("argmax", "argmin")
    },
    "argsort": Routine("row_order({n}, {0}, {out})", (1,)),
    "cumsum": Routine("row_cumsum({n}, {0}, {out}, {p[0]})", (1,)),
    "gaps": Routine("gaps({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "svd_gaps": Routine("svd_gaps({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "svd_reciprocal": Routine("svd_reciprocal({n}, {0}, {out}, {p[0]})", (1,), fails=True),
    "maketrian": Routine("make_triangle({rows}, {0}, {out}, {p[0]}, {p[1]})", (1,)),
    # matrices
    "extracttrian": Routine("extract_triangle({n}, {0}, {out}, {p[0]}, {p[1]})"),
    "column_signs": Routine("column_signs({m}, {n}, {0}, {out})"),
    "cholesky": Routine(f"cholesky({_MATRIX})", fails=True),
    "cholesky_pullback": Routine(
        "cholesky_pullback({n}, {0}, {1}, {out}, {space})", (2, 2), f"3 * {_SQUARE}", True
    ),
    "tri_inverse": Routine(f"tri_inverse({_MATRIX})", fails=True),
    "inverse_of_factor": Routine(
        f"inverse_of_factor({_MATRIX}, {{space}})", space=_SQUARE, fails=True
    ),
    "inv": Routine(f"inv({_MATRIX}, {{space}})", space=_PIVOTED, fails=True),
    "logdet_of_factor": Routine(f"logdet_of_factor({_MATRIX})"),
    **{
        name: Routine(f"{name}({_MATRIX}, {{space}})", space=_PIVOTED)
        for name in ("det", "det_sign", "logdet")
    },
    **dict.fromkeys(
        ("eigh", "eigh_nan", "eigh_epsilon"),
        Routine("eigh({n}, {0}, {out}, {out1}, {space})", space=_SQUARE, fails=True),
    ),
    "svd": Routine(
        "svd({m}, {n}, {0}, {out}, {out1}, {out2}, {space})",
        space="({m} + {n}) * ({m} + {n})", fails=True,
    ),
    **dict.fromkeys(
        ("pinv", "least_squares_inverse"),
        Routine(
            "pinv({m}, {n}, {0}, {out}, {space})", space="2 * ({m} + {n} + 1) * ({m} + {n})",
            fails=True,
        ),
    ),
    "lq": Routine("lq({m}, {n}, {0}, {out}, {out1})"),
    # functions of matrices, and their derivatives along directions
    **{
        f"{name}_frechet": Routine(
            f"{name}_frechet({{n}}, {{q}}, {{0}}, {{directions}}, {{out}}, {{space}})", space=space,
            fails=True,
        )
        for name, space in (
            ("adj", lambda q: f"{q + 5} * {_SQUARE} + {{n}}"),
            ("expm", lambda q: f"{7 * 2**q} * {_SQUARE} + {{n}}"),
            ("sqrtm", lambda q: f"{2**q + 8} * {_SQUARE}"),
            ("logm", lambda q: f"{3 * 2**q + 8} * {_SQUARE}"),
        )
    },
    "matrix_function": Routine(
        "spectral({n}, {q}, {p[0]}, {1}, {2}, {directions}, {out}, {space})", (2, 1, 2),
        lambda q: f"{q + 2} * {_SQUARE} + {' * '.join(['{n}'] * (q + 1))}", True,
    ),
    "matrix_function_trace": Routine(
        "spectral_trace({n}, {p[0]}, {1})", (2, 1, 2), returns="real"
    ),
}  # fmt: skip

#: How ties are treated, as routines read it.
_TIES = {
    "'raise'": "'r', 0", "'nan'": "'n', 0", "'epsilon'": "'e', 1e-10", "'nuclear'": "'u', 0",
    "'spectral'": "'s', 0", "'norm'": "'o', 0", "True": "1", "False": "0",
}  # fmt: skip


def _parameter(op: Operator, text: str) -> str:
    if op.name in ("gaps", "svd_gaps", "svd_reciprocal") and text not in _TIES:
        return f"'e', {text}"
    return _TIES.get(text, text)


#: What operators of definite matrices make of Cholesky factors.
OF_FACTOR = {"inverse_definite": "inverse_of_factor", "logdet_definite": "logdet_of_factor"}


def _of_factor(language: Writer, op: Operator, a: Value) -> Value | None:
    """A Cholesky factor, or what is made of it: all operators of one matrix share it."""
    a = _contiguous(language, a, 2)
    factor = language.factors.get(a.text)
    if factor is None:
        factor = _called(language, Operator("cholesky", (), 2), [a])
        language.factors[a.text] = factor
    if op.name not in OF_FACTOR:
        return factor
    found = _called(language, op._replace(name=OF_FACTOR[op.name]), [factor])
    single = op.name == "inverse_definite" and len(a.shape) == 2
    return replace(found, factor=factor.text) if single else found


def routine_call(language: Writer, op: Operator, args: Sequence[Value]) -> Value | None:
    """What an operator makes of arrays; None where C has no word for it."""
    if op.name in READ:
        return READ[op.name](language, op, args)
    if op.name in OF_FACTOR or op.name == "cholesky":
        return _of_factor(language, op, args[0])
    return _called(language, op, args) if op.name in ROUTINES else None


def _called(language: Writer, op: Operator, args: Sequence[Value]) -> Value:
    """The results of a routine's call, for every item of a stack."""
    row = ROUTINES[op.name]
    cores = [op.core if c < 0 else c for c in row.core]
    cores += [2] * (len(args) - len(cores))
    args = [_contiguous(language, a, core) for a, core in zip(args, cores, strict=True)]
    stack = args[0].shape[: len(args[0].shape) - cores[0]]
    core = args[0].shape[len(stack) :]
    index = language.index(len(stack))
    shapes = [language.shape(s) for s in op.shapes] or [args[0].shape]
    kind = "ptrdiff_t" if row.returns == "ptrdiff_t" or op.name == "argsort" else "real"
    made, outs = [], []
    for shape in shapes:
        array, out = language.storage(shape or ("1",), kind=kind)
        made.append(array)
        outs.append(replace(out, whole=kind == "real" and bool(shape)))
    fields = {
        "m": core[-2] if len(core) > 1 else "",
        "n": core[-1],
        "rows": shapes[0][-1] if shapes[0] else "",
        "size": " * ".join(map(atom, core)),
        "p": [_parameter(op, p) for p in op.params],
        "q": str(len(args) - len(row.core)),
        "directions": _listed([_pointer(a, index) for a in args[len(row.core) :]]),
        "space": "",
    }
    if row.space:
        space = row.space if isinstance(row.space, str) else row.space(len(args) - len(row.core))
        size = space.format(m=atom(core[-2]), n=atom(core[-1]))
        scratch, _ = language.storage((size,), kind="real")
        made.append(scratch)
        fields["space"] = scratch.name
    for k, out in enumerate(outs):
        fields[f"out{k or ''}"] = _pointer(out, index)
    call = row.call.format(*[_pointer(a, index) for a in args], **fields)
    if row.returns:
        target = outs[0].entry(index if stack else ["0"]).text
        body: list[Node] = [Line(target, "=", call)]
    else:
        body = [Call(call, tuple([a.name for a in made]), "1" if row.fails else "")]
    language.emit(*nest(index, stack, body), made=made)
    found = [_given(language, o, shape, kind) for o, shape in zip(outs, shapes, strict=True)]
    return Value("", parts=tuple(found)) if len(found) > 1 else found[0]


def _listed(pointers: Sequence[str]) -> str:
    """Several arrays as one argument."""
    return f"(const real *const[]){{{', '.join(pointers)}}}" if pointers else "NULL"


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
    """The array, its last axes row by row in memory; a number as an array of one."""
    if v.memory is not None:
        rows = in_memory("", v.shape[len(v.shape) - core :]).memory
        if rows and v.memory.strides[len(v.shape) - core :] == rows.strides:
            return v
    shape = v.shape or ("1",)
    given = pulled(shape, lambda index: entry_of(v, index))
    return language.filled(shape, given, rows=True)


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
    return in_memory(v.memory.name, language.shape(op.shapes[0]))


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
