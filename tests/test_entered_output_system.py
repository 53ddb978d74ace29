"""What the system does not give: compilers that fail, readers that leave, memory under a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tcalc as tc
from tcalc.app import cli, libraries
from tcalc.backends.c import compiler
from tcalc.integers.affine import Affine, Constraint
from tests.c_programs import needs_compiler

COMPUTE = """
import numpy as np
import tcalc as tc
try:
    print(tc.compile(tc.sum(tc.exp(tc.var("x", 3)) * 2), backend="c")(x=np.zeros(3)))
except tc.Error as error:
    print("Error:", error)
"""


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@needs_compiler
def test_instead_of_a_cache_that_is_no_folder_one_stands_until_the_end(tmp_path: Path) -> None:
    file, temporary = tmp_path / "file", tmp_path / "tmp"
    file.write_text("mine")
    temporary.mkdir()
    assert python(COMPUTE, TCALC_CACHE=str(file), TMPDIR=str(temporary)) == "6.0\n"
    assert file.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == [file, temporary]
    assert not [*temporary.iterdir()]


def test_a_compiler_that_makes_another_library_is_told(tmp_path: Path) -> None:
    words = " ".join(compiler.command())
    (tmp_path / "other.c").write_text("int other = 1;")
    broken = script(
        tmp_path / "cc",
        f'[ "$1" = --version ] && exec echo 1\n'
        f'while [ "$1" != -o ]; do shift; done\n'
        f'exec {words} -shared -fPIC -o "$2" {tmp_path / "other.c"}',
    )
    shown = python(COMPUTE, CC=broken, TCALC_CACHE=str(tmp_path / "cache"))
    assert "Error: the compiler made no library with " in shown
    assert f" in {tmp_path / 'cache'}" in shown


def test_a_compiler_that_writes_no_library_is_told(tmp_path: Path) -> None:
    text = '[ "$1" = --version ] && exec echo 1\nwhile [ "$1" != -o ]; do shift; done\n'
    broken = script(tmp_path / "cc", text + 'echo no library > "$2"')
    shown = python(COMPUTE, CC=broken, TCALC_CACHE=str(tmp_path / "cache"))
    assert "Error: the compiler made no library with " in shown
    silent = script(tmp_path / "cc", "echo what is wrong >&2")
    shown = python(COMPUTE, CC=silent, TCALC_CACHE=str(tmp_path / "cache"))
    assert "Error: " in shown
    assert " failed:\nwhat is wrong" in shown


@pytest.mark.parametrize("text", ["not for this machine", "#!/no/such/shell\n"])
def test_a_compiler_that_does_not_run_is_told(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cc"
    broken.write_bytes(b"\x7fELF" + text.encode() if text.startswith("not") else text.encode())
    broken.chmod(0o755)
    shown = python(COMPUTE, CC=str(broken), TCALC_CACHE=str(tmp_path / "cache"))
    assert f"Error: {broken} does not run: " in shown
    monkeypatch.setenv("CC", str(broken))
    compiler.command.cache_clear()
    try:
        with pytest.raises(tc.Error, match=f"^{broken} does not run: "):
            libraries.build_library(
                tc.exp(tc.var("x", "n")), str(tmp_path / "libf.so"), blas="none"
            )
    finally:
        compiler.command.cache_clear()
        monkeypatch.delenv("CC")


@needs_compiler
def test_a_library_is_linked_with_the_first_routines_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blas.c").write_text(
        "void cblas_dgemm(void) {} void cblas_sgemm(void) {} void cblas_dsyrk(void) {}"
        " void cblas_ssyrk(void) {} void cblas_dgemv(void) {} void cblas_sgemv(void) {}"
    )
    made = tmp_path / "blas.so"
    subprocess.run(
        [*compiler.command(), "-shared", "-fPIC", "-o", made, tmp_path / "blas.c"], check=True
    )
    monkeypatch.setattr(libraries, "CBLAS", [("-lno-such-blas",), (str(made),), ("-lnone",)])
    monkeypatch.setattr(libraries, "_TRIED", "void cblas_dgemm(void);"
                        " int main(void) { cblas_dgemm(); return 0; }")  # fmt: skip
    assert libraries._linked("auto") == (str(made),)


# --- the command line -----------------------------------------------------------------------------


def test_a_program_without_standard_output_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["derive", "x*x", "--var", "x=", "--wrt", "x"]) == 0
    assert cli.main(["derive", "x*", "--var", "x=", "--wrt", "x"]) == cli.BAD_INPUT


def test_a_reader_that_leaves_ends_the_program_in_silence() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = ["derive", "x*x", "--var", "x=", "--wrt", "x"]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, tcalc.app.cli as cli; sys.exit(cli.main({line}))"],
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # what waits is written at the end, too
        stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


# --- what cannot be had ---------------------------------------------------------------------------


def test_memory_under_a_limit_is_what_is_left_of_it() -> None:
    shown = python(
        "import resource\n"
        "from tcalc.support.machine import own_memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**44, 2**44))\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "left = 2**44 - pages * resource.getpagesize()\n"
        "print(abs(own_memory() - left) < 2**22, own_memory() < 2**44)\n"
    )
    assert shown == "True True\n"


def test_functions_of_no_known_arguments_are_told_so() -> None:
    told = r"builtin_function_or_method; a function gives one of variables: min\(…\)$"
    with pytest.raises(TypeError, match=told):
        tc.to_latex(min)


def test_values_that_are_not_smooth_at_any_scale_are_not_checked() -> None:
    x = tc.var("x", 3)
    with pytest.raises(tc.Error, match=r"^values along random lines are not smooth enough"):
        tc.check(tc.sum(tc.sin(1e12 * x)), "x")
    assert tc.check(tc.sum(tc.sin(1e-3 * x)), "x").error < 1e-6


@pytest.mark.parametrize("compare", ["__lt__", "__le__", "__gt__", "__ge__"])
def test_records_have_an_order_among_their_own_kind_only(compare: str) -> None:
    forms = [Affine((("m", 2),), 1), Affine((("m", 2),), 3), Affine((("n", 1),), 0)]
    for one in forms:
        for other in (3, (one.terms, one.constant), Constraint(one)):
            assert getattr(one, compare)(other) is NotImplemented
        for two in forms:
            wanted = getattr((one.terms, one.constant), compare)((two.terms, two.constant))
            assert getattr(one, compare)(two) is wanted
    with pytest.raises(TypeError, match=r"not supported between instances of '\w+' and '\w+'"):
        sorted([*forms, Constraint(forms[0])])  # type: ignore[type-var]
