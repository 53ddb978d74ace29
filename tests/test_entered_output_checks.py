"""Printed C that checks itself: of scalars, of values, and of functions that were spoilt since."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import COMPILER, STRICT, needs_compiler

s, t, x = tc.var("s"), tc.var("t"), tc.var("x", "n")

#: Derivatives with respect to scalars and beside them, and what spoils the printed function.
CHECKED = {
    "a scalar": (tc.grad(tc.exp(s) * tc.sin(s), "s"), "cos(", "tan("),
    "a scalar beside an array": (tc.grad(tc.sum(tc.exp(s * x)), "s"), "exp(", "cosh("),
    "an array beside a scalar": (tc.grad(tc.sum(tc.exp(s * x)), "x"), "exp(", "cosh("),
    "two scalars": (tc.grad(tc.exp(s * t) * t, "t"), "exp(", "cosh("),
    "a second derivative": (tc.hessian(tc.sin(s) * tc.sum(x**2), "s"), "sin(", "tan("),
    "a chosen entry": (tc.grad(tc.sin(x[tc.argmax(x)] * s), "s"), "cos(", "tan("),
}


def answered(source: str, folder: Path) -> tuple[int, str]:
    """The status of the printed program, and what it writes."""
    assert COMPILER is not None
    (folder / "f.c").write_text(source)
    line = [COMPILER, *STRICT, "-DCHECK", str(folder / "f.c"), "-o", str(folder / "f"), "-lm"]
    subprocess.run(line, check=True)
    done = subprocess.run([folder / "f"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@needs_compiler
@pytest.mark.parametrize("name", CHECKED)
def test_derivatives_of_scalars_check_themselves(name: str, tmp_path: Path) -> None:
    e, word, other = CHECKED[name]
    source = tc.to_code(e, "c", check=True)
    status, told = answered(source, tmp_path)
    found = re.fullmatch(r"largest difference from central differences: (\S+)\n", told)
    assert not status
    assert found is not None
    assert 0 < float(found[1]) < 1e-8
    # The body of the derivative, which a brace at the start of a line ends.
    begin = re.search(r"^int f\([^;]*?\)\n\{", source, re.MULTILINE)
    assert begin is not None
    end = source.index("\n}", begin.start())
    body = source[begin.start() : end]
    assert word in body
    spoilt = source[: begin.start()] + body.replace(word, other) + source[end:]
    status, told = answered(spoilt, tmp_path)
    assert status
    assert "computed" not in told


@needs_compiler
@pytest.mark.parametrize("e", [tc.exp(s), s + 1, tc.sum(x) * s, tc.outer(x, x) * s - t])
def test_values_have_nothing_that_they_are_checked_by(e: tc.Expr, tmp_path: Path) -> None:
    assert answered(tc.to_code(e, "c", check=True), tmp_path) == (0, "computed\n")


@needs_compiler
def test_headers_are_read_by_compilers_of_cpp(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no compiler of C++ here")
    source = tc.to_code(tc.grad(tc.sum(tc.exp(s * x)), "x"), "c")
    head, _, _ = source.partition("#endif /* header */")
    (tmp_path / "f.h").write_text(head + "#endif /* header */\n")
    (tmp_path / "f.c").write_text(source)
    (tmp_path / "main.cpp").write_text(
        '#include "f.h"\n#include <cstdio>\nint main() {\n'
        "  double x[2] = {0.0, 1.0}, out[2];\n"
        "  int status = f(0.5, x, 2, out, NULL);\n"
        '  std::printf("%d %.17g %.17g", status, out[0], out[1]);\n}\n'
    )
    assert COMPILER is not None
    subprocess.run([COMPILER, *STRICT, "-c", "f.c", "-o", "f.o"], check=True, cwd=tmp_path)
    subprocess.run([compiler, "main.cpp", "f.o", "-lm", "-o", "f"], check=True, cwd=tmp_path)
    told = subprocess.run([tmp_path / "f"], capture_output=True, text=True, check=True).stdout
    status, *entries = map(float, told.split())
    assert (status, entries) == (0, pytest.approx([0.5, 0.5 * np.exp(0.5)]))
