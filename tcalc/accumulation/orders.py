"""Three orders of accumulation on the linearised graph: forward, reverse, cross-country.

Forward mode multiplies partials from the input on, reverse mode from the output on, and
cross-country mode in order of tensor order: vectors first, then matrices, and so on (Laue,
Mitterreiter, Giesen 2020). All three use the local rules of `partials`. What they derive by need
not be variables: nodes that take the place of these are leaves, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeVar

from ..graph.applications import application, parts
from ..graph.extents import NOMINAL, extent_of
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, dimensions, postorder
from ..graph.normal import add, einsum
from ..graph.operators import Loop
from ..graph.products import zeros_node
from ..support.records import NamedTuple
from .loops_once import loop_cotangents, loop_tangents
from .partials import local_pullback, local_pushforward, operands_of, unit_tensor

#: What tangents are given of.
Leaf = TypeVar("Leaf", bound=Expr)

#: Partial derivatives by the ids of the nodes of an edge.
PartialsByEdge = dict[int, dict[int, Expr]]


def dependent(roots: Sequence[Expr], wrt: Sequence[Expr]) -> list[Expr]:
    """Nodes below the roots that depend on one of wrt, operands first.

    Of an operator with several outputs each output is among them, not the application, unless the
    operator is a loop, which differentiates all outputs at once.
    """
    inside = {id(v) for v in wrt}
    found = []
    for node in postorder(roots):
        if id(node) in inside:
            found.append(node)
        elif isinstance(node, Apply) and node.op.outputs > 1 and not loop_operator(node):
            continue
        elif any(id(arg) in inside for arg in operands_of(node)):
            inside.add(id(node))
            found.append(node)
    return found


def loop_operator(node: Expr) -> Loop | None:
    """The operator of a loop, which differentiates all outputs by all operands at once, or None."""
    return node.op if isinstance(node, Apply) and isinstance(node.op, Loop) else None


def pushforwards(roots: Sequence[Expr], seeds: Mapping[Leaf, Expr]) -> list[Expr | None]:
    """Tangents of the roots, given those of variables, of shape variable + directions.

    None where a root depends on none of the variables.
    """
    tangents: dict[int, Expr | None] = {id(v): t for v, t in seeds.items()}
    several: dict[int, Sequence[Expr | None]] = {}
    for node in dependent(roots, list(seeds)):
        if id(node) in tangents:
            continue
        if isinstance(node, Apply) and (loop := loop_operator(node)):
            given = [tangents.get(id(arg)) for arg in node.args]
            if any(t is not None for t in given):
                several[id(node)] = loop_tangents(loop, node, given)
            continue
        if isinstance(node, Part) and loop_operator(node.args[0]):
            if id(node.args[0]) in several:
                tangents[id(node)] = several[id(node.args[0])][node.index]
            continue
        found = []
        for k, arg in enumerate(operands_of(node)):
            tangent = tangents.get(id(arg))
            part = None if tangent is None else local_pushforward(node, k, tangent)
            if part is not None:
                found.append(part)
        if found:
            tangents[id(node)] = add(found)
    return [tangents.get(id(root)) for root in roots]


class Row(NamedTuple):
    """What a reverse accumulation begins and ends with.

    Attributes
    ----------
    roots, seeds : sequence of Expr
        Where it begins, and the cotangents there, of shape outputs + root.
    wrt : sequence of Expr
        What cotangents are asked for of.
    """

    roots: Sequence[Expr]
    seeds: Sequence[Expr]
    wrt: Sequence[Expr]


def pullbacks(
    roots: Sequence[Expr], seeds: Sequence[Expr], wrt: Sequence[Expr]
) -> list[Expr | None]:
    """Cotangents of variables, given those of the roots, of shape outputs + root.

    None where a variable has no influence.
    """
    return pullbacks_of_rows([Row(roots, seeds, wrt)])[0]


def pullbacks_of_rows(rows: Sequence[Row]) -> list[list[Expr | None]]:
    """Those of several rows, which meet in loops alone: one is derived for all rows at once."""
    every = [_RowPullback(row) for row in rows]
    for node in reversed(postorder([root for row in rows for root in row.roots])):
        if loop := loop_operator(node):
            assert isinstance(node, Apply)
            asked = [own for own in every if id(node) in own.several]
            if asked:
                bars = [own.of_outputs(node) for own in asked]
                wanted = [own.wanted(node) for own in asked]
                found = loop_cotangents(loop, node, bars, wanted)
                for own, parts_of_own in zip(asked, found, strict=True):
                    own.receive(node.args, parts_of_own)
        else:
            for own in every:
                own.visit(node)
    return [[own.done.get(id(v)) for v in own.row.wrt] for own in every]


class _RowPullback:
    """The reverse accumulation of one row.

    Attributes
    ----------
    waiting : dict
        Parts of cotangents, by the id of the node that they are of.
    several : dict
        Cotangents of outputs of loops, by the id of the loop and their numbers.
    done : dict
        Those of `row.wrt`, by id.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self.waiting: dict[int, list[Expr]] = {}
        for root, seed in zip(row.roots, row.seeds, strict=True):
            self.waiting.setdefault(id(root), []).append(seed)
        self.several: dict[int, dict[int, Expr]] = {}
        self.done: dict[int, Expr] = {}
        self.leaves = set(map(id, row.wrt))
        self.inside = {id(node) for node in dependent(row.roots, row.wrt)}

    def visit(self, node: Expr) -> None:
        """Pass on what waits at a node that is no loop."""
        if id(node) not in self.waiting or id(node) not in self.inside:
            return
        cotangent = add(self.waiting.pop(id(node)))
        if id(node) in self.leaves:
            self.done[id(node)] = cotangent
        elif isinstance(node, Part) and loop_operator(node.args[0]):
            self.several.setdefault(id(node.args[0]), {})[node.index] = cotangent
        else:
            args = operands_of(node)
            wanted = [id(arg) in self.inside for arg in args]
            self.receive(
                args,
                [local_pullback(node, k, cotangent) if w else None for k, w in enumerate(wanted)],
            )

    def of_outputs(self, node: Apply) -> list[Expr | None]:
        """Cotangents of all outputs of a loop."""
        own = self.several[id(node)]
        return [own.get(k) for k in range(len(parts(node)))]

    def wanted(self, node: Apply) -> list[bool]:
        return [id(arg) in self.inside for arg in node.args]

    def receive(self, args: Sequence[Expr], found: Sequence[Expr | None]) -> None:
        """Parts of the cotangents of operands."""
        for arg, part in zip(args, found, strict=True):
            if part is not None:
                self.waiting.setdefault(id(arg), []).append(part)


