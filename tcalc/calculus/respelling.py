"""Derivatives of equal functions: the same numbers, found through another spelling of the function.

A person may pass parameters apart or as slices of one vector, and may write distances by
differences or by inner products. Derivatives by a vector are products with selections of its
slices, which keep what belongs to one of them from being told from the rest. So what is a large
enough computation is derived once more: by the parts of variables that are read as disjoint parts
only, in the shape in which they are read, of the function with distances as sums of squares and
with multiples of the identity plus squares of few columns by small matrices. The blocks are then
placed.

Where a call would take more memory than it may, functions are derived once more whose loops keep
states now and then only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

from ..graph import trees
from ..graph.applications import rewritten
from ..graph.bound_variables import Scope
from ..graph.extents import ONE, Extent, extent_of
from ..graph.factors import LabelledExpr, indicates
from ..graph.nodes import Apply, Derivative, Einsum, Expr, Part, Var, postorder
from ..graph.normal import add, bare, einsum
from ..graph.operators import Loop
from ..integers.affine import Constraint
from ..ops.reshape import merges
from ..plan.lowering.spellings import summed_inside
from ..rules.distances import by_differences
from ..rules.low_rank import by_low_rank
from ..rules.strategy import simplify
from ..support.machine import Machine
from ..support.records import NamedTuple
from .merged_ends import apart
from .modes import COMPARED
from .transforms import derivative

#: Parts of one variable up to which blocks are derived one by one.
MAX_PARTS = 8
#: On which all sums over the steps of a loop that can be are made in it.
STEPWISE = Machine(call=0)

#: The cheapest values of roots, each of which may have several.
Choose = Callable[[Sequence[Sequence[Expr]]], list[Expr]]


class _Part(NamedTuple):
    """A part of a variable: a variable of its own, and the expression that it stands for.

    That is entries of the variable, or these with merged axes where they are read so.
    """

    variable: Var
    read: Expr

    @property
    def entries(self) -> Expr:
        """The part in the shape in which the variable has it."""
        return self.read.args[0] if merges(self.read) else self.read


class _Respelled(NamedTuple):
    """A function of the parts of variables, by their names; and those it is derived by."""

    value: Expr
    parts: Mapping[str, Sequence[_Part]]


def respelled(
    roots: Sequence[Expr],
    sizes: Mapping[str, int],
    choose: Choose,
    checkpoints: bool = False,
    mode: str = "auto",
) -> list[Expr] | None:
    """The values of the roots, derivatives as those of functions spelled otherwise.

    Parameters
    ----------
    roots : sequence of Expr
    sizes : mapping
        Extents of dimensions.
    choose : callable
        Which of the values is taken that the derivatives by parts may have.
    checkpoints : bool
        Whether these are functions whose loops keep states now and then, in place of all others.
    mode : str
        As of `derivative`; with checkpoints it is reverse, the mode that reads states again.

    Returns
    -------
    list of Expr, or None where no function has another spelling.
    """
    mode = "reverse" if checkpoints else mode
    groups: dict[int, list[int]] = {}
    for k, root in enumerate(roots):
        if isinstance(root, Derivative) and root.wrt:
            groups.setdefault(id(root.of), []).append(k)
    found: dict[int, Expr] = {}
    with Scope() as scope:
        for places in groups.values():
            derivatives = [root for k in places if isinstance(root := roots[k], Derivative)]
            other = (_stretched if checkpoints else _other)(derivatives, sizes, scope)
            if other is not None:
                found.update(zip(places, _derived(derivatives, other, choose, mode), strict=True))
    rest = [bare(root) for root in roots]
    others = rest if checkpoints else by_low_rank(rest, sizes)
    if not found and all(a is b for a, b in zip(others, rest, strict=True)):
        return None
    return [found.get(k, other) for k, other in enumerate(others)]


def _other(
    roots: Sequence[Derivative], sizes: Mapping[str, int], scope: Scope
) -> _Respelled | None:
    """Another spelling of what the roots are derivatives of; None where there is none."""
    origin = simplify(bare(roots[0].of))
    if len(postorder([origin])) > COMPARED:
        return None
    (value,) = by_low_rank(by_differences([origin]), sizes)
    wrt = {v.name: v for root in roots for v in root.wrt}
    parts = {name: _parts(value, v, sizes, scope) for name, v in wrt.items()}
    split: dict[int, Expr] = {}
    for part in [part for own in parts.values() for part in own]:
        split[id(part.entries)] = apart(part.variable, 0, part.read)
        split[id(part.read)] = part.variable
    if value is origin and all(
        isinstance(part.read, Var) for own in parts.values() for part in own
    ):
        return None
    (value,) = rewritten([value], lambda new, old: split.get(id(old), new))
    return _Respelled(value, parts)


def _stretched(
    roots: Sequence[Derivative], sizes: Mapping[str, int], _: Scope
) -> _Respelled | None:
    """What the roots are derivatives of with loops in stretches; None where there is none.

    Sums over all steps are made in the loops first, which then have last states only.
    """
    origin = simplify(bare(roots[0].of))
    values = summed_inside([origin], sizes, STEPWISE)
    read = {(id(e.args[0]), e.index) for e in postorder(values) if isinstance(e, Part)}
    several: dict[int, tuple[Expr, ...]] = {}

    def change(new: Expr, old: Expr) -> Expr:
        if isinstance(old, Part) and id(old.args[0]) in several:
            return several[id(old.args[0])][old.index]
        if isinstance(new, Apply) and isinstance(new.op, Loop):
            found = new.op.stretched(new, sizes)
            last = len(found or ())
            if found is not None and all(k < last for key, k in read if key == id(old)):
                several[id(old)] = found
        return new

    (value,) = rewritten(values, change)
    if not several:
        return None
    return _Respelled(value, {v.name: [_Part(v, v)] for root in roots for v in root.wrt})


def _parts(value: Expr, v: Var, sizes: Mapping[str, int], scope: Scope) -> list[_Part]:
    """The parts of a variable that are read; it itself where these are no disjoint parts."""
    if v.properties:
        return [_Part(v, v)]
    readers: dict[int, list[Expr]] = {}
    for node in postorder([value]):
        for arg in node.args:
            readers.setdefault(id(arg), []).append(node)
    read = readers.get(id(v), [])
    found: list[Expr] = [v]
    if 0 < len(read) <= MAX_PARTS and all(map(_is_part, read)):
        entries = [prod([extent_of(n, sizes) for n in e.shape]) for e in (v, *read)]
        found = found if sum(entries[1:]) > entries[0] else sorted(read, key=_start)
    shaped = [_merged_alone(e, readers.get(id(e), [])) for e in found]
    return [
        _Part(v if e is v else scope.number("part", k, e.shape), e) for k, e in enumerate(shaped)
    ]


def _merged_alone(e: Expr, readers: Sequence[Expr]) -> Expr:
    """A part with merged axes, if it is read in one such shape; else the part."""
    merged = [node for node in readers if merges(node)]
    return merged[0] if len(merged) == 1 else e


def _start(e: Expr) -> int:
    """How far from its beginning a part reads a variable."""
    guards = [guard for op in e.args if indicates(op) for guard in op.params[1]]
    return sum([abs(guard.form.constant) for guard in guards if isinstance(guard, Constraint)])


def _is_part(e: Expr) -> bool:
    """Is it a variable at places that indicators say, and nothing else?"""
    if not isinstance(e, Einsum) or not e.summed or len(set(e.out)) < e.ndim:
        return False
    read = [word for op, word in zip(e.args, e.labels, strict=True) if not indicates(op)]
    return len(read) == 1 and len(set(read[0])) == len(read[0])


def _derived(
    roots: Sequence[Derivative], other: _Respelled, choose: Choose, mode: str
) -> list[Expr]:
    """The values of the roots from blocks by the parts."""
    blocks: dict[tuple[int, ...], Expr] = {}
    targets = [part for own in other.parts.values() for part in own]
    places = {id(part): k for k, part in enumerate(targets)}
    for order in sorted({len(root.wrt) for root in roots}):
        nest = derivative(other.value, tuple([part.variable for part in targets]), order, mode)
        keys = list(product(range(len(targets)), repeat=order))
        values = trees.leaves(nest)
        options = [_values(value) for value in values]
        flat = [value for several in options for value in several]
        written = iter(_read(flat, targets))
        options = [[next(written) for _ in several] for several in options]
        blocks.update(zip(keys, choose(options), strict=True))
    found = []
    for root in roots:
        terms = []
        for chosen in product(*[other.parts[v.name] for v in root.wrt]):
            block = blocks[tuple([places[id(part)] for part in chosen])]
            terms.append(_placed(block, root.of.ndim, chosen))
        found.append(add(terms))
    return found


def _values(e: Expr) -> Sequence[Expr]:
    if not isinstance(e, Derivative):
        return (e,)
    return e.ways(False) if e.ways else (e.first,)


def _read(values: Sequence[Expr], parts: Sequence[_Part]) -> list[Expr]:
    """The values with what parts stand for in the place of their variables."""
    read = {id(part.variable): part.read for part in parts}
    return rewritten(values, lambda new, old: read.get(id(old), new))


def _placed(block: Expr, leading: int, parts: Sequence[_Part]) -> Expr:
    """A block by parts of variables as one by the variables: zeros around it."""
    axis = leading
    for part in parts:
        block = apart(block, axis, part.read)
        axis += part.entries.ndim
    word = list(range(block.ndim))
    out = word[:leading]
    operands: list[LabelledExpr] = [(block, tuple(word))]
    extents: dict[int, Extent] = {}
    coef, axis, free = ONE, leading, block.ndim
    for part in parts:
        e = part.entries
        axes = word[axis : axis + e.ndim]
        axis += e.ndim
        if not isinstance(e, Einsum):
            out += axes
            continue
        label = {
            **{k: free + k for k in range(len(e.extents))},
            **dict(zip(e.out, axes, strict=True)),
        }
        free += len(e.extents)
        extents.update({label[k]: n for k, n in enumerate(e.extents)})
        coef = coef.by(e.coef)
        for op, own in zip(e.args, e.labels, strict=True):
            labels = tuple([label[k] for k in own])
            if indicates(op):
                operands.append((op, labels))
            else:
                out += labels
    words = [labels for _, labels in operands]
    return einsum([op for op, _ in operands], words, out, coef, extents)
