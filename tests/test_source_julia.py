"""Printed Julia programs: parsed everywhere, and run where there is a Julia on the path."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tree_sitter
import tree_sitter_julia

import tcalc as tc
from tcalc.languages.source.julia_helpers import HELPERS
from tcalc.languages.source.julia_operators import LINEAR, SPECIAL
from tcalc.languages.source.julia_program import BASE
from tests.interpreters import JULIA, julia, need, outputs
from tests.source_programs import GROUPS, differences, programs

X, w, y = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("y", "m")
S, c = tc.var("S", ("n", "n"), symmetric=True), tc.var("c")
g = tc.var("g", "k", integer=True)
residual = X @ w - y

#: Names that Julia 1.5 has, by https://docs.julialang.org/en/v1.5: its module Base, LinearAlgebra,
#: and https://specialfunctions.juliamath.org for SpecialFunctions.
KNOWN = {*BASE, *LINEAR, *SPECIAL}
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))


def nodes(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.children:
        yield from nodes(child)


def text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode()


def problems(source: str) -> list[str]:
    """What is no Julia, and what is called that nothing defines."""
    tree = list(nodes(PARSER.parse(source.encode()).root_node))
    found = [f"{n.type}: {text(n)[:60]!r}" for n in tree if n.type == "ERROR" or n.is_missing]
    calls = {
        text(n.children[0])
        for n in tree
        if n.type in ("call_expression", "broadcast_call_expression")
        and n.children[0].type == "identifier"
    }
    defined = set(re.findall(r"(?:function |^ *)([\w!]+)\(.*\)(?: =|$)", source, re.MULTILINE))
    defined |= set(re.findall(r"^function \w+\((.*)\)$", source, re.MULTILINE))
    local = {name for given in re.findall(r"\(([\w, .=]*)\)", source) for name in given.split(", ")}
    return found + sorted(calls - defined - KNOWN - local - {"Float", "f", "kind"})


@pytest.mark.parametrize("group", GROUPS)
def test_programs_are_julia_and_call_what_there_is(group: str) -> None:
    wrong = {}
    for name, program in programs(group).items():
        if not name.endswith(", single") and (
            found := problems(tc.to_code(outputs(program), "julia", check=group == "derivatives"))
        ):
            wrong[name] = found
    assert not wrong


def test_the_parser_sees_what_is_wrong() -> None:
    assert problems("function f(x)\n    return (x .+ \nend\n")
    assert problems("function f(x)\n    return linspace(x, 1)\nend\n") == ["linspace"]


@pytest.mark.parametrize("group", GROUPS)
def test_programs_compute_what_plans_compute(group: str, tmp_path: Path) -> None:
    need("julia")
    given, wrong = programs(group), {}
    for name, answer in zip(given, julia(list(given.values()), tmp_path), strict=True):
        found = [answer] if isinstance(answer, str) else differences(given[name], answer)
        if found and "SpecialFunctions not found" not in found[0]:
            wrong[name] = found
    assert not wrong


def body(e: Any) -> list[str]:
    """The statements of a printed function, without what its arguments are made of."""
    source = tc.to_code(e, "julia")
    lines = re.split(r"^(?:@views )?function .*\n", source, flags=re.MULTILINE)[1]
    kept = [line.strip() for line in lines.split("\nend\n")[0].splitlines()]
    return [n for n in kept if not re.match(r"Float,? |\w+ = size\(", n)]


@pytest.mark.parametrize(
    ("e", "lines"),
    [
        (tc.grad(tc.sum(residual**2), "w"), ["return 2 * (X' * (X * w - y))"]),
        (X.T @ X + c * tc.eye("n"), ["return X' * X + c * Matrix{Float}(I, n, n)"]),
        (w[1:] - w[:-1], ["return w[2:end] - w[1:end - 1]"]),
        (w[::-1], ["return collect(w[end:-1:1])"]),
        (w[g], ["return collect(w[places(g, size(w, 1))])"]),
        (tc.diag(w), ["return diagm(w)"]),
        (tc.sum(X, axis=0) * 0.5, ["return Float(0.5) * vec(sum(X, dims=1))"]),
        (tc.where(w > 0, w, -w), ["return ifelse.(0 .< w, w, -w)"]),
        (X * w, ["return w' .* X"]),
        (tc.exp(w) + c, ["return c .+ exp.(w)"]),
        (tc.zeros(("n", "n")), ["return zeros(Float, n, n)"]),
    ],
    ids=str,
)
def test_source_is_what_one_would_write(e: tc.Expr, lines: list[str]) -> None:
    assert body(e) == lines


def test_special_functions_are_asked_for_where_they_are_called() -> None:
    assert "SpecialFunctions" not in tc.to_code(tc.exp(w), "julia")
    assert tc.to_code(tc.erf(w), "julia").startswith("using SpecialFunctions\n")
    assert tc.to_code(tc.sum(tc.exp(w)), "julia").startswith('"""\n    f(w)\n')