def pushforward(e: Expr, seeds: Mapping[Leaf, Expr]) -> Expr:
    """The tangent of e, given tangents of variables: all of shape variable + directions."""
    first, seed = next(iter(seeds.items()))
    (found,) = pushforwards([e], seeds)
    return zeros_node(e.shape + seed.shape[first.ndim :]) if found is None else found


def pullback(e: Expr, seed: Expr, wrt: Sequence[Expr]) -> list[Expr]:
    """Cotangents of variables, given that of e: of shape outputs + e, and outputs + variable."""
    return _with_zeros(Row([e], [seed], wrt), pullbacks([e], [seed], wrt))


def _with_zeros(row: Row, found: Sequence[Expr | None]) -> list[Expr]:
    """The cotangents of a row with one root, those that are zero too."""
    (e,), (seed,), wrt = row
    outputs = seed.shape[: seed.ndim - e.ndim]
    return [
        zeros_node(outputs + v.shape) if f is None else f for f, v in zip(found, wrt, strict=True)
    ]


def forward(e: Expr, wrt: Sequence[Expr]) -> list[Expr]:
    return [pushforward(e, {v: unit_tensor(v.shape)}) for v in wrt]


def reverse(e: Expr, wrt: Sequence[Expr]) -> list[Expr]:
    return pullback(e, unit_tensor(e.shape), wrt)


def reverse_of_rows(rows: Sequence[tuple[Expr, Sequence[Expr]]]) -> list[list[Expr]]:
    """Derivatives of several expressions, each by its own variables."""
    seeded = [Row([e], [unit_tensor(e.shape)], wrt) for e, wrt in rows]
    return list(map(_with_zeros, seeded, pullbacks_of_rows(seeded)))


def cross_country(e: Expr, wrt: Sequence[Expr]) -> list[Expr]:
    """Vertex elimination on the linearised graph, lowest tensor order first."""
    return _VertexElimination(e, wrt).run()


#: Orders of accumulation by name.
MODES = {"forward": forward, "reverse": reverse, "cross-country": cross_country}


def loops_apart(e: Expr, wrt: Sequence[Expr]) -> bool:
    """Would cross-country elimination derive a loop in more directions than another order?

    It takes a loop by every operand, or for every output, apart; forward mode by all of wrt at
    once, reverse mode for all of e. Extents count as NOMINAL.
    """
    sizes = dict.fromkeys(dimensions([e, *wrt]), NOMINAL)

    def entries(node: Expr) -> int:
        return prod([extent_of(n, sizes) for n in node.shape])

    nodes = dependent([e], wrt)
    inside = set(map(id, nodes))
    taken: dict[int, dict[int, int]] = {}
    for node in nodes:
        if isinstance(node, Part) and loop_operator(node.args[0]):
            directions = taken.setdefault(id(node.args[0]), {})
            for arg in operands_of(node):
                if id(arg) in inside:
                    chosen = node if node.ndim < arg.ndim else arg
                    directions[id(chosen)] = entries(chosen)
    least = min(entries(e), sum(map(entries, wrt)))
    return any(sum(found.values()) > least for found in taken.values())


