"""Files from the shell: several forms at once, and shared libraries, which other programs call."""

from __future__ import annotations

import ctypes
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.app.libraries import build_library
from tcalc.backends.c.compiler import command
from tests.c_programs import COMPILER, STRICT, Job, blas, called, needs_compiler

LOSS = "sum(log(1 + exp(-y .* (X*w))))"
DECLARED = ["--var", "X=m,n", "--var", "y=m", "--var", "w=n", "--wrt", "w"]
DATA = {
    "X": np.random.default_rng(0).normal(size=(5, 3)),
    "y": np.array([1.0, -1, 1, 1, -1]),
    "w": np.array([0.3, -0.2, 0.1]),
}
SIZES = {"m": 5, "n": 3}
PAGE = (Path(__file__).parent.parent / "docs" / "output.md").read_text()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CFLAGS", raising=False)


def derivative(order: int) -> Any:
    return tc.derivative(tc.parse(LOSS, X=("m", "n"), y="m", w="n"), "w", order)


@pytest.mark.parametrize(
    ("forms", "out", "written"),
    [
        (["c"], "f.c", ["f.c", "f.h"]),
        (["c"], "logistic", ["logistic.c", "logistic.h"]),
        (["c"], "int.c", ["int.c", "int.h"]),
        (["latex"], "paper.tex", ["paper.tex"]),
        (["latex"], "paper", ["paper.tex"]),
        (["text", "c", "numpy"], "g", ["g.c", "g.h", "g.py", "g.txt"]),
        (["latex", "c"], "new/", ["new/f.c", "new/f.h", "new/f.tex"]),
    ],
)
def test_forms_go_to_files(forms: list[str], out: str, written: list[str]) -> None:
    options = [word for form in forms for word in ("--to", form)]
    assert main(["derive", LOSS, *DECLARED, *options, "--out", out]) == 0
    found = sorted([str(path) for path in Path().rglob("*") if path.is_file()])
    assert found == written
    for path in map(Path, found):
        if path.suffix == ".c":
            name = "f" if path.stem == "int" else path.stem
            assert f"int {name}(" in path.read_text()
            assert path.read_text().startswith(path.with_suffix(".h").read_text()[:-1])


def test_several_forms_are_printed_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["derive", "x'*x", "--wrt", "x", "--to", "text", "--to", "latex"]) == 0
    assert capsys.readouterr().out == "2*x\n\n2 x\n"


@needs_compiler
@pytest.mark.parametrize(
    ("options", "real"),
    [([], np.float64), (["--single"], np.float32), (["--blas", "none"], np.float64)],
)
@pytest.mark.parametrize("out", ["libstep.so", "folder"])
def test_libraries_are_called_with_data(
    options: list[str], real: Any, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["build", LOSS, *DECLARED, "--order", "2", "--name", "step", "--out", out, *options]
    assert main(line) == 0
    source, header, library, told = capsys.readouterr().out.splitlines()
    assert told.startswith("matrix products: ")
    job = Job("hessian", derivative(2), DATA, SIZES)
    status, (found,) = called(
        ctypes.CDLL(str(Path(library).resolve())), Path(source).read_text(), "step", job, real
    )
    assert status == 0
    np.testing.assert_allclose(found, job.expected()[0], atol=1e-13 if real is np.float64 else 1e-5)
    main_text = "int main(void) { return (int)step_workspace(0, 0); }"
    user = f'#include "{Path(header).name}"\n{main_text}\n'
    Path(header).with_name("user.c").write_text(user)
    line = [str(COMPILER), *STRICT, "user.c", Path(source).name, "-o", "user", "-lm"]
    subprocess.run(line, cwd=Path(header).parent, check=True)
    assert subprocess.run(["./user"], cwd=Path(header).parent, check=False).returncode == 0


@needs_compiler
def test_a_library_takes_the_cblas_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [flag for flag in blas(tmp_path) if flag != "-DCBLAS"]
    line = ["build", LOSS, *DECLARED, "--order", "2", "--out", "libf.so"]
    assert main([*line, "--blas", shlex.join(flags)]) == 0
    assert f"matrix products: {' '.join(flags)}" in capsys.readouterr().out
    job = Job("hessian", derivative(2), DATA, SIZES)
    library = ctypes.CDLL(str(Path("libf.so").resolve()))
    _, (found,) = called(library, Path("libf.c").read_text(), "f", job)
    np.testing.assert_allclose(found, job.expected()[0], atol=1e-13)


@needs_compiler
def test_sources_of_a_library_are_called_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.c").write_text("int mine;\n")
    for options in ([], ["--single"]):  # what tcalc wrote it may write again
        line = ["build", "x'*x", "--wrt", "x", "--name", "f", "--out", "libf.so", *options]
        assert main(line) == 0
        assert capsys.readouterr().out.splitlines()[:3] == ["libf.c", "libf.h", "libf.so"]
    assert "#ifndef LIBF_H\n" in Path("libf.h").read_text()
    assert main(["build", "x'*x", "--out", "3-d.so"]) == 0
    assert "#ifndef FILE_3_D_H\n" in Path("3-d.h").read_text()
    assert Path("f.c").read_text() == "int mine;\n"


@needs_compiler
@pytest.mark.parametrize(
    ("line", "file"),
    [
        (["build", "x'*x", "--out", "libg.so"], "libg.c"),
        (["build", "x'*x", "--out", "libg.so"], "libg.h"),
        (["build", "x'*x", "--out", "."], "libf.c"),
        (["derive", "x'*x", "--to", "c", "--out", "g.c"], "g.h"),
    ],
)
def test_files_of_others_are_not_overwritten(
    line: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text("int mine;\n")
    assert main(line) == 2
    assert f"{file} would be overwritten" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in Path().iterdir()] == [(file, "int mine;\n")]


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("x'*x", "Writes out; returns 0."),
        ("A\\x", "Writes out; returns 0, or 1 where a factorisation fails."),
    ],
)
def test_a_header_tells_what_the_function_returns(
    text: str, effect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["derive", text, "--to", "c", "--out", "f.c"]) == 0
    header = Path("f.h").read_text()
    assert f"/* {effect}\n" in header
    assert "Returns" not in header


