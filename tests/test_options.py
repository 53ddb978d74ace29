"""What options take is said, in Python and on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import tcalc as tc
from tests.test_cli import ROOT, run


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_is_no_mistake(closed: str) -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m tcalc derive "sum(exp(x))" --wrt x {closed}',
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, shell=True, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if closed == ">&-" else "exp(x)\n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["serve", "--port", "999999"], "a port is a whole number from 0 to 65535, not 999999"),
        (["derive", "x", "--limit", "nodes=abc"], "nodes=abc: expected a number"),
        (["check", "x'*x", "--seed", "x"], "a seed is a whole number from 0 on, not x"),
        (["eval", "x", "--data", "missing.npz"], "missing.npz: No such file or directory"),
        (["check", "sum(x)", "--wrt", "x", "--var", "x=30000000000"], "declare smaller ones"),
    ],
)
def test_what_an_option_takes_is_said(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    try:
        status, _, err = run(capsys, *argv)
    except SystemExit as end:
        status, err = int(str(end.code)), capsys.readouterr().err
    assert status == 2
    assert message in err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, x: tc.check(3, x), "one expression is checked, not int"),
        (lambda f, x: tc.check((f, f), x), "one expression is checked, not tuple"),
        (lambda f, x: tc.check(f, x, seed="a"), "seed= is a whole number from 0 on, not 'a'"),
        (lambda f, x: tc.newton(f, {x: [1.0]}, tolerance=-1), "tolerance= is a number from 0 on"),
        (lambda f, x: tc.newton(f, {x: [1.0]}, max_steps=2.5), "max_steps= is a whole number"),
        (lambda f, x: tc.to_code(x, sizes={"sizes": 3.5}), "extent is a whole number, not 3.5"),
        (lambda f, x: tc.compress(tc.jacobian(x[:-1], x)).solve(x), "are not square"),
        (lambda f, x: tc.explain(f, x, sizes={"sizes": -1}), "extent is a whole number, not -1"),
    ],
)
def test_options_say_what_they_take(call: Any, message: str) -> None:
    x = tc.var("x", "sizes")
    with pytest.raises((TypeError, ValueError), match=message):
        call(tc.sum(tc.exp(x) - x), x)


def test_extents_of_any_name_are_explained() -> None:
    x = tc.var("x", ("order",))
    y = tc.var("y", ("sizes",))
    assert "at sizes = 7" in str(tc.explain(tc.sum(tc.exp(y)), y, 1, sizes=7))
    assert "at order = 7" in str(tc.explain(tc.sum(tc.exp(x)), x, 1, sizes={"order": 7}))
