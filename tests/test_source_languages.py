"""A language of source code costs one file and one line: nested lists of Python, without NumPy."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.graph.nodes import Apply, postorder
from tcalc.graph.normal import bare
from tcalc.languages.source.formulas import ARITHMETIC
from tcalc.languages.source.registry import LANGUAGES
from tests.cases import CASES, Case
from tests.source_lists import ENTRIES, Lists


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "lists", Lists)


def run(e: Any, folder: Path, **given: Any) -> Any:
    path = folder / "generated.py"
    path.write_text(tc.to_code(e, "lists"))
    return runpy.run_path(str(path))["f"](**given)


def unknown(*expressions: tc.Expr) -> set[str]:
    """Operators that have neither a word in the language nor a formula."""
    nodes = postorder([bare(e) for e in expressions])
    rows = {node.op for node in nodes if isinstance(node, Apply)}
    known = {*ENTRIES, *ARITHMETIC}
    return {row.name for row in rows if row.name not in known and row.kernels.formula is None}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_language_computes_what_the_expression_means(case: Case, tmp_path: Path) -> None:
    e, arrays = case.expression(), case.sample()
    both = (e, *[tc.derivative(e, v) for v in case.targets if v in e.variables])
    if missing := unknown(*both):
        with pytest.raises(tc.UnsupportedError, match=f"no lists source for ({'|'.join(missing)})"):
            tc.to_code(both, "lists")
        return
    lists = {name: a.tolist() for name, a in arrays.items() if name in e.variables}
    for found, expected in zip(run(both, tmp_path, **lists), both, strict=True):
        np.testing.assert_allclose(found, expected(**arrays), rtol=1e-9, atol=1e-9)


def test_most_cases_have_words() -> None:
    assert sum(not unknown(case.expression()) for case in CASES) > len(CASES) / 2


X, w, g = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("g", "m", integer=True)
u, S, a = tc.var("u", "q"), tc.var("S", ("n", "n"), symmetric=True), tc.var("a")


def test_gathers_slices_and_loops(tmp_path: Path) -> None:
    state = tc.fold(lambda s, i: tc.tanh(a * s + w[i]), 0, "n")
    outputs = {
        "gather": X @ w + u[g],
        "sums": tc.segment_sum(X, g, "q"),
        "hessian": tc.hessian(tc.sum(tc.exp(X @ w + u[g])), u),
        "slices": (w[1:] - w[:-1], tc.pad(w, 1)),
        "loop": [state, tc.grad(state, a), tc.hessian(state, w)],
    }
    rng = np.random.default_rng(3)
    data = {"X": rng.normal(size=(4, 3)), "w": rng.normal(size=3), "u": rng.normal(size=2)}
    data |= {"g": np.array([1, 0, 1, 1]), "a": np.array(0.7)}
    found = run(outputs, tmp_path, **{name: value.tolist() for name, value in data.items()})
    expected = tc.compile(outputs)(**data)
    for name, value in expected.items():
        if not isinstance(value, tuple | list):
            value, found[name] = [value], [found[name]]
        for one, other in zip(found[name], value, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


def test_operators_without_a_word_are_written_by_their_formula() -> None:
    assert "math.log1p" in tc.to_code(tc.softplus(w), "lists")
    assert "each(max, w, (0))" in tc.to_code(tc.relu(w), "lists")


def test_operators_without_a_word_or_a_formula_are_refused() -> None:
    with pytest.raises(tc.UnsupportedError, match="no lists source for erf"):
        tc.to_code(tc.erf(w), "lists")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("e", [tc.sum(tc.exp(X @ w)), w @ S @ w * tc.sum(S**2)], ids=str)
def test_the_self_check_is_text_of_the_language(e: tc.Expr, order: int, tmp_path: Path) -> None:
    source = tc.to_code(
        tc.derivative(e, "S" if "S" in e.variables else "w", order), "lists", check=True
    )
    wrong = source.replace("return each(float, ", "return each(lambda y: 1 + y, ", 1)
    path = tmp_path / "checked.py"
    for text, code in ((source, 0), (wrong, 1)):
        path.write_text(text)
        done = subprocess.run([sys.executable, str(path)], capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()


def test_the_command_line_prints_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["derive", "x'*x", "--var", "x=n", "--wrt", "x", "--to", "lists"]) == 0
    text = capsys.readouterr().out
    assert "def f(x):" in text
    assert "each(" in text


def test_reserved_names_are_those_of_the_language() -> None:
    each, dtype = tc.var("each", "n"), tc.var("dtype", "n")
    assert "def f(dtype, each_):" in tc.to_code(each * dtype, "lists")
    assert "def f(dtype_, each):" in tc.to_code(each * dtype)
    with pytest.raises(ValueError, match="identifier"):
        tc.to_code(w, "lists", name="each")
