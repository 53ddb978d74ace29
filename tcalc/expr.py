"""The expression DAG: a closed set of node kinds, one interning constructor, one walker.

Kinds
-----
Var         a variable: name, shape, properties
Const       an array of numbers
Add         a sum of terms of one shape
Einsum      a product of any number of operands with index labels, and a coefficient
Apply       an operator (a row of the table in `tcalc.op`) on operands with batch and core axes
Derivative  a root only: a value that remembers what was differentiated, and by what

Nodes are immutable. `intern` is the only place that makes them: equal constructions are one object,
so `is` is equality. What a node means is decided here; which of several equal forms is built is
decided in `tcalc.normal`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import TraceError
from .extents import Coef, Shape, show_shape

if TYPE_CHECKING:
    from .op import Op

Labels = tuple[int, ...]
Binary = Callable[["Expr", object], "Expr"]
Permutation = tuple[int, ...]

PROPERTIES = (
    "symmetric",
    "positive_definite",
    "diagonal",
    "lower",
    "upper",
    "nonnegative",
    "integer",
)

#: What Python operators, ndarray methods and NumPy calls on expressions mean; upper layers fill it.
surface: dict[str, Callable[..., Any]] = {}


def _infix(name: str) -> tuple[Binary, Binary]:
    def plain(self: Expr, other: object) -> Expr:
        result: Expr = surface[name](self, other)
        return result

    def swapped(self: Expr, other: object) -> Expr:
        result: Expr = surface[name](other, self)
        return result

    return plain, swapped


def _method(name: str) -> Callable[..., Any]:
    def method(self: Expr, *args: object, **options: object) -> Any:
        return surface[name](self, *args, **options)

    method.__name__ = name
    method.__doc__ = f"As `tcalc.{name}` with this expression as first argument."
    return method


class Expr:
    """An expression: behaves as a NumPy array does, and is evaluated by calling it with arrays.

    Attributes
    ----------
    shape : tuple of int and str
        Extents; a str names a dimension that is bound by the arrays at evaluation.
    args : tuple of Expr
        Operands.
    """

    __slots__ = ("__weakref__", "_symmetries", "args", "order", "shape")

    args: tuple[Expr, ...]
    shape: Shape
    order: tuple[int, str, bytes]
    _symmetries: tuple[Permutation, ...] | None

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

    @property
    def T(self) -> Expr:
        result: Expr = surface["transpose"](self)
        return result

    @property
    def mT(self) -> Expr:
        result: Expr = surface["matrix_transpose"](self)
        return result

    __add__, __radd__ = _infix("add")
    __sub__, __rsub__ = _infix("subtract")
    __mul__, __rmul__ = _infix("multiply")
    __truediv__, __rtruediv__ = _infix("divide")
    __pow__, __rpow__ = _infix("power")
    __matmul__, __rmatmul__ = _infix("matmul")
    __mod__, __rmod__ = _infix("mod")
    __and__, __rand__ = _infix("logical_and")
    __or__, __ror__ = _infix("logical_or")
    __lt__, __gt__ = _infix("less")
    __le__, __ge__ = _infix("less_equal")
    __eq__ = _infix("equal")[0]  # type: ignore[assignment]
    __ne__ = _infix("not_equal")[0]  # type: ignore[assignment]
    __hash__ = object.__hash__

    __neg__ = _method("negative")
    __abs__ = _method("abs")
    __invert__ = _method("logical_not")
    __getitem__ = _method("getitem")
    sum = _method("sum")
    mean = _method("mean")
    prod = _method("prod")
    max = _method("max")
    min = _method("min")
    var = _method("var")
    std = _method("std")
    cumsum = _method("cumsum")
    dot = _method("dot")
    reshape = _method("reshape")
    ravel = _method("ravel")
    diagonal = _method("diagonal")
    trace = _method("trace")
    transpose = _method("transpose")
    subs = _method("subs")
    diff = _method("diff")
    __call__ = _method("evaluate")
    __str__ = _method("str")
    __repr__ = _method("str")
    _repr_latex_ = _method("repr_latex")
    __array_ufunc__ = _method("array_ufunc")
    __array_function__ = _method("array_function")

    def __pos__(self) -> Expr:
        return self

    def __bool__(self) -> bool:
        raise TraceError("an expression has no truth value; write where(condition, a, b)")

    def __iter__(self) -> Iterator[Expr]:
        if not self.shape:
            raise TypeError("a scalar expression cannot be iterated over")
        extent = self.shape[0]
        if isinstance(extent, str):
            raise TypeError(f"the extent {extent} of the first index is not known yet")
        return iter([self[i] for i in range(extent)])

    def __len__(self) -> int:
        if not self.shape or isinstance(self.shape[0], str):
            raise TypeError(f"an expression of shape {show_shape(self.shape)} has no len()")
        return self.shape[0]

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TraceError("an expression is not an array; np.array([...]) of expressions is stack")

    def __float__(self) -> float:
        raise TraceError("an expression is not a number; call it with values to evaluate it")

    __int__ = __index__ = __complex__ = __float__

    def __reduce__(self) -> tuple[Any, ...]:
        nodes = postorder((self,))
        place = {id(node): k for k, node in enumerate(nodes)}
        return surface["rebuild"], (
            [(type(n), n.meta, [place[id(a)] for a in n.args]) for n in nodes],
        )

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

    __slots__ = ("coef", "extents", "labels", "out")
    labels: tuple[Labels, ...]
    out: Labels
    extents: Shape
    coef: Coef

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.labels, self.out, self.extents, self.coef)

    @property
    def summed(self) -> bool:
        """True for a contraction; false for an outer product, scaling, embedding, broadcast."""
        return len(set(self.out)) < len(self.extents)


class Apply(Expr):
    __slots__ = ("op", "params")
    op: Op
    params: tuple[Any, ...]

    @property
    def meta(self) -> tuple[Any, ...]:
        return (self.op, self.params, self.shape)


class Derivative(Expr):
    """The root of a derivative: its one operand, and where it comes from.

    Attributes
    ----------
    of : Expr
        What was differentiated (through all orders).
    wrt : tuple of Var
        One variable per order; `shape` is of.shape and then the shapes of these. Empty where the
        root only keeps the variables of `of`.
    candidates : tuple of Expr
        The same value as accumulated by other modes, for a choice when sizes are known.
    """

    __slots__ = ("candidates", "of", "wrt")
    of: Expr
    wrt: tuple[Var, ...]
    candidates: tuple[Expr, ...]

    @property
    def meta(self) -> tuple[Any, ...]:
        return (len(self.wrt), len(self.candidates))


_FIELDS: dict[type[Expr], tuple[str, ...]] = {
    Var: ("name", "shape", "properties"),
    Const: ("_dtype", "shape", "data"),
    Add: (),
    Einsum: ("labels", "out", "extents", "coef"),
    Apply: ("op", "params", "shape"),
    Derivative: (),
}
_RANK = {kind: rank for rank, kind in enumerate(_FIELDS)}
_table: weakref.WeakValueDictionary[Any, Expr] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def intern(kind: type[Expr], meta: tuple[Any, ...], args: tuple[Expr, ...] = ()) -> Any:
    """The node of this kind, meta and operands: the one that exists, or a new one."""
    key: Any = (kind, _exact(kind, meta), tuple(map(id, args)))
    node = _table.get(key)
    if node is not None:
        return node
    node = object.__new__(kind)
    node.args = args
    for field, value in zip(_FIELDS[kind], meta, strict=False):
        object.__setattr__(node, field, value)
    if kind is Add:
        node.shape = args[0].shape
    elif isinstance(node, Einsum):
        node.shape = tuple([node.extents[label] for label in node.out])
    elif isinstance(node, Derivative):
        orders, _ = meta
        node.shape, node.of, node.wrt = args[0].shape, args[1], args[2 : 2 + orders]  # type: ignore[assignment]
        node.candidates = args[2 + orders :]
    node._symmetries = None
    node.order = _order(kind, meta, args)
    with _lock:
        return _table.setdefault(key, node)


def _exact(kind: type[Expr], meta: tuple[Any, ...]) -> Any:
    """A key in which 1, 1.0 and True, or 0.0 and -0.0, do not collide."""
    if kind is Einsum:
        return (*meta[:3], meta[3].key())
    if kind is Apply:
        return (meta[0].name, tuple([(type(p), repr(p)) for p in meta[1]]), meta[2])
    return meta


def _order(
    kind: type[Expr], meta: tuple[Any, ...], args: tuple[Expr, ...]
) -> tuple[int, str, bytes]:
    """Structural sort key: kind, then the first variable inside, then a digest of everything."""
    state = blake2b(kind.__name__.encode(), digest_size=16)
    if kind is Const:
        state.update(repr(meta[:2]).encode())
        state.update(meta[2])
    else:
        state.update(repr(_exact(kind, meta)).encode())
    lead = meta[0] if kind is Var else "~"
    for arg in args:
        rank, first, digest = arg.order
        state.update(digest)
        if first < lead:
            lead = first
    return (_RANK[kind], lead, state.digest())


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """Every node below the roots once, operands before consumers: the one walker of all passes."""
    seen: set[int] = set()
    found: list[Expr] = []
    stack: list[Any] = [iter(tuple(roots))]
    path: list[Expr | None] = [None]
    while stack:
        for node in stack[-1]:
            if id(node) not in seen:
                seen.add(id(node))
                if node.args:
                    stack.append(iter(node.args))
                    path.append(node)
                    break
                found.append(node)
        else:
            stack.pop()
            done = path.pop()
            if done is not None:
                found.append(done)
    return found


def variables(roots: Iterable[Expr]) -> dict[str, Var]:
    """Variables below the roots by name, sorted; ValueError where one name is declared twice."""
    found: dict[str, Var] = {}
    for node in postorder(roots):
        if isinstance(node, Var):
            other = found.setdefault(node.name, node)
            if other is not node:
                raise ValueError(
                    f"{node.name} is declared twice: {declaration(other)} and {declaration(node)}"
                )
    return dict(sorted(found.items()))


def dimensions(roots: Iterable[Expr]) -> list[str]:
    """Names of all dimensions below the roots, sorted."""
    names: set[str] = set()
    for node in postorder(roots):
        names.update(e for e in node.shape if isinstance(e, str))
        if isinstance(node, Einsum):
            names.update(e for e in node.extents if isinstance(e, str))
            names.update(node.coef.times + node.coef.over)
    return sorted(names)


def declaration(variable: Var) -> str:
    return " ".join([show_shape(variable.shape), *variable.properties])
