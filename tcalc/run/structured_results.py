"""Compiled functions with compressed outputs: one plan computes the cores, layouts embed them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..calculus.projection import keeping_variables
from ..compression.compress import Compressed, compress, named_extents
from ..graph import trees
from ..graph.extents import NOMINAL, Coef, Shape, extent_names, extent_of, show_shape
from ..graph.nodes import Derivative, Expr, Var, dimensions, variables
from ..graph.products import filled
from ..graph.subspaces import Slot
from ..ops.selection import checked
from ..structured.block_jacobian import BlockJacobian
from ..structured.blocks import BlockStructured
from ..structured.tensor import Structured
from ..structured.terms.numeric_terms import Terms
from ..structured.terms.sparse_cores import sparse_terms
from ..structured.terms.tensor_layout import TensorLayout
from ..support.arrays import AnyArray
from ..support.byte_counts import read_bytes, show_bytes
from ..support.errors import MemoryLimitError
from ..support.machine import machine_memory
from ..support.namespaces import is_sparse, moved, namespace_of, on_device, on_host
from ..support.records import NamedTuple
from .backends import backend_named
from .binding import OwnData, by_name, held_entries
from .compiled import Compiled
from .derivative_nests import hessian_over, jacobian_over
from .joined_cores import CoreOutputs, Place, joined
from .signatures import signature_table
from .structured_solves import CompiledSolves

_MAX_KEPT = 64


class _CompiledForms(NamedTuple):
    """The compressed forms for some sizes, and the program that computes their cores.

    Attributes
    ----------
    forms : list of Compressed
    cores : CoreOutputs
        The distinct cores of all forms, and what is computed for them.
    places : list of list of int
        For each form, the numbers of its cores.
    ordered : bool
        Whether what is computed lies in C-order, as the data of a sparse matrix do.
    program : Compiled
    extents : list of str
        Dimensions that no argument of the program has.
    """

    forms: list[Compressed]
    cores: CoreOutputs
    places: list[list[int]]
    ordered: bool
    program: Compiled
    extents: list[str]


class _Leaf(NamedTuple):
    """A tensor of the outputs at known sizes: what its cores, by their numbers, are put into."""

    slots: list[Slot]
    form: Compressed
    numbers: list[int]
    layout: TensorLayout
    coefs: tuple[float, ...]


class _Known(NamedTuple):
    """What is known of a call by its shapes.

    Attributes
    ----------
    program : Compiled
    extents : dict
        What the program is told beside the arguments.
    places : list of Place, optional
        Of the cores, where these are not what the program returns, one by one.
    leaves : list of _Leaf
    sizes : dict
    """

    program: Compiled
    extents: dict[str, int]
    places: list[Place] | None
    leaves: list[_Leaf]
    sizes: dict[str, int]


class CompiledStructured:
    """What ``compile(…, structured=True)`` returns: calls give compressed tensors.

    The blocks of a Hessian over several variables come as one `BlockStructured`, those of a
    Jacobian over several variables, or of several outputs, as one `BlockJacobian`.

    Attributes
    ----------
    plan : Plan
        Of the cores, at the extents of bound data and 100 for other dimensions.
    """

    def __init__(
        self,
        outputs: Any,
        args: Sequence[str | Var] | None,
        backend: str | None,
        data: Mapping[str, Any] | None,
        memory_limit: int | str | None,
        check: bool,
        threads: int | None = None,
        compute: bool = True,
    ) -> None:
        self._outputs = outputs
        self._options = args, backend, OwnData.of(data), memory_limit, check, threads, compute
        self._leaves: list[Expr] = []
        self._rows: list[range] = []  # of blocks of Jacobians
        self._make = self._planned(outputs)
        self._forms = [compress(leaf) for leaf in self._leaves]
        self._slots = [leaf.slots if isinstance(leaf, Derivative) else [] for leaf in self._leaves]
        self._limit = read_bytes(memory_limit)
        row = backend_named(backend, threads, compute)
        self._memory = row.memory if row.device and self._limit is None else lambda: self._limit
        self._solves = CompiledSolves(backend, threads)
        self._default = self._variant(self._forms)
        unbound = {*self._default.extents}  # such as the numbers of steps of loops
        whole = {
            e: leaf
            for leaf, f in zip(self._leaves, self._forms, strict=True)
            for e in (*named_extents(f), *unbound.intersection(dimensions(f.cores)))
        }
        self._extents = {
            name: keeping_variables(filled(Coef(1, (name,)), ()), whole[name].variables.values())
            for name in sorted(whole)
        }
        self._sizes = Compiled(self._extents, *self._options)
        self._variants: dict[tuple[Any, ...], _CompiledForms] = {}
        self._known: dict[Any, _Known] = {}
        numbers = {"cores": self._default.cores.cores, "extents": self._extents}
        self._unread = _variables_and_dimensions(trees.leaves(outputs)) - _variables_and_dimensions(
            trees.leaves(numbers)
        )

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        if arguments:
            values = self._sizes.named(arguments, values)
        if not all(map(str.isascii, values)):
            values = by_name(values)
        key = self._key(values)
        known = self._known.get(key) if key is not None else None
        if known is None:
            known = self._known_at(key, self._sizes(**values), self._sparse(values))
        cores = [_array(output) for output in known.program(**(known.extents | values))]
        if known.places is not None:
            cores = [place.of(cores) for place in known.places]
        made, limit = [], self._memory()
        for slots, form, numbers, layout, coefs in known.leaves:
            held = [cores[k] for k in numbers]
            if form.tables:
                held = _with_tables(form, held, known.sizes)
            if any(map(is_sparse, held)):
                terms = sparse_terms(layout, held, coefs, self._written_out)
            else:
                terms = Terms(layout, held, coefs)
            made.append(Structured(terms, slots, limit, self._solves))
        return self._make(made)

    def _written_out(self, core: Any) -> AnyArray:
        """A core that is sparse data as an array, where it lies."""
        need = prod(core.shape) * core.dtype.itemsize
        allowed = machine_memory() if self._limit is None else self._limit
        if allowed is not None and need > allowed:
            raise MemoryLimitError(
                f"{show_bytes(need)} needed for the vectors of a sparse matrix of shape "
                f"{show_shape(core.shape)}, {show_bytes(allowed)} available"
            )
        found: np.ndarray[Any, Any] = core.toarray()
        return found

    def _key(self, values: Mapping[str, Any]) -> Any:
        """Shapes and extents that determine all sizes; None where arguments are no plain arrays."""
        found: list[Any] = []
        for name, value in values.items():
            number = isinstance(value, int | float | np.generic)
            if name in self._extents and (number or np.ndim(value) == 0):
                found.append((name, value if number else np.asarray(value).item()))
            elif type(value) is np.ndarray:
                found.append((name, value.shape))
            elif number:
                found.append((name, type(value)))
            else:
                return None
        return tuple(found)

    def _sparse(self, values: Mapping[str, Any]) -> dict[str, int]:
        """About how many entries sparse data have, by name."""
        data = {**self._options[2], **values}
        return {name: held_entries(v.tocsr()) for name, v in data.items() if is_sparse(v)}

    def _known_at(self, key: Any, extents: Mapping[str, Any], sparse: Mapping[str, int]) -> _Known:
        """What is known at these extents, cached by key."""
        sizes = {name: int(extent) for name, extent in extents.items()}
        variant = self._variant_at(sizes, sparse)
        places = variant.cores.places(sizes) if variant.cores.rows else None
        leaves = [
            _Leaf(slots, form, numbers, *form.layout(sizes))
            for slots, form, numbers in zip(self._slots, variant.forms, variant.places, strict=True)
        ]
        told = {name: sizes[name] for name in variant.extents}
        found = _Known(variant.program, told, places, leaves, sizes)
        if len(self._known) >= _MAX_KEPT:
            self._known.clear()
        if key is not None:
            self._known[key] = found
        return found

    @property
    def plan(self) -> Any:
        nominal = all(map(str.isidentifier, self._extents))
        sizes = dict.fromkeys(self._extents, NOMINAL)
        return self._whole(self._variant_at(sizes) if nominal else self._default).plan

    def plan_for(self, /, **shapes: Any) -> Any:
        """The plan of the cores at given shapes and extents, without allocating arrays."""
        read = {name: shape for name, shape in shapes.items() if name not in self._unread}
        sizes = _sizes_of(variables(self._leaves), shapes)
        known = sizes.keys() >= self._extents.keys()
        variant = self._variant_at(sizes) if known else self._default
        return self._whole(variant).plan_for(**read)

    def _whole(self, variant: _CompiledForms) -> Compiled:
        """The program of cores and extents: these may read variables that the cores do not."""
        numbers = {"cores": variant.cores.outputs, "extents": self._extents}
        return Compiled(numbers, *self._options, ordered=variant.ordered)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._outputs, *self._options)

    def _taken(self) -> dict[str, Shape]:
        return {name: v.shape for name, v in variables(self._leaves).items()}

    def __repr__(self) -> str:
        shapes = trees.shown_shapes(self._outputs)
        taken = ", ".join([f"{name} {show_shape(shape)}" for name, shape in self._taken().items()])
        return f"<CompiledStructured {shapes} of {taken or 'no variables'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it takes and gives."""
        _, backend, data, *_ = self._options
        title = f"function for {backend}, results compressed"
        leaves = trees.leaves(self._outputs)
        return signature_table(title, self._taken(), data or (), self._outputs, leaves)

    def _variant_at(
        self, sizes: Mapping[str, int], sparse: Mapping[str, int] | None = None
    ) -> _CompiledForms:
        sparse = sparse or {}
        key = *[sizes[name] for name in self._extents], *sorted(sparse.items())
        found = self._variants.get(key)
        if found is None:
            if len(self._variants) >= _MAX_KEPT:
                self._variants.clear()
            forms = [form.at(sizes, sparse) for form in self._forms]
            same = all(f is g for f, g in zip(forms, self._forms, strict=True))
            found = self._variants[key] = self._default if same else self._variant(forms)
        return found

    def _variant(self, forms: list[Compressed]) -> _CompiledForms:
        cores, places = self._cores_of(forms)
        bound = extent_names([n for v in variables(cores).values() for n in v.shape])
        free = [name for name in dimensions(cores) if name not in bound]
        made = joined(cores, [[forms[k] for k in row] for row in self._rows])
        # What has tables multiplies as a sparse matrix, and becomes one.
        ordered = bool(made.rows) or any(form.tables for form in forms)
        program = Compiled(made.outputs, *self._options, lent=True, ordered=ordered)
        return _CompiledForms(forms, made, places, ordered, program, free)

    def _cores_of(self, forms: list[Compressed]) -> tuple[list[Expr], list[list[int]]]:
        place: dict[int, int] = {}
        cores: list[Expr] = []
        places = []
        for form in forms:
            row = []
            for core in form.cores:
                if id(core) not in place:
                    place[id(core)] = len(cores)
                    cores.append(core)
                row.append(place[id(core)])
            places.append(row)
        return cores, places

    def _planned(self, tree: Any) -> Callable[[Sequence[Structured]], Any]:
        """A function that builds a subtree of the outputs from the tensors of `_leaves`."""
        template = hessian_over(tree)
        if template is not None:
            return self._hessian(tree, template)
        templates = jacobian_over(tree)
        if templates is not None:
            return self._jacobian(tree, *templates)
        if isinstance(tree, dict):
            named = {key: self._planned(value) for key, value in tree.items()}
            return lambda made: trees.NamedBlock({k: make(made) for k, make in named.items()})
        if isinstance(tree, tuple | list):
            parts = [self._planned(value) for value in tree]
            return lambda made: trees.Block([make(made) for make in parts])
        place = len(self._leaves)
        self._leaves.append(tree)
        return lambda made: made[place]

    def _jacobian(
        self, tree: Any, outputs: Any, inputs: Any
    ) -> Callable[[Sequence[Structured]], BlockJacobian]:
        """As `_planned` for a Jacobian of several outputs or by several variables."""
        start, columns = len(self._leaves), len(trees.leaves(inputs))
        self._leaves += trees.leaves(tree)
        stop = len(self._leaves)
        self._rows += [range(k, k + columns) for k in range(start, stop, columns)]

        def make(made: Sequence[Structured]) -> BlockJacobian:
            rows = [made[k : k + columns] for k in range(start, stop, columns)]
            return BlockJacobian(outputs, inputs, rows)

        return make

    def _hessian(self, tree: Any, template: Any) -> Callable[[Sequence[Structured]], Any]:
        """As `_planned` for a Hessian: blocks below the diagonal are transposes."""
        blocks = trees.leaves(tree)
        count = len(trees.leaves(template))
        place = {}
        for i in range(count):
            for j in range(i, count):
                place[i, j] = len(self._leaves)
                self._leaves.append(blocks[i * count + j])

        def make(made: Sequence[Structured]) -> BlockStructured:
            rows = [
                [made[place[i, j]] if i <= j else made[place[j, i]].T for j in range(count)]
                for i in range(count)
            ]
            return BlockStructured(template, rows)

        return make


