"""The steps of random programs: one row each, how it is drawn and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests import jets
from tests.jets import Jet

if TYPE_CHECKING:
    from tests.random_programs import Generator

Extent = int | str
Shape = tuple[Extent, ...]

#: Elementwise functions that are not one function of tcalc and jax.
COMPOSED: dict[str, Callable[[Any, Any], Any]] = {
    "cube": lambda xp, a: a**3,
    "halved": lambda xp, a: a / 2,
    "log1psq": lambda xp, a: xp.log(1 + a * a),
    "rootsq": lambda xp, a: xp.sqrt(a * a + 1),
}
UNARY = sorted(set(jets.ELEMENTWISE) - {"exp", "log", "reciprocal"})
TWO = ["add", "subtract", "multiply", "ratio"]
LETTERS = "ijklabxyzn"


class Context(NamedTuple):
    """What an interpreter knows beside the operands: `integers` are variables or data by name."""

    xp: Any
    extent: Callable[[Extent], Extent]
    total: int = 0
    integers: Mapping[str, Any] = {}


class Operation(NamedTuple):
    """One kind of step.

    Attributes
    ----------
    draw : callable
        Emits one such step, or none where nothing fits.
    build : callable
        ``build(context, args, **more)`` in an array library.
    naive : callable
        ``naive(context, args, **more)`` on jets; extents are numbers there.
    often : int
        How many chances it has.
    """

    draw: Callable[[Generator], None]
    build: Callable[..., Any]
    naive: Callable[..., Jet]
    often: int = 1


# --- entries --------------------------------------------------------------------------------------


def _unary(g: Generator) -> None:
    k = g.value()
    g.emit("unary", [k], g.shapes[k], name=g.pick(UNARY))


def _build_unary(c: Context, args: Sequence[Any], name: str) -> Any:
    return COMPOSED[name](c.xp, *args) if name in COMPOSED else getattr(c.xp, name)(*args)


def _two(xp: Any, name: str, a: Any, b: Any) -> Any:
    return a / (1 + b * b) if name == "ratio" else getattr(xp, name)(a, b)


def _two_jets(name: str, a: Jet, b: Jet) -> Jet:
    a, b = jets.aligned([a, b])
    if name == "ratio":
        one = jets.constant(np.ones(b.v.shape), b.g.shape[-1])
        return jets.times(a, jets.ELEMENTWISE["reciprocal"](jets.plus(one, jets.times(b, b))))
    if name == "multiply":
        return jets.times(a, b)
    return jets.plus(a, b.map(np.negative) if name == "subtract" else b)


def _binary(g: Generator) -> None:
    a = g.value()
    b = g.pick([k for k, s in enumerate(g.shapes) if s in (g.shapes[a], ())])
    places = [a, b] if g.chance(0.5) else [b, a]
    g.emit("binary", places, g.shapes[a], name=g.pick(TWO))


def _outer(g: Generator) -> None:
    a, b = g.value(), g.value()
    if len(g.shapes[a]) == 1 and len(g.shapes[b]) == 1:
        g.emit("outer", [a, b], g.shapes[a] + g.shapes[b], name=g.pick(TWO))


def _branch(g: Generator) -> None:
    a, c = g.value(), g.value()
    same = [k for k, s in enumerate(g.shapes) if s == g.shapes[a]]
    condition = c if g.shapes[c] in (g.shapes[a], ()) else g.pick(same)
    g.emit("branch", [condition, a, g.pick(same)], g.shapes[a])


def _branch_jets(c: Context, args: Sequence[Jet]) -> Jet:
    condition, a, b = jets.aligned(args)
    return jets.choose(condition.v > 0.1, a, b)


# --- products and reductions ----------------------------------------------------------------------


def _einsum(g: Generator) -> None:
    count = int(g.rng.choice([0, 1, 2, 3], p=[0.05, 0.3, 0.45, 0.2]))
    places = [g.value() for _ in range(count)]
    letters = [str(c) for c in g.rng.permutation(list(LETTERS))]
    extents: dict[str, Extent] = {}
    words = []
    for k in places:
        word = ""
        for extent in g.shapes[k]:
            fitting = [c for c, e in extents.items() if e == extent]
            fresh = not fitting or g.chance(0.35)
            letter = letters.pop() if fresh and letters else g.pick(fitting) if fitting else ""
            if not letter:
                return
            extents[letter] = extent
            word += letter
        words.append(word)
    sizes: dict[str, Extent] = {}
    out = [c for c in extents if g.chance(0.5)]
    if letters and g.chance(0.25):
        sizes[letters.pop()] = g.pick(g.kinds)
        out += list(sizes)
    if out and g.chance(0.2):
        out.append(g.pick(out))
    extents.update(sizes)
    out = [str(c) for c in g.rng.permutation(out)][:4]
    if len(extents) <= 5:
        sizes = {c: e for c, e in sizes.items() if c in out}
        spec = ",".join(words) + "->" + "".join(out)
        g.emit("einsum", places, [extents[c] for c in out], spec=spec, sizes=sizes)


def _build_einsum(c: Context, args: Sequence[Any], spec: str, sizes: Any) -> Any:
    return c.xp.einsum(spec, *args, sizes={k: c.extent(e) for k, e in sizes.items()})


def _einsum_jets(c: Context, args: Sequence[Jet], spec: str, sizes: Any) -> Jet:
    numbers = {k: c.extent(e) for k, e in sizes.items()}
    return jets.einsum(spec, *args, sizes=numbers, total=c.total)  # type: ignore[arg-type]


def _reduction(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    if not shape:
        return
    axis = g.below(len(shape))
    names = ["sum", "cumsum"]
    if g.size(shape[axis]):
        names += ["sum", "mean", "logsumexp", "prod", "max", "min"]
    name = g.pick(names)
    rest = shape if name == "cumsum" else shape[:axis] + shape[axis + 1 :]
    g.emit("reduction", [k], rest, name=name, axis=axis)


def _matrix(g: Generator) -> None:
    matrices = [k for k, s in enumerate(g.shapes) if len(s) == 2]
    if matrices:
        k = g.pick(matrices)
        n = g.shapes[k][0]
        name = g.pick(["inv", "logdet"])
        g.emit("matrix", [k], (n, n) if name == "inv" else (), name=name, extent=n)


def _build_matrix(c: Context, args: Sequence[Any], name: str, extent: Extent) -> Any:
    return getattr(c.xp, name)(args[0] @ args[0].T + c.xp.eye(c.extent(extent)))


def _matrix_jets(c: Context, args: Sequence[Jet], name: str, extent: Extent) -> Jet:
    gram = jets.einsum("ij,kj->ik", args[0], args[0], sizes={}, total=c.total)
    matrix = jets.plus(gram, jets.constant(np.eye(int(c.extent(extent))), c.total))
    found = jets.inverse(matrix) if name == "inv" else jets.logdet(matrix)
    found.condition = float(np.linalg.cond(matrix.v)) if matrix.v.size else 1.0
    return found


# --- constants ------------------------------------------------------------------------------------


def _constant(g: Generator) -> None:
    shape = g.pick(g.shapes)
    kind = g.pick(["number", "ones", "const", "eye"])
    if kind == "const" and all(isinstance(e, int) for e in shape):
        data = g.rng.normal(size=shape).round(2)
        g.emit("const", [], shape, data=data.tolist(), like=shape)
    elif kind == "ones":
        g.emit("ones", [], shape, like=shape)
    elif kind == "eye" and shape:
        g.emit("eye", [], (shape[0], shape[0]), extent=shape[0])
    else:
        g.emit("const", [], (), data=float(g.pick([-1, 0.5, 2, 3])), like=())


def _nothing(g: Generator) -> None:
    """Rows that another row draws."""


def _extents(c: Context, like: Shape) -> Any:
    return tuple([c.extent(e) for e in like])


def _data(data: Any, like: Any) -> np.ndarray:
    return np.array(data, dtype=float).reshape(like)


# --- views and slices -----------------------------------------------------------------------------


def _view(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    square = len(shape) == 2 and shape[0] == shape[1]
    if len(shape) == 1 and g.chance(0.3):
        g.emit("diagonal", [k], shape * 2, name="diag", spec="i->ii")
    elif square and g.chance(0.4):
        g.emit("diagonal", [k], shape[:1], name="diagonal", spec="ii->i")
    elif len(shape) > 1:
        axes = [int(a) for a in g.rng.permutation(len(shape))]
        g.emit("transpose", [k], [shape[a] for a in axes], axes=axes)


def _transpose_jets(c: Context, args: Sequence[Jet], axes: list[int]) -> Jet:
    return args[0].map(lambda a: np.transpose(a, [*axes, *range(len(axes), a.ndim)]))


def _slice(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    if not shape:
        return
    axis = g.below(len(shape))
    extent = shape[axis]
    n = g.size(extent)
    if isinstance(extent, int) and n:
        start, step = g.below(n), g.pick([1, 1, 2, -1, -2])
        stop = g.pick([None, g.below(n + 1)])
        cut = (start, stop, step)
        rest: Extent = len(range(n)[slice(*cut)])
    elif n > 1 and "-" not in str(extent):
        cut, rest = g.pick([(1, None, 1), (None, -1, 1)]), f"{extent}-1"
    else:
        cut, rest = (None, None, -1), extent
    g.emit("slice", [k], (*shape[:axis], rest, *shape[axis + 1 :]), axis=axis, cut=cut)


def _cut(a: Any, axis: int, cut: Any) -> Any:
    return a[(*(slice(None),) * axis, slice(*cut))]


def _gather(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    if not shape or not g.size(shape[0]):
        return
    n = min(g.size(shape[0]), 2 if isinstance(shape[0], str) else 3)
    if isinstance(shape[0], str):
        n = 1  # of a named axis only the first entry certainly is there
    places = [g.below(n) for _ in range(1 + g.below(4))]
    g.emit("gather", [k], (len(places), *shape[1:]), index=places)


def _join(g: Generator) -> None:
    a = g.value()
    shape = g.shapes[a]
    if not shape or not isinstance(shape[0], int):
        return
    other = [k for k, s in enumerate(g.shapes) if s[1:] == shape[1:] and s]
    other = [k for k in other if isinstance(g.shapes[k][0], int)]
    b = g.pick(other)
    total = g.size(shape[0]) + g.size(g.shapes[b][0])
    if total <= 6:
        g.emit("join", [a, b], (total, *shape[1:]))


def _roll(g: Generator) -> None:
    k = g.value()
    if g.shapes[k] and g.size(g.shapes[k][0]):
        g.emit("roll", [k], g.shapes[k], shift=int(g.pick([-1, 1])))


def _both(move: Callable[..., np.ndarray]) -> Callable[..., Jet]:
    """A linear move of the first axes, on values and derivatives."""
    return lambda c, args, **more: args[0].map(lambda a: move(a, **more))


# --- loops ----------------------------------------------------------------------------------------


def _loop(g: Generator) -> None:
    vectors = [k for k, s in enumerate(g.shapes) if len(s) == 1]
    scalars = [k for k, s in enumerate(g.shapes) if not s]
    if vectors and scalars:
        k = g.pick(vectors)
        g.emit("loop", [k, g.pick(scalars)], (), extent=g.shapes[k][0])


def _build_loop(c: Context, args: Sequence[Any], extent: Extent) -> Any:
    x, a = args

    def step(s: Any, i: Any) -> Any:
        return c.xp.tanh(a * s + x[i]) + s / 2

    if hasattr(c.xp, "fold"):
        return c.xp.fold(step, 1.0, c.extent(extent))
    s: Any = 1.0
    for i in range(int(c.extent(extent))):
        s = step(s, i)
    return c.xp.const(s) if isinstance(s, float) else s


def _loop_jets(c: Context, args: Sequence[Jet], extent: Extent) -> Jet:
    x, a = args
    s = jets.constant(1.0, c.total)
    for i in range(int(c.extent(extent))):
        entry = x.map(lambda v, i=i: v[i])
        inner = jets.ELEMENTWISE["tanh"](jets.plus(jets.times(a, s), entry))
        s = jets.plus(inner, jets.ELEMENTWISE["halved"](s))
    return s


OPERATIONS: dict[str, Operation] = {
    "einsum": Operation(_einsum, _build_einsum, _einsum_jets, 4),
    "unary": Operation(
        _unary, _build_unary, lambda c, args, name: jets.ELEMENTWISE[name](args[0]), 4
    ),
    "binary": Operation(
        _binary, lambda c, args, name: _two(c.xp, name, *args),
        lambda c, args, name: _two_jets(name, *args), 2,
    ),
    "outer": Operation(
        _outer, lambda c, args, name: _two(c.xp, name, args[0][:, None], args[1][None, :]),
        lambda c, args, name: _two_jets(
            name, args[0].map(lambda a: a[:, None]), args[1].map(lambda a: a[None, :])
        ), 2,
    ),
    "reduction": Operation(
        _reduction, lambda c, args, name, axis: getattr(c.xp, name)(args[0], axis=axis),
        lambda c, args, name, axis: jets.reduce(name, args[0], axis), 2,
    ),
    "branch": Operation(
        _branch, lambda c, args: c.xp.where(args[0] > 0.1, args[1], args[2]), _branch_jets, 2
    ),
    "matrix": Operation(_matrix, _build_matrix, _matrix_jets, 2),
    "const": Operation(
        _constant, lambda c, args, data, like: c.xp.const(_data(data, like)),
        lambda c, args, data, like: jets.constant(_data(data, like), c.total), 2,
    ),
    "ones": Operation(
        _nothing, lambda c, args, like: c.xp.ones(_extents(c, like)),
        lambda c, args, like: jets.constant(np.ones(_extents(c, like)), c.total), 0,
    ),
    "eye": Operation(
        _nothing, lambda c, args, extent: c.xp.eye(c.extent(extent)),
        lambda c, args, extent: jets.constant(np.eye(c.extent(extent)), c.total), 0,
    ),
    "diagonal": Operation(
        _view, lambda c, args, name, spec: getattr(c.xp, name)(*args),
        lambda c, args, name, spec: jets.einsum(spec, *args, sizes={}, total=c.total), 2,
    ),
    "transpose": Operation(
        _nothing, lambda c, args, axes: c.xp.transpose(args[0], axes), _transpose_jets, 0
    ),
    "slice": Operation(
        _slice, lambda c, args, axis, cut: _cut(args[0], axis, cut), _both(_cut), 2
    ),
    "gather": Operation(
        _gather, lambda c, args, index: args[0][np.array(index)],
        _both(lambda a, index: a[np.array(index)]),
    ),
    "join": Operation(
        _join, lambda c, args: c.xp.concatenate(list(args)),
        lambda c, args: Jet(*[np.concatenate([getattr(a, f) for a in args]) for f in "vgh"]),
    ),
    "roll": Operation(
        _roll, lambda c, args, shift: c.xp.roll(args[0], shift, axis=0),
        _both(lambda a, shift: np.roll(a, shift, axis=0)),
    ),
    "loop": Operation(_loop, _build_loop, _loop_jets),
}  # fmt: skip
