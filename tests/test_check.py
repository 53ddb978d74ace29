"""`tc.check` and `tcalc check`: what extents and data they take, and that something is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main

x = tc.var("x", "n")


@pytest.mark.parametrize(
    ("e", "least"),
    [
        (tc.sin(x[2:]), 3),
        (np.diff(x, 3), 4),
        (tc.sum(tc.exp(x)[3:-3]), 7),
        (x[5] ** 2, 6),
        (tc.sum(x[np.array([7, 2])] ** 2), 8),
        (tc.parse_index("y[i=1..n-2] = x[i-1] - 2*x[i]*x[i+1]", x=("n",)), 3),
    ],
)
def test_no_array_is_empty(e: tc.Expr, least: int) -> None:
    report = tc.check(e, x)
    assert report.passed
    assert report.sizes["n"] >= least


def test_what_is_wrong_differs() -> None:
    wrong = tc.elementwise("wrong", np.sin, lambda a, value: 7 * a)
    for e in (wrong(x), wrong(x[2:]), wrong(x)[9:], tc.sum(wrong(x[4:] - x[:-4]))):
        assert not tc.check(e, x).passed


def test_data_and_extents_are_taken() -> None:
    root = tc.sqrt(x - 3)
    assert tc.check(root, x, at={"x": [4.0, 5.0, 9.0]}).sizes == {"n": 3}
    assert tc.check(root, x, order=2, at={x: np.array([3.9])}).passed
    assert tc.check(tc.sum(x**2), x, at={"n": 7}).sizes == {"n": 7}
    z = tc.var("z", "2*n-5")
    assert tc.check(tc.sum(z**2) * tc.sum(x), z, at={"z": np.ones(7)}).sizes == {"n": 6}


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tc.check(tc.sqrt(x - 3), x), tc.Error, "no random data .* at= gives some"),
        (lambda: tc.check(tc.sqrt(x - 3), x, at={"x": [1.0]}), tc.Error, "not finite at the data"),
        (lambda: tc.check(tc.sum(x), x, at={"n": 0}), tc.Error, r"nothing to compare.*\(n,\)"),
        (lambda: tc.check(x[2:], x, at={"n": 2}), tc.Error, r"nothing to compare.*\(n-2,\)"),
        (lambda: tc.check(x[2], x, at={"n": 2}), tc.ShapeError, "2"),
        (lambda: tc.check(tc.sum(x), x, at={"m": 3}), TypeError, "m is no variable .* of the expr"),
        (lambda: tc.check(tc.sum(x), x, at={"x": [[1.0]]}), tc.ShapeError, r"x has shape \(1, 1\)"),
        (lambda: tc.check(tc.sum(x), x, at=[1]), TypeError, "a mapping from names"),
        (lambda: tc.check(tc.sum(x), x, at={"n": 2.5}), TypeError, "n"),
    ],
)
def test_what_cannot_be_checked_is_told(
    call: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_the_command_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x=[4.0, 5.0, 9.0], other=[1.0])
    given = ["check", "sum(sqrt(x - 3))", "--wrt", "x", "--data", str(path)]
    assert main(given) == 0
    assert "agrees" in capsys.readouterr().out
    assert main([*given[:2], "--var", "x=n", *given[2:4]]) == 2
    assert "no random data" in capsys.readouterr().err
