"""Graphs of expressions in Graphviz's language: what is drawn, and that names stay text."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.graph import trees
from tcalc.graph.nodes import dimensions, postorder
from tcalc.graph.normal import bare
from tcalc.plan.lowering.make import make_plan
from tests.corpus import corpus

x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
LOSS = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
GRAPHVIZ = shutil.which("dot")

STRING = r'"((?:[^"\\]|\\.)*)"'
ATTRIBUTES = rf"(?: \[(\w+=(?:{STRING}|\w+)(?:, \w+=(?:{STRING}|\w+))*)\])?"
NODE = re.compile(rf"  (\w+){ATTRIBUTES}")
EDGE = re.compile(rf"  (\w+) -> (\w+){ATTRIBUTES}")
DEFAULTS = re.compile(rf"  (?:\w+={STRING}|(?:node|edge) \[.*\])")


class Graph(NamedTuple):
    """Labels of nodes by name, and edges with their labels."""

    nodes: dict[str, str]
    edges: list[tuple[str, str, str]]
    title: str


def label(attributes: str | None) -> str:
    found = re.search(rf"label={STRING}", attributes or "")
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[1]) if found else ""


def read(text: str) -> Graph:
    """A graph; AssertionError for what is no line of nodes, edges or defaults."""
    first, *lines, last = text.split("\n")
    assert (first, last) == ("digraph expression {", "}")
    nodes: dict[str, str] = {}
    edges = []
    title = ""
    for line in lines:
        if edge := EDGE.fullmatch(line):
            assert {edge[1], edge[2]} <= nodes.keys()
            edges.append((edge[1], edge[2], label(edge[3])))
        elif DEFAULTS.fullmatch(line):
            title = label(line) or title
        else:
            node = NODE.fullmatch(line)
            assert node is not None, line
            assert node[1] not in nodes
            nodes[node[1]] = label(node[2])
    return Graph(nodes, edges, title)


def inner(graph: Graph) -> dict[str, str]:
    return {name: shown for name, shown in graph.nodes.items() if name.startswith("n")}


def test_every_node_is_drawn_once_with_an_edge_for_each_operand() -> None:
    for e in corpus().values():
        nodes = postorder([bare(e)])
        graph = read(tc.to_dot(e))
        assert len(inner(graph)) == len(nodes)
        assert len(graph.edges) == sum(len(node.args) for node in nodes) + 1


def test_what_is_shared_by_parts_of_a_nest_is_drawn_once() -> None:
    nest = {"value": LOSS, "slopes": (tc.grad(LOSS, "w"), tc.hessian(LOSS, "w"))}
    graph = read(tc.to_dot(nest))
    assert len(inner(graph)) == len(postorder(map(bare, trees.leaves(nest))))
    outputs = [shown for name, shown in graph.nodes.items() if name.startswith("out")]
    assert outputs == ["['value']", "['slopes'][0] d/dw", "['slopes'][1] d2/dw dw"]
    shown = [text.split("\n")[0] for text in inner(graph).values()]
    assert shown.count("X") == shown.count("exp") == 1


def test_products_show_their_einsum_and_edges_their_words() -> None:
    product = tc.einsum("jl->ijil", A @ A, sizes={"i": "m"})
    graph = read(tc.to_dot(3 * product))
    assert "3 *\nij->kikj\nk=m\n(m, n, m, n)" in graph.nodes.values()
    assert [text for *_, text in graph.edges] == ["ij", "jk", "", ""]
    assert "* 2\n(n,)" in read(tc.to_dot(2 * tc.exp(x))).nodes.values()


def test_loops_show_their_range() -> None:
    c = tc.var("c")
    f = tc.fold(lambda s, k: tc.tanh(c * s + x[k]), tc.var("s"), "n")
    shown = set(read(tc.to_dot((f, tc.grad(f, c)))).nodes.values())
    assert {"fold 0..n-1", "fold n-1..0"} <= shown


# --- costs ----------------------------------------------------------------------------------------

NUMBER = re.compile(r"([\d.e+]+) operations")


def operations(graph: Graph) -> list[float]:
    return [float(m[1]) for text in inner(graph).values() if (m := NUMBER.search(text))]


@pytest.mark.parametrize(
    "e",
    [LOSS, tc.hessian(LOSS, "w"), (LOSS, tc.grad(LOSS, "X")), tc.exp(x) + 1, tc.var("c")],
    ids=str,
)
def test_operations_of_nodes_add_up_to_the_plans(e: Any) -> None:
    roots = [bare(leaf) for leaf in trees.leaves(e)]
    sizes = dict.fromkeys(dimensions(roots), 30)
    graph = read(tc.to_dot(e, costs=True, **sizes))
    wanted = make_plan(roots, sizes, choose=False).flops
    assert np.isclose(sum(operations(graph)), wanted, rtol=0.01)


def test_costs_tell_the_plan_and_the_memory_at_given_sizes() -> None:
    e = A @ tc.exp(A)
    graph = read(tc.to_dot(e, costs=True, n=64))
    plan = tc.compile(e).plan_for(A=(64, 64))
    wanted = f"{plan.flops:.3g} operations, "
    assert graph.title.startswith(wanted)
    assert graph.title.endswith("at n = 64")
    assert "32 KiB" in graph.nodes["n0"]
    assert f"{2 * 64**3:.3g} operations" in "".join(graph.nodes.values())
    assert "operations" not in tc.to_dot(e)


def test_a_product_in_a_product_adds_no_operations_of_its_own() -> None:
    e = tc.einsum("ij,jk,k->i", A, A, x)  # two products with vectors, however it is spelled
    assert sum(operations(read(tc.to_dot(e, costs=True, n=10)))) == 2 * 2 * 10**2


# --- errors, names, the command line --------------------------------------------------------------


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(TypeError, match="not of int"):
        tc.to_dot((x, 3))
    with pytest.raises(TypeError, match="costs=True"):
        tc.to_dot(x, n=3)
    with pytest.raises(TypeError, match="q is no dimension"):
        tc.to_dot(x, costs=True, q=3)


HOSTILE = ['a"b', 'x"]; evil [label="', "back\\slash\\", "\\N\\G", "two\nlines", "<b>html</b>", "}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_of_places_are_text(text: str) -> None:
    graph = read(tc.to_dot({text: tc.exp(x), "b": x}))
    assert set(graph.nodes) == {"n0", "n1", "out0", "out1"}
    assert graph.nodes["out0"] == f"[{text!r}]"


@pytest.mark.skipif(GRAPHVIZ is None, reason="Graphviz is not installed: `dot` is not on the path")
@pytest.mark.parametrize("costs", [False, True])
def test_graphviz_draws_all_nodes_and_edges(costs: bool) -> None:
    drawn = [{text: tc.exp(x), "H": tc.hessian(LOSS, "w")} for text in HOSTILE]
    for e in [LOSS, tc.hessian(LOSS, ("w", "X")), *drawn]:
        text = tc.to_dot(e, costs=costs)
        done = subprocess.run(
            [str(GRAPHVIZ), "-Tsvg"], input=text, capture_output=True, text=True, check=True
        )
        assert not done.stderr
        groups = [g.get("class") for g in ET.fromstring(done.stdout).iter() if g.get("class")]
        graph = read(text)
        assert groups.count("node") == len(graph.nodes)
        assert groups.count("edge") == len(graph.edges)


def test_the_command_line_writes_one_graph_and_one_formula(capsys: Any) -> None:
    assert main(["derive", "x'*y", "--wrt", "x,y", "--to", "dot"]) == 0
    assert len([n for n in read(capsys.readouterr().out.strip()).nodes if n.startswith("o")]) == 2
    assert main(["derive", "x'*y", "--wrt", "x,y", "--to", "mathml"]) == 0
    formula = ET.fromstring(capsys.readouterr().out)
    assert (formula.tag, formula.get("alttext")) == ("math", "d/dx: y; d/dy: x")
