"""The expression DAG: a closed set of node kinds, one interning constructor, one walker.

Kinds
-----
Var         a variable: name, shape, properties
Const       an array of numbers
Add         a sum of terms of one shape
Einsum      a product of any number of operands with index labels, and a coefficient
Apply       an operator (a row of `graph.operators`) on operands with batch and core axes
Part        one output of an operator that has several
Derivative  a root only: a value that remembers what was differentiated, and by what

Nodes are immutable, and only `intern` makes them: equal ones are one object, so `is` is equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..support.digests import blake2b
from ..support.errors import ShapeError
from ..support.limits import spend
from ..support.weak_table import WeakTable
from .arraylike import ArrayMethods
from .declarations import declare, meeting
from .extents import Coef, Shape, extent_names, show_shape
from .properties import PROPERTIES, slots_of
from .subspaces import Slot

if TYPE_CHECKING:
    from .operators import Op

Labels = tuple[int, ...]
Permutation = tuple[int, ...]


class Expr(ArrayMethods):
    """An expression: behaves as a NumPy array does, and is evaluated by calling it with arrays.

    Attributes
    ----------
    shape : tuple of int and str
        Extents; a str names a dimension that is bound by the arrays at evaluation.
    ndim : int
        The number of axes.
    args : tuple of Expr
        Operands.
    order : tuple
        By which terms and factors are sorted: the same in every process.
    """

    __slots__ = (
        "__weakref__", "_antisymmetries", "_below", "_form", "_settled", "_signs", "_simple",
        "_symmetries", "_tokens", "_twice", "args", "order", "shape",
    )  # fmt: skip

    args: tuple[Expr, ...]
    shape: Shape
    order: tuple[int, str, bytes]
    _symmetries: tuple[Permutation, ...] | None
    _antisymmetries: tuple[Permutation, ...]
    _signs: int  # functions one on the other that these come from
    _below: int  # what is at roots from here down: see `graph.applications.roots_below`
    _tokens: int  # of the text in the matrix language; 0: unknown
    _settled: int  # of how many rules it is known that none fires, neither here nor below
    _simple: tuple[int, Expr] | None  # what so many rules make of it, where known and another node
    _form: Expr | bool  # the form in which it is written; True: it is that itself, False: unknown
    _twice: tuple[int, dict[str, Var]]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def meta(self) -> tuple[Any, ...]:
        """All but the operands that tells this node from others of its kind."""
        return ()

    @property
    def variables(self) -> dict[str, Var]:
        """Variables by name, sorted."""
        return variables((self,))

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _UNKNOWN and name not in ("_projected", "_plain", "_values"):
            raise AttributeError(f"expressions are immutable; {name} cannot be set")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"expressions are immutable; {name} cannot be deleted")

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, _: object) -> Expr:
        return self


class Var(Expr):
    __slots__ = ("name", "properties")
    name: str
    properties: tuple[str, ...]

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.name, self.shape, self.properties)

    @property
    def integral(self) -> bool:
        """Does it stand for integers?"""
        return any(PROPERTIES[name].integral for name in self.properties)


class Const(Expr):
    """An array of numbers (read-only); single numbers are products without operands."""

    __slots__ = ("_dtype", "data")
    data: bytes
    _dtype: str

    @property
    def value(self) -> np.ndarray:
        shape = [e for e in self.shape if isinstance(e, int)]
        return np.frombuffer(self.data, self._dtype).reshape(shape)

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self._dtype, self.shape, self.data)


class Add(Expr):
    __slots__ = ()


class Einsum(Expr):
    """coef * sum over labels not in `out` of the product of args[k] indexed by labels[k].

    Labels are 0 … len(extents) - 1. A label may stand twice in an operand (a diagonal), twice in
    `out` (a unit tensor), in `out` only (broadcast).
    """

    __slots__ = ("_plain", "coef", "extents", "labels", "out", "summed")
    labels: tuple[Labels, ...]
    out: Labels
    extents: Shape
    coef: Coef
    summed: bool  # a contraction; else an outer product, scaling, embedding, broadcast
    _plain: Expr | None  # with coefficient 1, once somebody asked for it

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.labels, self.out, self.extents, self.coef)


class Apply(Expr):
    __slots__ = ("op", "params")
    op: Op
    params: tuple[Any, ...]

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.op, self.params, self.shape)


class Part(Expr):
    """Output number `index` of an operator with several; its one operand is the application."""

    __slots__ = ("index",)
    index: int

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.index, self.shape)


class Derivative(Expr):
    """The root of a derivative: its value, and where it comes from.

    Attributes
    ----------
    first : Expr
        The value before projection, as one mode of accumulation found it.
    ways : callable, optional
        ``ways(True)`` finds it by all modes that are compared, that of the fewest operations first;
        ``ways(False)`` in the order of modes, for who knows the sizes.
    project : callable
        ``project(inner, slots)`` is it projected onto the subspaces of the variables of all slots.
    of : Expr
        What was differentiated (through all orders).
    wrt : tuple of Var
        One per order, with `shape` of.shape and then theirs; none where it only keeps others.
    kept : tuple of Var
        Variables that cancelled: their arrays may be passed, and bind dimensions.
    """

    __slots__ = ("_projected", "_values", "first", "kept", "of", "project", "ways", "wrt")
    first: Expr
    ways: Callable[[bool], Sequence[Expr]] | None
    project: Callable[[Expr, Iterable[Slot]], Expr]
    of: Expr
    wrt: tuple[Var, ...]
    kept: tuple[Var, ...]
    _values: tuple[Expr, ...]
    _projected: Expr | None  # as `_values`, once somebody asked

    @property
    def meta(self) -> tuple[Any, ...]:
        return (len(self.wrt), self.project, self.ways)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The value by all modes that are compared, that of the fewest operations first."""
        self._values = self._values or tuple(self.ways(True) if self.ways else [self.first])
        return self._values

    @property
    def inner(self) -> Expr:
        """The best of them, which is printed and differentiated further."""
        return self.values[0]

    @property
    def slots(self) -> list[Slot]:
        """Where it is projected."""
        return slots_of(self.of.ndim, self.wrt)

    @property
    def as_written(self) -> bool:
        """Does the root only say that its value is printed as it is?"""
        return self.of is self.first and not self.wrt and not self.kept

    @property
    def projected(self) -> Expr:
        """What the root means as an operand; made once, as numbers are projected without it."""
        if self._projected is None:
            self._projected = self.project(self.inner, self.slots)
        return self._projected


