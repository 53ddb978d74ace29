"""Printed MATLAB programs, run by Octave: the values and derivatives that plans compute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.languages.source.matlab_helpers import HELPERS
from tests.interpreters import octave, octave_script
from tests.source_programs import GROUPS, differences, programs

X, w, y = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("y", "m")
S, c = tc.var("S", ("n", "n"), symmetric=True), tc.var("c")
g = tc.var("g", "k", integer=True)
residual = X @ w - y


@pytest.mark.parametrize("group", GROUPS)
def test_programs_compute_what_plans_compute(group: str, tmp_path: Path) -> None:
    given, wrong = programs(group), {}
    for name, answer in zip(given, octave(list(given.values()), tmp_path), strict=True):
        found = [answer] if isinstance(answer, str) else differences(given[name], answer)
        if found:
            wrong[name] = found
    assert not wrong


def run(e: Any, script: str, folder: Path, **options: Any) -> str:
    """What a script prints that calls the function f."""
    (folder / "f.m").write_text(tc.to_code(e, "matlab", **options))
    done = octave_script(script, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def body(e: Any) -> list[str]:
    """The statements of a printed function, without what its arguments are made of."""
    lines = tc.to_code(e, "matlab").split("\nend\n")[0].splitlines()[1:]
    kept = [line.strip() for line in lines if not re.match(r"%|\s+(.*= (floats|double)\()", line)]
    return [line for line in kept if not re.match(r"\w+ = (size|class)\(", line)]


@pytest.mark.parametrize(
    ("e", "lines"),
    [
        (tc.grad(tc.sum(residual**2), "w"), ["result = 2 * (X' * (X * w - y));"]),
        (X.T @ X + c * tc.eye("n"), ["result = X' * X + c * eye(n);"]),
        (w[1:] - w[:-1], ["result = w(2:end) - w(1:end - 1);"]),
        (X[::-1, 0], ["result = X(end:-1:1, 1);"]),
        (w[g], ["result = w(places(g, size(w, 1)));"]),
        (tc.diag(w), ["result = diag(w);"]),
        (tc.sum(X, axis=0) * 0.5, ["result = 0.5 * sum(X', 2);"]),
        (tc.where(w > 0, w, -w), ["result = where(0 < w, w, -w);"]),
        (X * w, ["result = w' .* X;"]),
        (tc.zeros(("n", "n")), ["result = zeros(n, n);"]),
    ],
    ids=str,
)
def test_source_is_what_one_would_write(e: tc.Expr, lines: list[str]) -> None:
    assert body(e) == lines


def test_help_says_what_it_takes() -> None:
    text = tc.to_code(X[g] @ w, "matlab", name="rows")
    head, returns, formula, *shapes = text.splitlines()[:6]
    assert head == "function result = rows(X, g, w)"
    assert returns == "% Returns k."
    assert formula == f"%     {X[g] @ w}"
    assert shapes == ["%   X: m x n", "%   g: k, integers from 0", "%   w: n"]


def test_outputs_are_several_cells_and_structures(tmp_path: Path) -> None:
    f = tc.sum(tc.exp(X @ w))
    tree = ({"value": f, "derivatives": (tc.grad(f, w), tc.hessian(f, w))}, {"no name": f, "1": f})
    script = """
        [a, b] = f([1 2; 3 4; 5 6], [0.1; 0.2]);
        disp(fieldnames(a)'), disp(size(a.derivatives{2})), disp(keys(b))
        disp(b('no name') - a.value + b('1'))
    """
    found = run(tree, script, tmp_path).split()
    assert found[:4] == ["{", "[1,1]", "=", "value"]
    assert {"derivatives", "2", "no"} <= set(found)
    numbers = run({1: f, 2.5: 2 * f}, "a = f([1 2], [0; 0]); disp(a(2.5))", tmp_path)
    assert numbers.split() == ["2"]


HOSTILE = ["end", "it's", "a'; error('x'); '", "%{", "a\nb", "é", "_x", "x y", "\\n", "'"]


def test_keys_are_plain_text(tmp_path: Path) -> None:
    tree = {key: float(k) * c for k, key in enumerate(HOSTILE)}
    script = "a = f(1); for k = keys(a), printf('%d,', double(k{1})), disp(a(k{1})), end"
    found = dict(line.rsplit(",", 1) for line in run(tree, script, tmp_path).splitlines())
    shown = {
        ",".join([str(byte) for byte in key.encode("latin-1")]): k for k, key in enumerate(HOSTILE)
    }
    assert {key: int(k) for key, k in found.items()} == shown


def test_names_that_mean_something_are_renamed(tmp_path: Path) -> None:
    names = ["end", "sum", "_x", "kind", "ones", "result", "varargin", "t1", "é", "step", "floats"]
    e = tc.sum(sum([tc.exp(tc.var(name, "size")) for name in names[1:]], tc.var(names[0], "size")))
    source = tc.to_code((e, tc.grad(e, "end")), "matlab")
    head = source.splitlines()[0]
    given = re.findall(r"\w+", head.split("(")[1])
    assert {"end_", "sum_", "x_x", "result", "t1"} <= set(given)
    assert not {"end", "sum", "_x", "ones", "kind"} & set(given)
    script = f"[a, b] = f({', '.join(['zeros(3, 1)'] * len(given))}); disp([a, b'])"
    assert run((e, tc.grad(e, "end")), script, tmp_path).split() == ["30", "1", "1", "1"]
    for bad in ("end", "sum", "floats", "_f"):
        if not bad.startswith("_"):
            with pytest.raises(ValueError, match="identifier"):
                tc.to_code(w, "matlab", name=bad)


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
    assert (
        "as expected" in (out := run(CHECKED[name], "f check", tmp_path, check=True)) or "e-" in out
    )
    path = tmp_path / "f.m"
    wrong = re.sub(r"result1? = (.*);", r"result = [1 2; 3 4; 5 6];", path.read_text(), count=1)
    path.write_text(wrong if "result1" not in wrong else wrong.replace("result = [", "result1 = ["))
    assert octave_script("f check", tmp_path).returncode == 1


def test_helpers_need_no_toolbox_and_have_each_a_sentence() -> None:
    for name, text in HELPERS.items():
        assert text.startswith("function "), name
        assert text.count("\nfunction ") + 1 == len(re.findall(r"^end$", text, re.MULTILINE)), name


def test_the_command_line_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["derive", "x'*x", "--var", "x=n", "--wrt", "x", "--to", "matlab"]) == 0
    assert "result = 2 * x;" in capsys.readouterr().out