class _VertexElimination:
    """The linearised graph: an edge u -> v carries the partial derivative of v with respect to u.

    Eliminating a vertex replaces the paths through it by edges with the products of their partials
    (Griewank and Walther 2008, chapter 9).
    """

    def __init__(self, e: Expr, wrt: Sequence[Expr]) -> None:
        self.e, self.wrt = e, wrt
        self.nodes = [node for node in dependent([e], wrt) if not loop_operator(node)]
        self.into: PartialsByEdge = {id(node): {} for node in self.nodes}
        self.onto: PartialsByEdge = {id(node): {} for node in self.nodes}
        self.at = {id(node): node for node in self.nodes}
        self.place = {id(node): k for k, node in enumerate(self.nodes)}
        self.depth = self.depths()
        self.several: dict[tuple[int, bool, int], Sequence[Expr | None]] = {}
        leaves = set(map(id, wrt))
        for node in self.nodes:
            for k, arg in enumerate(operands_of(node)):
                if id(arg) in self.at and id(node) not in leaves:
                    part = self.edge(node, k, arg)
                    if part is not None:
                        self.join(id(arg), id(node), part)

    def edge(self, node: Expr, k: int, arg: Expr) -> Expr | None:
        """The derivative of a node by operand k."""
        if isinstance(node, Part) and (loop := loop_operator(node.args[0])):
            return self.joint_edge(node, loop, k, arg)
        return local_pushforward(node, k, unit_tensor(arg.shape))

    def joint_edge(self, node: Part, loop: Loop, k: int, arg: Expr) -> Expr | None:
        """That of one output of a loop, from whichever of both modes has fewer directions."""
        whole, by_output = application(node), node.ndim < arg.ndim
        key = id(whole), by_output, node.index if by_output else k
        if key not in self.several and by_output:
            bar = unit_tensor(node.shape)
            given = [bar if i == node.index else None for i in range(len(parts(whole)))]
            wanted = [id(operand) in self.at for operand in whole.args]
            (self.several[key],) = loop_cotangents(loop, whole, [given], [wanted])
        elif key not in self.several:
            tangent = unit_tensor(arg.shape)
            given = [tangent if i == k else None for i in range(len(whole.args))]
            self.several[key] = loop_tangents(loop, whole, given)
        return self.several[key][k if by_output else node.index]

    def join(self, u: int, v: int, part: Expr) -> None:
        if u in self.into[v]:
            part = add([self.into[v][u], part])
        self.into[v][u] = self.onto[u][v] = part

    def depths(self) -> dict[int, int]:
        """Steps to the nearer end, input or output.

        A gradient is a chain of partials and then the same chain transposed: eliminated from both
        ends inwards, its two halves are built of the same products.
        """
        start = {id(v): 0 for v in self.wrt}
        end = {id(self.e): 0}
        for node in self.nodes:
            steps = [start[id(arg)] for arg in operands_of(node) if id(arg) in start]
            start.setdefault(id(node), 1 + min(steps, default=0))
        for node in reversed(self.nodes):
            after = end.get(id(node), len(self.nodes))
            for arg in operands_of(node):
                if id(arg) in start:
                    end[id(arg)] = min(end.get(id(arg), len(self.nodes)), after + 1)
        return {v: min(start[v], end.get(v, len(self.nodes))) for v in start}

    def key(self, v: int) -> tuple[int, int, int, int]:
        """Tensor order of the products that eliminating v makes, their number, and v's depth."""
        before = max([tensor_order(p) for p in self.into[v].values()], default=0)
        after = max([tensor_order(p) for p in self.onto[v].values()], default=0)
        paths = len(self.into[v]) * len(self.onto[v])
        return (max(before, after), paths, self.depth[v], self.place[v])

    def run(self) -> list[Expr]:
        ends = {id(self.e), *map(id, self.wrt)}
        heap = [self.key(v) for v in self.at if v not in ends]
        heapq.heapify(heap)
        gone: set[int] = set()
        while heap:
            key = heapq.heappop(heap)
            v = id(self.nodes[key[-1]])
            if v in gone:
                continue
            now = self.key(v)
            if now > key:
                heapq.heappush(heap, now)
                continue
            gone.add(v)
            for neighbour in self.eliminate(v):
                if neighbour not in ends:
                    heapq.heappush(heap, self.key(neighbour))
        last = id(self.e)
        return [unit_tensor(v.shape) if v is self.e else self.result(last, v) for v in self.wrt]

    def result(self, last: int, v: Expr) -> Expr:
        found = self.into.get(last, {}).get(id(v))
        return zeros_node(self.e.shape + v.shape) if found is None else found

    def eliminate(self, v: int) -> list[int]:
        """Every path through v becomes an edge past it; the neighbours are returned."""
        n = self.at[v].ndim
        before, after = self.into.pop(v), self.onto.pop(v)
        for w in after:
            del self.into[w][v]
        for u, right in before.items():
            del self.onto[u][v]
            for w, left in after.items():
                m, k = left.ndim - n, right.ndim - n
                shared = tuple(range(n))
                out, inner = tuple(range(n, n + m)), tuple(range(n + m, n + m + k))
                part = einsum([left, right], [out + shared, shared + inner], out + inner)
                self.join(u, w, part)
        return [*before, *after]


def tensor_order(partial: Expr) -> int:
    """Number of indices of a partial derivative without its unit tensors."""
    if isinstance(partial, Einsum) and not partial.summed:
        return len(partial.extents)
    if isinstance(partial, Add):
        return max([tensor_order(t) for t in partial.args])
    return partial.ndim
