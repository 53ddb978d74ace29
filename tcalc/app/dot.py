"""Graphviz text of expressions: the DAG, every node once, with what each costs on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from ..graph import trees
from ..graph.applications import application
from ..graph.extents import ONE, Coef, Extent, extent_of, show_shape
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Labels, Part, Var, postorder
from ..graph.normal import bare
from ..graph.operators import Loop
from ..languages.writing.calls import call_parameters
from ..languages.writing.loops import loop_of, loop_word, range_of
from ..languages.writing.notation import MAX_SHOWN, index_letters
from ..plan.lowering.make import make_plan, operations_by_node
from ..support.byte_counts import show_bytes
from ..support.records import NamedTuple
from .explain import all_sizes

#: How nodes look, by their role; colours that read on light and on dark pages.
LOOKS = {
    "variable": 'shape=ellipse, fillcolor="#cfe8ff"',
    "constant": 'shape=ellipse, fillcolor="#eeeeee"',
    "product": 'shape=box, fillcolor="#fff3c4"',
    "sum": 'shape=box, style="filled,rounded", fillcolor="#d8f5d0"',
    "operator": 'shape=box, style="filled,rounded", fillcolor="#f4dcff"',
    "output": 'shape=plain, style="", fontcolor="#808080"',
}
HEAD = """digraph expression {
  bgcolor="transparent"
  fontname="Helvetica"
  fontcolor="#808080"
  node [fontname="Helvetica", fontsize=11, style=filled, color="#808080", fontcolor="#000000"]
  edge [fontname="Helvetica", fontsize=9, color="#808080", fontcolor="#808080"]
"""
ITEM = 8  #: bytes of an entry


class Look(NamedTuple):
    """What is shown of a node: its role, its name, and a name of each edge that leads to it."""

    role: str
    name: str
    edges: Sequence[str] = ()


def quoted(text: str) -> str:
    """A string of DOT: no quote ends it, and no backslash is an escape."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\r", "").replace("\n", "\\n") + '"'


# --- one node -------------------------------------------------------------------------------------


def look(node: Expr) -> Look:
    """The role and the name of a node."""
    if isinstance(node, Var):
        return Look("variable", " ".join([node.name, *_worded(node.properties)]))
    if isinstance(node, Const):
        few = node.value.size <= MAX_SHOWN // 8
        return Look("constant", str(node.value.tolist()) if few else "const")
    if isinstance(node, Add):
        return Look("sum", "+")
    if isinstance(node, Einsum):
        return _product(node)
    if isinstance(node, Part):
        if loop_of(node) is not None:
            return Look("operator", "".join(loop_word(node)))
        return Look("operator", application(node).op.parts[node.index])
    assert isinstance(node, Apply)
    several = len(node.args) > 1
    places = [str(k + 1) for k in range(len(node.args))] if several else []
    return Look("operator", _called(node), places)


def _called(node: Apply) -> str:
    """The name of an operator with its parameters, of a loop with its range."""
    name = node.op.spelling.printed or node.op.name
    if isinstance(node.op, Loop):
        return f"{name} {range_of(node.op.iteration(node.params, ()))}"
    extra = [f"{key}={value}" if key else str(value) for key, value in call_parameters(node)]
    return f"{name}({', '.join(extra)})" if extra else name


def _worded(properties: Sequence[str]) -> list[str]:
    return [f"({', '.join(properties)})"] if properties else []


def _product(node: Einsum) -> Look:
    """A product: its coefficient and its einsum, whose words stand at the edges too."""
    names: dict[int, str] = {}
    fresh = index_letters()
    for label in [label for word in (*node.labels, node.out) for label in word]:
        if label not in names:
            names[label] = next(fresh)
    *words, out = ["".join([names[k] for k in word]) for word in (*node.labels, node.out)]
    coef = coefficient(node.coef)
    if not node.args and not node.out:
        return Look("constant", coef or "1")
    if words == [out]:
        return Look("product", f"* {coef}")
    scaled = [f"{coef} *"] if coef else []
    spec = [f"{','.join(words)}->{out}"] if words else [f"->{out}"]
    sizes = _unseen(node.out, node.labels, names, node.extents)
    return Look("product", "\n".join([*scaled, *spec, *sizes]), words if words[1:] else ())