_FIELDS: dict[type[Expr], tuple[str, ...]] = {
    Var: ("name", "shape", "properties"),
    Const: ("_dtype", "shape", "data"),
    Add: ("shape",),
    Einsum: ("labels", "out", "extents", "coef", "shape", "summed", "_plain"),
    Apply: ("op", "params", "shape"),
    Part: ("index", "shape"),
    Derivative: ("shape", "project", "ways", "first", "of", "wrt", "kept", "_values", "_projected"),
}
NODE_KINDS = tuple(_FIELDS)
#: Steps that an operand takes, of nodes with more than a few.
OPERAND, FEW = 6, 4
_RANK = {kind: rank for rank, kind in enumerate(_FIELDS)}
_table: WeakTable[Expr] = WeakTable()
#: What is found out about nodes later.
_UNKNOWN: dict[str, Any] = {
    "_antisymmetries": (), "_below": 0, "_form": False, "_settled": 0, "_signs": 0,
    "_simple": None, "_symmetries": None, "_tokens": 0, "_twice": (0, {}),
}  # fmt: skip
#: What sets all slots of a new node, past the refusal to set any.
_SETTERS: dict[type[Expr], list[Callable[[Expr, Any], None]]] = {
    kind: [getattr(kind, name).__set__ for name in (*fields, *_UNKNOWN, "args", "order")]
    for kind, fields in _FIELDS.items()
}


def intern(kind: type[Expr], meta: tuple[Any, ...], args: tuple[Expr, ...] = ()) -> Any:
    """The node of this kind, meta and operands: the one that exists, or a new one."""
    spend("nodes")
    if len(args) > FEW:
        spend("steps", OPERAND * len(args))
    key: Any = (kind, _exact(kind, meta), tuple(map(id, args)))
    found = _table.find(key)
    if found is not None and (node := found()) is not None:
        return node
    if len(args) > 1 and kind is not Derivative:
        check_declarations(args)
    node = object.__new__(kind)
    values = (*_given(kind, meta, args), *_UNKNOWN.values(), args, _order(kind, key[1], meta, args))
    for put, value in zip(_SETTERS[kind], values, strict=True):
        put(node, value)
    node = _table.put(key, node)
    if kind is Var:
        declare(meta[0], node)
    return node