@needs_compiler
def test_a_library_is_not_called_as_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "x'*x", "--out", "f.c"]) == 2
    assert "f.c is the name of a source" in capsys.readouterr().err
    assert not [*Path().iterdir()]


@needs_compiler
def test_pointers_alone_are_arguments_too() -> None:
    line = ["build", "c*sum((X*w).^2)", *DECLARED[:2], "--var", "w=n", "--var", "c=", "--wrt", "w"]
    assert main([*line, "--out", "libf.so"]) == 0
    found, status = np.empty(3), ctypes.c_int(7)
    c, m, n = ctypes.c_double(1.5), ctypes.c_int(5), ctypes.c_int(3)
    arrays = [DATA[name].ctypes.data_as(ctypes.c_void_p) for name in ("X", "w")]
    out = found.ctypes.data_as(ctypes.c_void_p)
    refs = [ctypes.byref(number) for number in (c, m, n, status)]
    library = ctypes.CDLL(str(Path("libf.so").resolve()))
    library.f_pointers(arrays[0], refs[0], arrays[1], *refs[1:3], out, refs[3])
    assert status.value == 0
    np.testing.assert_allclose(found, 3 * DATA["X"].T @ DATA["X"] @ DATA["w"])


@needs_compiler
def test_indices_are_ints_where_arguments_are_pointers() -> None:
    u, g = tc.var("u", "q"), tc.var("g", "m", integer=True)
    build_library(tc.grad(tc.sum(u[g] ** 2), u), "libtaken.so", "taken")
    library = ctypes.CDLL(str(Path("libtaken.so").resolve()))
    found, status = np.empty(3), ctypes.c_int()
    indices, values = np.array([0, 2, 2], np.int32), np.array([1.0, 2, 3])
    sizes = [ctypes.byref(ctypes.c_int(n)) for n in (3, 3)]
    places = [a.ctypes.data_as(ctypes.c_void_p) for a in (indices, values)]
    out = found.ctypes.data_as(ctypes.c_void_p)
    library.taken_pointers(*places, *sizes, out, ctypes.byref(status))
    assert status.value == 0
    np.testing.assert_array_equal(found, [2, 0, 12])


@pytest.mark.parametrize(
    ("compiler", "flags", "message"),
    [
        ("no-such-compiler", "", "a library needs a C compiler; looked for CC=no-such-compiler"),
        ("'", "", "is no command"),
        (str(COMPILER), "--no-such-flag", "failed"),
        (str(COMPILER), "'", "No closing quotation"),
    ],
)
@needs_compiler
def test_problems_with_compilers_are_told(
    compiler: str, flags: str, message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("CFLAGS", flags)
    command.cache_clear()
    try:
        assert main(["build", "x'*x", "--wrt", "x", "--out", "libf.so"]) == 2
    finally:
        command.cache_clear()
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


@needs_compiler
@pytest.mark.parametrize(
    "line", re.findall(r"^tcalc (?:build .*|derive .*--out .*)$", PAGE, re.MULTILINE)
)
def test_lines_of_the_documentation_run(line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0
    assert any(Path().rglob("*.c"))