def _unseen(
    out: Labels, labels: Sequence[Labels], names: Mapping[int, str], extents: Sequence[Extent]
) -> list[str]:
    """The extents of indices that no operand has."""
    seen = {label for word in labels for label in word}
    rows = [f"{names[k]}={extents[k]}" for k in dict.fromkeys(out) if k not in seen]
    return [", ".join(rows)] if rows else []


def coefficient(coef: Coef) -> str:
    """A coefficient of a product; empty where it is 1."""
    if coef == ONE:
        return ""
    above = " * ".join([*([repr(coef.value)] if coef.value != 1 else []), *map(str, coef.times)])
    return " / ".join([above or "1", *map(str, coef.over)])


# --- the graph ------------------------------------------------------------------------------------


def to_dot(e: Any, costs: bool = False, **sizes: int) -> str:
    """The graph of an expression in the language of Graphviz, every shared part once.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        The parts of a nest are one graph, with an arrow out of it for each.
    costs : bool
        Also show the operations that each node adds, as the expression is spelled, and the memory
        that its entries would take as float64; and those of the whole plan, which may spell it
        otherwise.
    **sizes : int
        Extents of dimensions, for `costs`; the others count 100.

    Returns
    -------
    str
        A ``digraph``. Edges lead from operands to what is made of them. Nodes are told by role:
        variables and constants, products with their einsum, sums, operators.

    Raises
    ------
    TypeError
        For what is no expression; for sizes of other dimensions, or without `costs`.

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    >>> "ij,j->i" in tc.to_dot(tc.exp(A @ x))
    True
    """
    found = trees.leaves(e)
    for part in found:
        if not isinstance(part, Expr):
            raise TypeError(f"graphs are drawn of expressions, not of {type(part).__name__}")
    if sizes and not costs:
        raise TypeError("sizes are for costs=True")
    roots = [bare(part) for part in found]
    known = all_sizes(found, sizes) if costs else None
    lines = [HEAD]
    if known is not None:
        lines.append(f"  label={quoted(_total(roots, known))}\n")
    lines += _nodes(roots, known)
    number = {id(node): k for k, node in enumerate(postorder(roots))}
    for k, (root, place) in enumerate(zip(roots, trees.places(e), strict=True)):
        lines.append(f"  out{k} [label={quoted(str(place))}, {LOOKS['output']}]\n")
        lines.append(f"  n{number[id(root)]} -> out{k}\n")
    return "".join([*lines, "}"])


def _total(roots: Sequence[Expr], sizes: Mapping[str, int]) -> str:
    plan = make_plan(roots, sizes)
    at = ", ".join([f"{name} = {extent}" for name, extent in sizes.items()])
    cost = f"{plan.flops:.3g} operations, {show_bytes(plan.peak_bytes)} at the peak"
    return f"{cost}, at {at}" if at else cost


def _nodes(roots: Sequence[Expr], sizes: Mapping[str, int] | None) -> Iterator[str]:
    """The lines of all nodes and of the edges between them."""
    nodes = postorder(roots)
    number = {id(node): k for k, node in enumerate(nodes)}
    flops = operations_by_node(roots, sizes) if sizes is not None else {}
    for node in nodes:
        shown = look(node)
        rows = [shown.name, show_shape(node.shape)] if node.shape else [shown.name]
        if sizes is not None:
            rows.append(_cost(node, flops.get(id(node), 0.0), sizes))
        label = quoted("\n".join([row for row in rows if row]))
        yield f"  n{number[id(node)]} [label={label}, {LOOKS[shown.role]}]\n"
        for k, arg in enumerate(node.args):
            name = f" [label={quoted(shown.edges[k])}]" if shown.edges else ""
            yield f"  n{number[id(arg)]} -> n{number[id(node)]}{name}\n"


def _cost(node: Expr, flops: float, sizes: Mapping[str, int]) -> str:
    entries = prod([extent_of(extent, sizes) for extent in node.shape])
    memory = show_bytes(ITEM * entries)
    return f"{flops:.3g} operations, {memory}" if flops else memory
