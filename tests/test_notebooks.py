"""What notebooks show: well-formed, escaped, and readable on light and dark pages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.support import html

U, V, T = tc.var("U", ("m", "k")), tc.var("V", ("n", "k")), tc.var("T", ("m", "n"))
SHAPES = {"T": "(m, n)", "U": "(m, k)", "V": "(n, k)"}
LOSS = tc.sum((U @ V.T - T) ** 2)


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"U": rng.normal(size=(4, 2)), "V": rng.normal(size=(5, 2)), "T": np.zeros((4, 5))}


def shown() -> dict[str, Any]:
    blocks = tc.compile(tc.hessian(LOSS, ("U", "V")), structured=True)(data())
    step = tc.compile({"f": LOSS, "g": tc.grad(LOSS, "U")}, data={"T": data()["T"]})
    return {
        "tensor": tc.compile(tc.hessian(LOSS, "U"), structured=True)(data()),
        "blocks": blocks,
        "inverse": blocks.inverse(),
        "jacobian": tc.compile(tc.jacobian(U @ V.T, ("U", "V")), structured=True)(data()),
        "function": step,
        "one output": tc.compile(LOSS),
        "compressing": tc.compile(tc.hessian(LOSS, ("U", "V")), structured=True),
        "plan": step.plan,
        "tiles": tc.compile(LOSS).plan_for(U=(4000, 100), V=(4000, 100), T=(4000, 4000)),
        "explanation": tc.explain(tc.hessian(LOSS, "U"), m=4, n=5, k=2),
    }


def cells(o: Any) -> list[list[str]]:
    """The text of a table, row by row."""
    tree = ET.fromstring(o._repr_html_())
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def texts(o: Any) -> list[str]:
    """What stands above and below the table."""
    return [part.text or "" for part in ET.fromstring(o._repr_html_()).findall("div")]


@pytest.mark.parametrize("name", shown())
def test_tables_are_well_formed_and_take_the_pages_colours(name: str) -> None:
    text = shown()[name]._repr_html_()
    tree = ET.fromstring(text)
    assert {e.tag for e in tree.iter()} <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert all(set(e.attrib) <= {"style"} for e in tree.iter())
    colours = set(re.findall(r"(?<!-)color: ([^;\"]+)", text))
    assert colours == {"inherit"}
    assert "background" not in re.sub("background: none", "", text)
    widths = {len(row) for row in cells(shown()[name])}
    assert len(widths - {0}) <= 1


def test_tables_say_what_the_texts_say() -> None:
    every = shown()
    tensor, blocks, explanation = every["tensor"], every["blocks"], every["explanation"]
    lines = [line.strip() for line in tensor.explain().split("\n")]
    assert [texts(tensor)[0], *texts(tensor)[1:]] == lines
    assert cells(tensor)[1] == ["core 1", "(2, 2)", "float64", "32 bytes"]
    first, *_, last = blocks.explain().split("\n")
    assert texts(blocks) == [first, last.strip()]
    assert cells(blocks)[0] == ["", "U", "V"]
    assert [row[0] for row in cells(blocks)[1:]] == ["U", "V"]
    shown_blocks = [cell for row in cells(blocks)[1:] for cell in row[1:]]
    assert all(f"shape {cell}\n" in blocks.explain() for cell in shown_blocks)
    assert [line.split() for line in str(explanation).split("\n")[2:-1]] == [
        " ".join(row).split() for row in cells(explanation)[1:]
    ]
    plan = every["plan"]
    steps = [row for row in cells(plan)[1:] if row[1]]
    assert len(steps) == len(plan.steps)
    for row, step in zip(steps, plan.steps, strict=True):
        assert row[0].strip() + "  " + row[1] == str(step)
    assert texts(plan)[-1] == str(plan).split("\n")[-1]


def test_plans_show_what_runs_tile_by_tile() -> None:
    plan = shown()["tiles"]
    rows = [row[0] for row in cells(plan)[1:]]
    heads = [line for line in str(plan).split("\n") if line.startswith("for ")]
    assert heads
    assert [row for row in rows if row.startswith("for ")] == heads
    assert [row for row in rows if row.startswith("\u2003")]


def test_functions_show_what_they_take_and_give() -> None:
    rows = cells(shown()["function"])[1:]
    assert ["T", "(m, n)", "bound"] in rows
    assert ["U", "(m, k)", "argument"] in rows
    assert ["['g'] d/dU", "(m, k)", "output"] in rows
    assert ["", "()", "output"] in cells(shown()["one output"])
    compressing = shown()["compressing"]
    rows = cells(compressing)
    assert rows[1:4] == [[name, shape, "argument"] for name, shape in SHAPES.items()]
    assert rows[4] == ["d2/dU dU", "(m, k, m, k)", "output"]
    assert repr(compressing).endswith(" of T (m, n), U (m, k), V (n, k)>")


def test_an_inverse_is_shown_without_making_its_blocks() -> None:
    inverse = shown()["inverse"]
    assert texts(inverse) == [repr(inverse)]
    assert "_rows" not in vars(inverse)


def test_text_is_escaped_and_long_tables_are_cut() -> None:
    rows = [("<b>", "&", '"')] * 250
    found = html.table("<i>", ("</th>", "", ""), rows, ["</div>"])
    tree = ET.fromstring(found)
    assert len(list(tree.iter("tr"))) == 1 + html.MOST_ROWS
    assert [part.text for part in tree.findall("div")] == ["<i>", "… and 150 more", "</div>"]
    hostile = tc.compile({"<script>": tc.exp(U)})
    assert ["['<script>']", "(m, k)", "output"] in cells(hostile)


def test_expressions_and_nests_are_formulas() -> None:
    assert LOSS._repr_latex_() == f"${tc.to_latex(LOSS)}$"
    nest = tc.hessian(LOSS, ("U", "V"))
    assert nest._repr_latex_() == f"${tc.to_latex(nest)}$"


def test_wide_formulas_name_what_is_repeated() -> None:
    D, s = tc.var("D", ("n", "n"), symmetric=True), tc.var("s")
    K = tc.exp(2 * s - D / 2) + tc.exp(-2 * s) * tc.eye("n")
    loss = tc.linalg.logdet(K) + tc.log(tc.sum(K)) + tc.sum(U)
    lines = tc.grad(loss, s)._repr_latex_().removeprefix(r"$\begin{aligned} & ").split(r" \\ ")
    assert lines[1].startswith(r"\text{where } ")
    assert all(line.count(" &= ") == 1 for line in lines[1:])
    last, told = tc.to_latex(tc.grad(loss, s), where=True).split(r" \quad\text{where } ")
    assert [last, *told.split(r",\; ")] == [
        line.removeprefix(r"\text{where } ").removesuffix(r" \end{aligned}$").replace("&=", "=")
        for line in lines
    ]
    assert r" \\ \text{where } " in tc.grad(loss, ("s", "U"))._repr_latex_()