def test_documentation_has_the_formula_and_the_shapes() -> None:
    shown = tc.to_code(X[g] @ w, "julia").split('"""')[1].split("\n\n")
    assert shown[1:] == [
        "Returns k.",
        f"    {X[g] @ w}",
        "- `X`: m x n\n- `g`: k, integers from 0\n- `w`: n\n",
    ]


def test_outputs_are_tuples_and_dicts() -> None:
    f = tc.sum(tc.exp(w))
    assert body((f, {"a": f, "b": ()}))[-1] == "return (t1, (a = t1, b = ()))"
    assert body({"a b": f, 1: f})[-1] == 'return Dict{Any, Any}("a b" => t1, 1 => t1)'


HOSTILE = ["end", "$(error())", 'a"; error("x"); "', "#=", "a\nb", "é", "_x", "\\", "=#", "$x"]


def test_keys_and_names_are_plain_text() -> None:
    source = tc.to_code({key: float(k) * c for k, key in enumerate(HOSTILE)}, "julia")
    assert not problems(source)
    assert r'"\$(error())"' in source
    assert '"a\\U0000000ab"' in source
    names = ["end", "sum", "_", "Float", "zeros", "floats", "t1", "é", "I"]
    e = tc.sum(sum([tc.exp(tc.var(name, "size")) for name in names[1:]], tc.var(names[0], "size")))
    source = tc.to_code((e, tc.grad(e, "end")), "julia")
    assert not problems(source)
    given = re.findall(r"\w+", next(n for n in source.splitlines() if "function f(" in n))[2:]
    assert {"end_", "sum_", "x_", "Float_", "zeros_", "floats_", "t1", "I_"} <= set(given)
    with pytest.raises(ValueError, match="identifier"):
        tc.to_code(w, "julia", name="sum")


CHECKED = {
    "gradient": tc.grad(tc.sum(tc.exp(X @ w)), w),
    "symmetric": tc.hessian(w @ S @ w * tc.sum(S**2), S),
    "of a number": tc.grad(tc.sin(c) * c, c),
    "stack": tc.grad(tc.sum(tc.inv(tc.var("P", ("k", 3, 3), positive_definite=True))), "P"),
    "what the check alone calls": tc.grad(
        tc.sum(tc.var("P", ("k", 3, 3), symmetric=True) ** 3), "P"
    ),
    "shapes": (X @ w, {"a": c * X, "b": (w, y)}),
    "no parameters": tc.eye(3),
}


@pytest.mark.parametrize("name", CHECKED)
def test_the_self_check_tells_right_from_wrong(name: str, tmp_path: Path) -> None:
    source = tc.to_code(CHECKED[name], "julia", check=True)
    assert not problems(source)
    need("julia")
    path = tmp_path / "f.jl"
    for code, shown in (
        (0, source),
        (1, re.sub(r"return .*", "return ones(7, 5)", source, count=1)),
    ):
        path.write_text(shown)
        done = subprocess.run([*JULIA, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr


def test_helpers_say_what_they_do() -> None:
    for name, helper in HELPERS.items():
        assert re.search(rf"\b{re.escape(name)}(\(| =)", helper), name
