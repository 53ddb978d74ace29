"""The command line: exit statuses, messages without tracebacks, every form of every option."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc
from tcalc.app.cli import _parser, _quoted_expressions, main
from tcalc.graph.operators import TABLE

ROOT = Path(__file__).resolve().parent.parent
LOSS = "sum(log(1 + exp(-y .* (X*w))))"
DECLARED = ["--var", "X=m,n", "--var", "y=m", "--var", "w=n"]

PRINTED: list[tuple[list[str], str]] = [
    ([LOSS, *DECLARED, "--wrt", "w"], "-X'*(y .* sigmoid(-y .* (X*w)))"),
    (["sum(x.^2)"], "x'*x"),
    (["sum(x.^2)", "--wrt", "x"], "2*x"),
    (["sum(x.^2)", "--wrt", "x", "--order", "0"], "x'*x"),
    (["sum(x.^2)", "--wrt", "x", "--order", "2"], "2*eye(n)"),
    (["sum(x.^3)", "--wrt", "x", "--order", "3"], "6*#('->iii', i=n)"),
    (["-sum(x.^2)", "--wrt", "x"], "-2*x"),
    (["--wrt", "x", "-sum(x.^2)"], "-2*x"),
    (["--wrt=x", "-sum(x.^2)"], "-2*x"),
    (["--wrt=x", "--", "-sum(x.^2)"], "-2*x"),
    (["--sum(x.^2)", "--wrt", "x"], "2*x"),
    (["-1"], "-1"),
    (["-x"], "-x"),
    (["sum(x.*y)", "--wrt", "x,y"], "d/dx: y\nd/dy: x"),
    (["sum(x.*y)", "--wrt", "x", "--wrt", "y"], "d/dx: y\nd/dy: x"),
    (["sum(x.*y)*a", "--wrt", "x,y", "--wrt", "a"], "d/dx: a*y\nd/dy: a*x\nd/da: x'*y"),
    (["sum(x.*y)", "--wrt", "x, y", "--order", "2"],
     "d2/dx dx: matrix(0, n, n)\nd2/dx dy: eye(n)\nd2/dy dx: eye(n)\nd2/dy dy: matrix(0, n, n)"),
    (["sum(x.*y)", "--wrt", "x,y", "--order", "0"], "x'*y"),
    (["sum(x.*y)", "--wrt", "x,y", "--to", "latex"],
     r"\begin{aligned} \frac{\partial}{\partial x}\colon\quad & y \\"
     r" \frac{\partial}{\partial y}\colon\quad & x \end{aligned}"),
    (["sum(x.*y)", "--wrt", "x,y", "--order", "0", "--to", "latex"], r"x^{\top} y"),
    (["sum(x.^2 + y)", "--wrt", "x,y", "--compress"],
     "d/dx:\nH[i] = C1[i]   shape (n,)\n  C1 = 2*x  (n,)\n"
     "d/dy:\nH[i] = C1   shape (n,)\n  C1 = 1  ()"),
    (["2*sum(q)", "--var", "q=", "--wrt", "q"], "2"),
    (["sum(q)", "--var", "q=3", "--wrt", "q"], "vector(1, 3)"),
    (["sum(q)", "--var", "q=(k,)", "--wrt", "q"], "vector(1, k)"),
    (["sum(q)", "--var", " q = k , 2", "--wrt", "q"], "matrix(1, k, 2)"),
    (["logdet(S)", "--var", "S=n,n:symmetric", "--wrt", "S"], "inv(S)"),
    (["logdet(S)", "--var", "S=n,n:symmetric,nonnegative", "--wrt", "S"], "inv(S)"),
    (["logdet(S)", "--var", "S=n,n:symmetric:positive_definite", "--wrt", "S"], "inv(S)"),
    (["µ*x", "--var", "µ=", "--wrt", "µ"], "x"),
    (["x'*x", "--wrt", "x", "--to", "text"], "2*x"),
    (["x'*A*x", "--wrt", "A", "--to", "latex"], r"x x^{\top}"),
    (["x'*A*x", "--wrt", "A", "--to", "einsum"], "#('i,j->ij', x, x)"),
    (["inv(A*A'+eye(n))*x*(x'*inv(A*A'+eye(n))*x)", "--var", "A=n,n", "--where"],
     "(x'*M*x)*M*x where M = inv(A*A' + eye(n))"),
    (["inv(A*A'+eye(n))*x*(x'*inv(A*A'+eye(n))*x)", "--var", "A=n,n", "--no-where"],
     "(x'*inv(A*A' + eye(n))*x)*inv(A*A' + eye(n))*x"),
    (["x'*x", "--wrt", "x", "--language", "matrix", "--mode", "forward"], "2*x"),
    (["sum(x.^2)", "--wrt", "x", "--order", "2", "--compress"],
     "H[i,j] = C1 * delta[i,j]   shape (n, n)\n  C1 = 2  ()"),
    (["--compress", "-sum(x.^2)", "--wrt", "x", "--order", "2"],
     "H[i,j] = C1 * delta[i,j]   shape (n, n)\n  C1 = -2  ()"),
]  # fmt: skip

REFUSED: list[tuple[list[str], list[str]]] = [
    (["derive", "x'*x", "--vars", "x=n"], ["--vars: tcalc derive has no", "did you mean --var?"]),
    (["derive", "x'*x", "-d", "x=n"], ["-d: tcalc derive has no such option: it has --wrt, "]),
    (["derive", "x'*x", "x=n"], ["x=n: tcalc derive takes one expression", "--var x=n"]),
    (["gallery", "here", "there"], ["there: tcalc gallery takes one folder\n"]),
    (["demo", "--quick"], ["--quick: tcalc demo has no such option\n"]),
    (["serve", "8000"], ["8000: tcalc serve takes options only\n"]),
    ([], ["COMMAND"]),
    (["other"], ["invalid choice: 'other'"]),
    (["derive"], ["expression"]),
    (["derive", ""], ["1:1", "empty"]),
    (["derive", "x +"], ["1:4", "x +", "     ^", "expected a number"]),
    (["derive", "x*y", "--var", "x=n", "--var", "y=n"], ["1:2", "`x`", "`y`", "x'*y"]),
    (["derive", "(x\n+ $"], ["2:3", "'$'"]),
    (["derive", "lgo(x)"], ["did you mean `log`"]),
    (
        ["derive", "X*theta", "--var", "thata=n"],
        [
            "did you mean `thata`",
            "--var theta= for a scalar, --var theta=n for a column",
            "--var theta=m,n for",
        ],
    ),
    (["derive", "x", "extra"], ["extra"]),
    (["derive", "x", "--unknown"], ["--unknown"]),
    (["derive", "sum(x)", "--wrt", "q"], ["'q' is no variable", "x"]),
    (["derive", "sum(x)", "--wrt", ""], ["''"]),
    (["derive", "sum(x)", "--wrt", "x,"], ["''"]),
    (["derive", "sum(x)", "--wrt", "-x"], ["'-x'"]),
    (["derive", "sum(x)", "--wrt", "x", "--order", "-1"], ["order -1"]),
    (["derive", "sum(x)", "--wrt", "x", "--order", "1.5"], ["--order", "'1.5'"]),
    (["derive", "sum(x)", "--wrt", "x", "--order", "1000000000"], ["order 1000000000"]),
    (["derive", "sum(x)", "--wrt", "x", "--mode", "best"], ["'best'", "cross-country"]),
    (["derive", "sum(x)", "--to", "pdf"], ["'pdf'", "latex"]),
    (["derive", "sum(x)", "--language", "klingon"], ["'klingon'", "matrix"]),
    (["derive", "x", "--var", "x"], ["'x'", "NAME=extents"]),
    (["derive", "x", "--var", "1x=n"], ["'1x'", "identifier"]),
    (["derive", "x", "--var", "=n"], ["identifier"]),
    (["derive", "x", "--var", "x=-3"], ["extent -3 is negative"]),
    (["derive", "x", "--var", "x=3.5"], ["'3.5'"]),
    (["derive", "x", "--var", "x=²"], ["'²'"]),
    (["derive", "x", "--var", "x=n,,m"], ["'' is neither a dimension name"]),
    (["derive", "x", "--var", "x=n:odd"], ["'x=n:odd'", "symmetric"]),
    (["derive", "S", "--var", "S=n,n:symetric"], ["'symetric'", "did you mean `symmetric`"]),
    (["derive", "S", "--var", "S=n,n:psd"], ["'psd'", "did you mean `positive_definite`"]),
    (["derive", "S", "--var", "S=n,n:lower-triangular"], ["did you mean `lower`"]),
    (["derive", "x", "--var", "x=n:symmetric"], ["square", "(n,)"]),
    (["derive", "x", "--var", "x=n", "--var", "x=m"], ["x is declared already"]),
    (["derive", "S", "--var", "S=n,n,symmetric"], ["symmetric is a property", "S=n,n:symmetric"]),
    (["eval", "sum(w)"], ["--data"]),
    (["eval", "sum(w)", "--data", "missing.npz"], ["missing.npz"]),
    (["eval", "sum(w)", "--data", "."], ["directory"]),
    (["eval", "sum(w)", "--data", "text.npz"], ["text.npz", "not an .npz"]),
    (["eval", "sum(w)", "--data", "empty.npz"], ["empty.npz", "not an .npz"]),
    (["eval", "sum(w)", "--data", "broken.npz"], ["broken.npz", "not an .npz"]),
    (["eval", "sum(w)", "--data", "one.npy"], ["one.npy", "not an .npz"]),
    (["eval", "sum(w)", "--data", "bytes.npz"], ["bytes.npz", "not an .npz"]),
    (["eval", "sum(w)", "--data", "bytes_too.npz"], ["bytes_too.npz", "not an .npz"]),
    (["eval", "sum(w)", "--data", "objects.npz"], ["objects.npz", "numbers"]),
    (["eval", "sum(w)", "--data", "complex.npz"], ["w is complex"]),
    (["eval", "sum(w)", "--data", "words.npz"], ["w is of dtype"]),
    (["eval", "sum(q)", "--data", "data.npz"], ["q is missing"]),
    (["eval", "sum(X*y)", "--data", "data.npz"], ["1:6", "`X`", "(2, 3)", "`y`", "(2,)"]),
    (["eval", "sum(X*w)", "--data", "data.npz", "--var", "w=m"], ["`w`", "extent m"]),
    (["eval", "sum(w)", "--data", "data.npz", "--wrt", "q"], ["'q' is no variable"]),
    (["eval", "inv(X'*X)", "--data", "zeros.npz"], ["ingular"]),
    (["eval", "w", "--data", "data.npz", "--out", "no/such/place.npz"], ["no/such/place.npz"]),
    (["derive", "x", "--to", "c", "--out", "no/such/f.c"], ["no folder no/such"]),
    (["derive", "x", "--to", "c", "--to", "latex", "--out", "no/f"], ["no folder no,"]),
    (["derive", "x", "--to", "c", "--out", "no/such/"], ["no folder no,"]),
    (["build", "x", "--out", "no/such/libf.so"], ["no folder no/such"]),
    (["build", "x", "--out", "no/such"], ["no folder no,"]),
    (["eval", "eye(1000000000)", "--data", "data.npz"], ["memory"]),
    (["check", "sum(x)", "--wrt", "q"], ["'q' is no variable"]),
    (["check", "sum(x)", "--order", "0"], ["order 0"]),
    (["check", "sum(x)", "--order", "5"], ["order 5"]),
    (["check", "sum(x)", "--seed", "-1"], ["--seed"]),
    (["check", "3"], ["no variable"]),
    (["check", "log(-1 - a^2)"], ["finite"]),
    (["demo", "extra"], ["extra"]),
]

CHECKED = [
    [LOSS, *DECLARED, "--wrt", "w"],
    [LOSS, *DECLARED, "--wrt", "w,X", "--order", "2"],
    [LOSS, *DECLARED, "--wrt", "w", "--wrt", "X"],
    ["-logdet(S)", "--var", "S=n,n:positive_definite", "--order", "2"],
    ["norm2(X*w - y)", "--mode", "forward"],
    ["sum(max(x, 0).^2)", "--order", "3", "--seed", "7"],
    ["1/norm2(x)", "--order", "4"],
    ["sum(where(x > 0, x.^3, x.^2))", "--order", "4", "--seed", "1"],
]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Status, output and messages; argparse leaves by SystemExit."""
    try:
        status = main(argv)
    except SystemExit as leaving:
        status = int(leaving.code or 0)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data: dict[str, Any] = {"X": np.arange(6.0).reshape(2, 3), "w": np.ones(3), "y": np.ones(2)}
    unnamed: dict[str, Any] = {"a b": np.ones(1)}
    np.savez("data.npz", **data, **unnamed)
    np.savez("zeros.npz", X=np.zeros((3, 2)))
    np.savez("objects.npz", w=np.array([None]))
    np.savez("complex.npz", w=np.ones(3) * 1j)
    np.savez("words.npz", w=np.array(["a"]))
    np.save("one.npy", np.ones(3))
    for name, members in (("bytes", ["w.npy"]), ("bytes_too", ["X.npy", "w"])):
        with zipfile.ZipFile(f"{name}.npz", "w") as file:
            for member in members:
                file.writestr(member, Path("one.npy").read_bytes()[member == members[-1] :])
    Path("text.npz").write_text("w = 1")
    Path("empty.npz").write_text("")
    Path("broken.npz").write_bytes(Path("data.npz").read_bytes()[:200])
    return tmp_path