def _given(kind: type[Expr], meta: tuple[Any, ...], args: tuple[Expr, ...]) -> tuple[Any, ...]:
    """The values of a kind's own fields."""
    if kind is Einsum:
        _, out, extents, _ = meta
        shape = tuple([extents[label] for label in out])
        return (*meta, shape, len(set(out)) < len(extents), None)
    if kind is Add:
        return (args[0].shape,)
    if kind is Derivative:
        last = 2 + meta[0]
        return (args[0].shape, *meta[1:], *args[:2], args[2:last], args[last:], (), None)
    return meta


def check_declarations(nodes: Iterable[Expr]) -> None:
    """Refuse nodes that are to be put together where these declare one name differently."""
    if found := meeting(nodes):
        raise _declared_twice(*found)


def _declared_twice(one: Var, other: Var) -> ShapeError:
    return ShapeError(f"{one.name} is declared twice: {declaration(one)} and {declaration(other)}")


def _exact(kind: type[Expr], meta: tuple[Any, ...]) -> Any:
    """A key in which 1, 1.0 and True, or 0.0 and -0.0, do not collide."""
    if kind is Einsum:
        return (*meta[:3], meta[3].key())
    if kind is Apply:
        return (meta[0].name, tuple([(type(p), repr(p)) for p in meta[1]]), meta[2])
    return (meta[0], bool(meta[2])) if kind is Derivative else meta


def _order(
    kind: type[Expr], exact: Any, meta: tuple[Any, ...], args: tuple[Expr, ...]
) -> tuple[int, str, bytes]:
    """Structural sort key: kind, then the first variable inside, then a digest of everything."""
    if kind is Einsum:
        state = _begun(exact).copy()
    else:
        state = blake2b(kind.__name__.encode(), digest_size=16)
        state.update(repr(meta[:2] if kind is Const else exact).encode())
        if kind is Const:
            state.update(meta[2])
    lead = meta[0] if kind is Var else "~"
    for arg in args:
        _, first, digest = arg.order
        state.update(digest)
        if first < lead:
            lead = first
    return (_RANK[kind], lead, state.digest())


@lru_cache(maxsize=4096)
def _begun(exact: Any) -> Any:
    """The digest of a product's labels, of which there are few patterns, without operands."""
    return blake2b(Einsum.__name__.encode() + repr(exact).encode(), digest_size=16)


def postorder(roots: Iterable[Expr], stop: Callable[[Expr], bool] | None = None) -> list[Expr]:
    """Every node below the roots once, operands before consumers: the one walker of all passes.

    Nothing below a node for which `stop` holds is visited.
    """
    seen: set[Expr] = set()
    found: list[Expr] = []
    waiting: list[Any] = list(roots)[::-1]  # None: the one below it has its operands
    take, see, put = waiting.pop, seen.add, found.append
    while waiting:
        node = take()
        if node is None:
            put(take())
        elif node not in seen:
            see(node)
            args = node.args
            if args and (stop is None or not stop(node)):
                waiting += (node, None)
                waiting += args[::-1]
            else:
                put(node)
    spend("steps", len(found))
    return found


def variables(roots: Iterable[Expr]) -> dict[str, Var]:
    """Variables below the roots by name, sorted; ShapeError where one name is declared twice."""
    found: dict[str, Var] = {}
    for node in postorder(roots):
        if isinstance(node, Var):
            other = found.setdefault(node.name, node)
            if other is not node:
                raise _declared_twice(other, node)
    return dict(sorted(found.items()))


def dimensions(roots: Iterable[Expr]) -> list[str]:
    """Names of all dimensions below the roots, sorted."""
    names, shapes = set[str](), set[Shape]()
    for node in postorder(roots):
        shapes.add(node.shape)
        if isinstance(node, Einsum):
            shapes.add(node.extents)
            names.update(node.coef.times + node.coef.over)
        elif isinstance(node, Apply) and (within := node.op.meaning.dimensions):
            names.update(within(node.params))
    return sorted(extent_names(names.union(e for s in shapes for e in s if isinstance(e, str))))


def declaration(variable: Var) -> str:
    return " ".join([show_shape(variable.shape), *variable.properties])