def _array(core: Any) -> Any:
    """A core as an array, where it lies, or as the sparse data that it is."""
    return core if is_sparse(core) or on_device(core) else np.asarray(core)


def _with_tables(form: Compressed, cores: list[Any], sizes: Mapping[str, int]) -> list[Any]:
    """The factors, then the tables with indices checked against every extent they are used for."""
    count = len(form.arrays)
    place = {id(core): k for k, core in enumerate(form.cores) if k >= count}
    tables = [
        _in_range(cores[place[id(table)]], extent_of(extent, sizes), table)
        for table, extent in form.tables
    ]
    return [*cores[:count], *tables]


def _in_range(table: AnyArray, extent: int, what: Expr) -> AnyArray:
    """The indices of a table, looked at on the host."""
    return moved(checked(on_host(table), extent, what), namespace_of(table))


def _sizes_of(known: Mapping[str, Var], shapes: Mapping[str, Any]) -> dict[str, int]:
    """Extents of dimensions from shapes of variables and extents by name."""
    sizes = {name: int(e) for name, e in shapes.items() if isinstance(e, int) and name not in known}
    for name, v in known.items():
        given = shapes.get(name, ())
        given = (given,) if isinstance(given, int) else given
        if isinstance(given, tuple | list) and len(given) == v.ndim:
            pairs = zip(v.shape, given, strict=True)
            sizes.update({d: int(e) for d, e in pairs if d in extent_names([d])})
    return sizes


def _variables_and_dimensions(leaves: Sequence[Expr]) -> set[str]:
    return {*variables(leaves), *dimensions(leaves)}