@pytest.mark.parametrize(("argv", "wanted"), PRINTED)
def test_derive(capsys: pytest.CaptureFixture[str], argv: list[str], wanted: str) -> None:
    assert run(capsys, "derive", *argv) == (0, wanted + "\n", "")


def test_no_option_is_taken_for_an_expression() -> None:
    commands = next(a.choices for a in _parser()._actions if isinstance(a.choices, dict))
    options = [o for c in commands.values() for a in c._actions for o in a.option_strings]
    assert "--no-where" in options
    assert _quoted_expressions(options) == options


@pytest.mark.parametrize(("argv", "words"), REFUSED)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], files: Path, argv: list[str], words: list[str]
) -> None:
    status, out, err = run(capsys, *argv)
    assert (status, out) == (2, "")
    assert all(word in err for word in words), err
    assert err.startswith(("tcalc: ", "usage: "))


def test_a_person_is_told_what_undeclared_names_were_taken_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`l` is a column by convention, where a weight may have been meant."""
    ridge = ["derive", "norm(X*w)^2 + l*w'*w", "--wrt", "w"]
    assert run(capsys, *ridge)[2] == ""  # a program reads it
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told = "Not declared: X is (m, n), l is (k,), w is (n,); --var declares others.\n"
    assert run(capsys, *ridge)[2].startswith(told)
    some = run(capsys, *ridge, "--var", "l=", "--var", "X=m,n")[2]
    assert some.startswith("Not declared: w is (n,);")
    assert run(capsys, *ridge, "--var", "l=", "--var", "X=m,n", "--var", "w=n")[2].startswith("L")


@pytest.mark.parametrize(
    ("text", "declared", "told"),
    [
        ("X*w", ["Z=m,n"], "--var Z: the expression has no Z; it has X, w"),
        ("sum(weight)", ["weight=n", "wieght=n"], "no wieght; it has weight"),
        ("sum(theta2)", ["theta2=n", "X1=n"], "--var X1: "),
        ("X1*w", ["X=m,n"], "--var X: the expression has no X; did you mean `X1`?"),
        ("3", ["X=m,n"], "it has no variables"),
        ("x - x", ["x=n"], ""),
        ("sum(w)/n", ["X=m,n"], ""),
        ("µ*x", ["μ="], ""),
        ("fold(s -> u*s, s0, u=A*B, i=0..k)", ["A=n,n", "B=n,n", "s0=n", "Q=k"], ""),
    ],
)
def test_declarations_of_what_is_not_there_are_told(
    capsys: pytest.CaptureFixture[str], text: str, declared: list[str], told: str
) -> None:
    options = [word for row in declared for word in ("--var", row)]
    status, _, err = run(capsys, "derive", text, *options)
    assert status == 0
    assert told in err
    assert err.startswith("tcalc: warning: ") == bool(told)
    assert err.count("\n") == bool(told)


def test_shapes_of_data_need_no_use(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    assert run(capsys, "eval", "sum(w)", "--data", "data.npz") == (0, "3.0\n", "")
    line = ["eval", "sum(w)", "--data", "data.npz", "--var", "y=k"]
    assert run(capsys, *line)[1:] == (
        "3.0\n", "tcalc: warning: --var y: the expression has no y; it has w\n"
    )  # fmt: skip


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(capsys, "--version") == (0, f"tcalc {stated}\n", "")
    assert tcalc.__version__ == stated


def test_source_runs(capsys: pytest.CaptureFixture[str]) -> None:
    _, source, _ = run(capsys, "derive", LOSS, *DECLARED, "--wrt", "w", "--to", "numpy")
    scope: dict[str, Any] = {}
    exec(source, scope)
    assert scope["f"](np.ones((2, 3)), np.zeros(3), np.ones(2)) == pytest.approx([-1.0] * 3)
    _, source, _ = run(capsys, "derive", "x'*y", "--wrt", "x,y", "--to", "numpy")
    exec(source, scope)
    assert [part[0] for part in scope["f"](np.ones(2), np.full(2, 3.0))] == [3.0, 1.0]


def test_explain_stands_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "derive", "x'*x", "--wrt", "x", "--explain")
    assert (status, out) == (0, "2*x\n")
    assert all(word in err for word in ("reverse", "forward", "cross-country", "rewrites"))


def test_eval(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    assert run(capsys, "eval", "-sum(X*w - y)", "--data", "data.npz") == (0, "-13.0\n", "")
    assert run(capsys, "eval", "sum(w)", "--data", "data.npz", "--var", "w=k")[1] == "3.0\n"
    argv = ["eval", "sum(w)*sum(y)", "--data", "data.npz", "--wrt", "w", "--wrt", "y"]
    assert run(capsys, *argv) == (0, "d/dw: [2. 2. 2.]\nd/dy: [3. 3.]\n", "")
    argv = ["eval", "norm2(X*w - y)^2", "--data", "data.npz", "--wrt"]
    assert run(capsys, *argv, "w", "--order", "2", "--out", "result.npz") == (0, "", "")
    X = np.load("data.npz")["X"]
    np.testing.assert_allclose(np.load("result.npz")["result"], 2 * X.T @ X)
    assert run(capsys, *argv, "w,y", "--out", "two.npz")[0] == 0
    for out in ("data.npz", "./data"):
        status, _, message = run(capsys, *argv, "w", "--out", out)
        assert status == 2
        assert "would overwrite the data" in message
    status, _, message = run(capsys, *argv, "w", "--out", "result.csv")
    assert (status, "--out result.csv: results are written as an .npz file" in message) == (2, True)
    with np.load("two.npz") as found:
        assert found.files == ["result0", "result1"]
        np.testing.assert_allclose(found["result1"], -2 * (X.sum(1) - 1))


@pytest.mark.parametrize("argv", CHECKED)
def test_check(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    status, out, err = run(capsys, "check", *argv)
    assert (status, err) == (0, "")
    assert "agrees" in out


FAULTS = [
    ("tanh", "sum(tanh(x))", 1, lambda partial, *a: -partial(*a)),
    ("tanh", "sum(tanh(x))", 1, lambda partial, *a: partial(*a) * 1.001),
    ("sin", "sum(sin(X*w))", 2, lambda partial, *a: partial(*a) * 1.01),
    ("sin", "sum(sin(w))", 3, lambda partial, *a: partial(*a) * 1.00001),
    ("tanh", "sum(tanh(w))", 4, lambda partial, *a: partial(*a) * 1.0001),
    ("exp", "norm2(exp(x))", 2, lambda partial, *a: partial(*a) + 0.01),
    ("logsumexp", "log(sum(exp(X*w)))", 1, lambda partial, *a: partial(*a) * 0.999),
    ("norm2", "norm2(x)", 1, lambda partial, *a: partial(*a) * 2),
]


@pytest.mark.parametrize(("name", "text", "order", "fault"), FAULTS)
def test_check_finds_a_planted_fault(
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    order: int,
    fault: Any,
) -> None:
    row = TABLE[name]
    right = row.meaning.partials
    wrong = (lambda *args: fault(right[0], *args), *right[1:])
    object.__setattr__(row.meaning, "partials", wrong)
    try:
        status, out, _ = run(capsys, "check", text, "--order", str(order))
    finally:
        object.__setattr__(row.meaning, "partials", right)
    assert status == 1
    assert "DIFFERS" in out
    assert run(capsys, "check", text, "--order", str(order))[0] == 0


@pytest.mark.parametrize(
    ("argv", "status", "out", "err"),
    [
        (["derive", "-sum(x.^2)", "--wrt", "x"], 0, "-2*x\n", ""),
        (["derive", "x +"], 2, "", "tcalc: 1:4: "),
        (["-h"], 0, "usage: tcalc", ""),
        (["check", "sum(sin(x))"], 0, "x, order 1: agrees", ""),
    ],
)
def test_module_is_the_command(argv: list[str], status: int, out: str, err: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tcalc", *argv],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status
    assert done.stdout.startswith(out)
    assert done.stderr.startswith(err)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("argv", [["derive", "x'*x", "--to", "c"], ["derive", "-h"]])
def test_nobody_who_reads_on_is_no_mistake(argv: list[str]) -> None:
    """As in `tcalc derive … | head -1`."""
    command = [sys.executable, "-m", "tcalc", *argv]
    buffered = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        command, cwd=ROOT, env=buffered, stdout=writes, stderr=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")
