"""Shared libraries: C source that the system's compiler builds, with a header for callers."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..backends.c.compiler import ALIGNED, command
from ..languages.source.c_header import MARK, header_of
from ..languages.source.c_library import library_source
from ..support.errors import Error
from ..support.records import NamedTuple
from .output import beside, folder_for, make_folder

FLAGS = ("-O3", "-march=native")
ALWAYS = ("-std=c99", "-shared", "-fPIC", "-fno-math-errno", "-fopenmp-simd", ALIGNED)
#: Where a CBLAS may be, in the order in which they are tried.
CBLAS = (("-lopenblas",), ("-lcblas", "-lblas"), ("-lcblas",), ("-lblas",))
_TRIED = """
#include <cblas.h>
int main(void) { double x = 1; return cblas_ddot(1, &x, 1, &x, 1) != 1; }
"""
SOURCES = (".c", ".h")
ENDINGS = {"darwin": ".dylib", "win32": ".dll"}


class Library(NamedTuple):
    """The files of a library, and the flags that linked it to a CBLAS, if any did.

    Attributes
    ----------
    source, header, library : Path
    blas : tuple of str
    multiplies : bool
        Are there products of matrices in it?
    """

    source: Path
    header: Path
    library: Path
    blas: tuple[str, ...]
    multiplies: bool


def build_library(
    e: Any, out: str, name: str = "f", blas: str = "auto", single: bool = False
) -> Library:
    """Compile an expression to a shared library.

    Parameters
    ----------
    e : expression or nest of expressions
    out : str
        The library's file, such as ``libf.so``, with its source and its header beside it as
        ``libf.c`` and ``libf.h``; or a folder for the three, called after the function.
    name : str
        Of the function; ``name_workspace`` tells how many bytes its last argument has, and
        ``name_pointers`` is the same function with pointers alone, as R's ``.C`` calls it.
    blas : str
        Products of matrices: ``"auto"`` is a CBLAS where the linker finds one, ``"none"`` plain
        loops; anything else are the flags for one.
    single : bool
        Numbers of float32.

    Raises
    ------
    Error
        Where there is no compiler, or it fails; where the folder is missing; where the source or
        the header would overwrite a file that tcalc did not write.
    UnsupportedError
        Where C has no word for an operator.
    """
    command("a library")
    path = Path(out)
    in_folder = not path.suffix or path.is_dir()
    if in_folder:
        path = path / f"lib{name}{ENDINGS.get(sys.platform, '.so')}"
    if path.suffix in SOURCES:
        raise Error(f"{path} is the name of a source; a library is called libf.so, say")
    text = library_source(e, name, path.stem)
    text = text.replace(MARK, f"{MARK}\n#define SINGLE", 1) if single else text
    if in_folder:
        make_folder(path.parent)
    folder_for(path)
    source, header = (beside(path, ending) for ending in SOURCES)
    source.write_text(text, encoding="utf-8")
    header.write_text(header_of(text), encoding="utf-8")
    multiplies = " multiply(" in text
    linked = _linked(blas) if multiplies else ()
    flags = shlex.split(os.environ.get("CFLAGS", shlex.join(FLAGS)))
    chosen = [*flags, *(["-DCBLAS"] if linked else [])]
    line = [*command("a library"), *ALWAYS, *chosen, str(source), "-o", str(path), *linked, "-lm"]
    _run(line)
    return Library(source, header, path, linked, multiplies)


def _linked(blas: str) -> tuple[str, ...]:
    """The flags that link a CBLAS."""
    if blas == "none":
        return ()
    if blas != "auto":
        return tuple(shlex.split(blas))
    with tempfile.TemporaryDirectory() as folder:
        tried = Path(folder, "tried.c")
        tried.write_text(_TRIED, encoding="utf-8")
        for flags in CBLAS:
            line = [*command("a library"), str(tried), "-o", str(tried.with_suffix(".out")), *flags]
            if _compiled(line).returncode == 0:
                return flags
    return ()


def _run(line: Sequence[str]) -> None:
    done = _compiled(line)
    if done.returncode:
        raise Error(f"{shlex.join(line)} failed:\n{done.stderr.strip()[:2000]}")


def _compiled(line: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            line, capture_output=True, check=False, encoding="utf-8", errors="replace"
        )
    except OSError as problem:
        raise Error(f"{line[0]} does not run: {problem}") from problem
