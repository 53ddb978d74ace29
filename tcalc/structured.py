"""Compression: a tensor as cores and the unit tensors around them.

A derivative's value is a sum of products whose repeated output labels are unit tensors, so
compressing is reading: the factors that share labels are a core, the output says how the cores are
embedded. Cores that share no label stay apart, as in an outer or Kronecker product (Laue et al.
2020, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import nest, normal
from .calculus import keeping
from .compile import Compiled, compile
from .declare import var
from .errors import ShapeError
from .expr import Add, Derivative, Einsum, Expr, Labels, Var, dimensions, variables
from .extents import ONE, Coef, Extent, Shape, extent_of, show_shape
from .normal import einsum, low_order, structured
from .products import components, filled, zeros_node
from .properties import project_slot
from .surface import surface

MAX_TERMS = 64
_LETTERS = "ijklmnpqrstuvwxyzabcdefgh"


class Term(NamedTuple):
    """The product of cores read at labels, embedded by an output that may repeat labels."""

    cores: tuple[Expr, ...]
    labels: tuple[Labels, ...]
    out: Labels
    extents: Shape

    def product(self, cores: Sequence[Expr]) -> Expr:
        return einsum(cores, self.labels, self.out, ONE, dict(enumerate(self.extents)))

    def times(self, cores: Sequence[Expr], v: Expr, columns: int) -> Expr:
        """The product with v over the last `columns` axes; further axes of v stay behind."""
        rows = len(self.out) - columns
        fresh = range(len(self.extents), len(self.extents) + v.ndim - columns)
        words = [*self.labels, (*self.out[rows:], *fresh)]
        extents = dict(enumerate(self.extents))
        return einsum([*cores, v], words, (*self.out[:rows], *fresh), ONE, extents)


@dataclass(frozen=True)
class Compressed:
    """What `compress` returns: the symbolic cores and unit tensors of an expression.

    Attributes
    ----------
    shape : tuple
        Shape of the whole tensor.
    terms : tuple of Term
        Their sum is the tensor (before projection onto properties of variables).
    columns : int
        Number of trailing axes that a product with a vector sums over.
    slots : tuple of (int, Var)
        First axis and variable of every differentiated slot.
    """

    shape: Shape
    terms: tuple[Term, ...]
    columns: int
    slots: tuple[tuple[int, Var], ...]

    @property
    def cores(self) -> tuple[Expr, ...]:
        return tuple([core for term in self.terms for core in term.cores])

    def __str__(self) -> str:
        letters = _LETTERS[: len(self.shape)] if len(self.shape) <= len(_LETTERS) else ""
        axes = [letters[k] if letters else f"i{k}" for k in range(len(self.shape))]
        parts, rows, count = [], [], 0
        for term in self.terms:
            first = {label: axes[term.out.index(label)] for label in set(term.out)}
            factors = []
            for core, word in zip(term.cores, term.labels, strict=True):
                count += 1
                index = f"[{','.join(first[label] for label in word)}]" if word else ""
                factors.append(f"C{count}{index}")
                rows.append(f"  C{count} = {core}  {show_shape(core.shape)}")
            for axis, label in enumerate(term.out):
                if first[label] != axes[axis]:
                    factors.append(f"delta[{first[label]},{axes[axis]}]")
            parts.append(" * ".join(factors) or "1")
        head = f"H[{','.join(axes)}] = " if axes else "H = "
        projected = [v.name for _, v in self.slots if v.properties]
        note = f"  projected onto the properties of {', '.join(projected)}" if projected else ""
        shape = f"shape {show_shape(self.shape)}"
        return "\n".join(
            [head + (" + ".join(parts) or "0") + "   " + shape, *rows, *filter(None, [note])]
        )

    __repr__ = __str__


def compress(e: Expr) -> Compressed:
    """The cores of a tensor and the unit tensors around them, symbolically.

    Examples
    --------
    >>> import tcalc as tc
    >>> f = tc.parse("norm2(T - U*V')^2", T=("n", "m"), U=("n", "k"), V=("m", "k"))
    >>> print(tc.compress(tc.hessian(f, "U")))
    H[i,j,k,l] = C1[j,l] * delta[i,k]   shape (n, k, n, k)
      C1 = 2*V'*V  (k, k)
    """
    if not isinstance(e, Expr):
        raise TypeError(f"one expression is compressed at a time, not {type(e).__name__}")
    slots: list[tuple[int, Var]] = []
    value, columns = e, e.ndim - e.ndim // 2
    if isinstance(e, Derivative):
        value, start = e.args[0], e.of.ndim
        for v in e.wrt:
            slots.append((start, v))
            start += v.ndim
        columns = e.wrt[-1].ndim if e.wrt else columns
    dense: list[Expr] = []
    terms: list[Term] = []
    for part in _parts(value):
        term = _term(part)
        if term is None:
            continue
        if len(term.cores) == 1 and term.labels[0] == term.out:
            dense.append(term.cores[0])
        else:
            terms.append(term)
    if dense:
        axes = tuple(range(e.ndim))
        terms.insert(0, Term((normal.add(dense),), (axes,), axes, e.shape))
    return Compressed(e.shape, tuple(terms), columns, tuple(slots))


def _parts(value: Expr) -> list[Expr]:
    """Terms of a sum, also of sums inside products where they are all of lower order.

    Such a sum would be a larger core than its terms are apart: x_l (A_ik B_j + A_jk B_i).
    """
    found: list[Expr] = []
    stack = [value]
    while stack:
        e = stack.pop()
        opened = _opened(e) if len(found) + len(stack) < MAX_TERMS else None
        if opened is None:
            found.append(e)
        else:
            stack.extend(reversed(opened))
    return found


def _opened(e: Expr) -> list[Expr] | None:
    """The product e distributed over one of its sums, or None."""
    if isinstance(e, Add):
        return list(e.args)
    if not isinstance(e, Einsum) or e.summed:
        return None
    extents = dict(enumerate(e.extents))
    for k, arg in enumerate(e.args):
        if isinstance(arg, Add) and (structured(arg) or all(low_order(t) for t in arg.args)):
            return [
                einsum([*e.args[:k], t, *e.args[k + 1 :]], e.labels, e.out, e.coef, extents)
                for t in arg.args
            ]
    return None


def _term(e: Expr) -> Term | None:
    """One product, its factors joined to cores where they share labels; None for zero."""
    axes = tuple(range(e.ndim))
    if not isinstance(e, Einsum) or e.summed:
        return Term((e,), (axes,), axes, e.shape)
    if e.coef.zero:
        return None
    extents = dict(enumerate(e.extents))
    coef, cores, words = e.coef, [], []
    for group in components(list(zip(e.args, e.labels, strict=True)), set()):
        word = tuple(sorted({label for _, w in group for label in w}))
        ops, labels = [op for op, _ in group], [w for _, w in group]
        cores.append(einsum(ops, labels, word, coef, {label: extents[label] for label in word}))
        words.append(word)
        coef = ONE
    if not cores:
        cores, words = [filled(coef, ())], [()]
    return Term(tuple(cores), tuple(words), e.out, e.extents)


# --- numbers --------------------------------------------------------------------------------------


class Pattern:
    """How numeric cores make up a tensor: the compressed form over variables C1, C2, …"""

    def __init__(self, compressed: Compressed) -> None:
        self.compressed = compressed
        self.names = [f"C{k + 1}" for k in range(len(compressed.cores))]
        self._compiled: dict[Any, Compiled] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self.compressed,)

    def _terms(self) -> list[tuple[Term, list[Expr]]]:
        found, k = [], 0
        for term in self.compressed.terms:
            cores: list[Expr] = []
            for core in term.cores:
                cores.append(var(self.names[k], core.shape))
                k += 1
            found.append((term, cores))
        return found

    def dense(self) -> Compiled:
        """Cores to the whole tensor."""
        if "dense" not in self._compiled:
            parts = [term.product(cores) for term, cores in self._terms()]
            value = normal.add([*parts, zeros_node(self.compressed.shape)])
            for start, v in self.compressed.slots:
                value = project_slot(value, start, v)
            self._compiled["dense"] = compile(value)
        return self._compiled["dense"]

    def product(self, further: int) -> Compiled:
        """Cores and a right-hand side "v" to their product; `further` axes of v stay."""
        if further not in self._compiled:
            columns, slots = self.compressed.columns, self.compressed.slots
            rows = self.compressed.shape[: len(self.compressed.shape) - columns]
            names = tuple(f"rhs{k}" for k in range(further))
            v: Expr = var("v", (*self.compressed.shape[len(rows) :], *names))
            if slots:
                v = project_slot(v, 0, slots[-1][1])
            parts = [term.times(cores, v, columns) for term, cores in self._terms()]
            value = normal.add([*parts, zeros_node((*rows, *names))])
            for start, slot in slots[:-1]:
                value = project_slot(value, start, slot)
            self._compiled[further] = compile(value)
        return self._compiled[further]


class Structured:
    """A tensor of numbers kept as cores and unit tensors; the dense tensor is never held.

    Attributes
    ----------
    shape : tuple of int
    cores : tuple of ndarray
    nbytes : int
        Bytes of the cores.
    """

    __array_ufunc__ = None

    def __init__(self, pattern: Pattern, cores: Sequence[Any], sizes: dict[str, int]) -> None:
        self._pattern, self._sizes = pattern, sizes
        self.cores: tuple[np.ndarray, ...] = tuple([np.asarray(c) for c in cores])
        self.shape = tuple([extent_of(e, sizes) for e in pattern.compressed.shape])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*self.cores) if self.cores else np.dtype(np.float64)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.cores)

    def _values(self) -> dict[str, Any]:
        return {**dict(zip(self._pattern.names, self.cores, strict=True)), **self._sizes}

    def todense(self) -> np.ndarray:
        """The whole tensor as one array."""
        result: np.ndarray = np.asarray(self._pattern.dense()(self._values()))
        return result.astype(self.dtype, copy=False)

    def __matmul__(self, v: Any) -> Any:
        """The product over the last slot; further axes of v are more right-hand sides."""
        rhs = np.asarray(v)
        columns = self.shape[self.ndim - self._pattern.compressed.columns :]
        if rhs.shape[: len(columns)] != columns:
            raise ShapeError(
                f"a tensor of shape {show_shape(self.shape)} times shape {show_shape(rhs.shape)}: "
                f"expected {show_shape(columns)}, and any further axes"
            )
        further = rhs.ndim - len(columns)
        extents = {f"rhs{k}": e for k, e in enumerate(rhs.shape[len(columns) :])}
        return self._pattern.product(further)({**self._values(), **extents, "v": rhs})

    def __repr__(self) -> str:
        cores = ", ".join(show_shape(c.shape) for c in self.cores)
        about = f"{show_shape(self.shape)} {self.dtype}"
        return f"<Structured {about}: cores {cores}, {self.nbytes} bytes>"


class CompiledStructured:
    """What ``compile(…, structured=True)`` returns: calls give `Structured` tensors."""

    def __init__(self, outputs: Any, **options: Any) -> None:
        self._outputs, self._options = outputs, options
        forms = [compress(leaf) for leaf in nest.leaves(outputs)]
        self._patterns = [Pattern(form) for form in forms]
        whole = {
            e: leaf
            for leaf, f in zip(nest.leaves(outputs), forms, strict=True)
            for e in named_extents(f)
        }
        extents = {
            name: keeping(filled(Coef(1, (name,)), ()), whole[name]) for name in sorted(whole)
        }
        numbers = {"cores": [list(f.cores) for f in forms], "extents": extents}
        self._unread = _names(nest.leaves(outputs)) - _names(nest.leaves(numbers))
        self._compiled = compile(numbers, **options)

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        found = self._compiled(*arguments, **values)
        sizes = {name: int(extent) for name, extent in found["extents"].items()}
        made = [
            Structured(pattern, cores, {n: sizes[n] for n in named_extents(pattern.compressed)})
            for pattern, cores in zip(self._patterns, found["cores"], strict=True)
        ]
        return made[0] if isinstance(self._outputs, Expr) else nest.rebuild(self._outputs, made)

    @property
    def plan(self) -> Any:
        return self._compiled.plan

    def plan_for(self, /, **shapes: Any) -> Any:
        read = {name: shape for name, shape in shapes.items() if name not in self._unread}
        return self._compiled.plan_for(**read)

    def __reduce__(self) -> tuple[Any, ...]:
        return _structured, (self._outputs, self._options)


def _names(leaves: Sequence[Expr]) -> set[str]:
    return {*variables(leaves), *dimensions(leaves)}


def named_extents(form: Compressed) -> list[str]:
    """Dimension names that the shapes of a compressed tensor mention, sorted."""
    everything: list[Extent] = list(form.shape)
    for term in form.terms:
        everything.extend(term.extents)
    return sorted({e for e in everything if isinstance(e, str)})


def _structured(outputs: Any, options: dict[str, Any]) -> CompiledStructured:
    return CompiledStructured(outputs, **options)


surface["compile_structured"] = CompiledStructured
