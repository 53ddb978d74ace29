"""The system's C compiler: source to a loaded library."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from ...support.errors import Error
from .cache import kept

#: GCC before 12.4 and 13.2 leaves a vector on the stack unaligned (its bug 109780) where the pass
#: that this turns off puts the vector's address into a register: the process ends.
ALIGNED = "-fno-gcse"
#: Results keep NaN, infinities and signed zeros; only errno and traps, which nobody reads, go.
FLAGS = (
    "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math",
    "-fopenmp-simd", ALIGNED, "-shared", "-fPIC", "-w",
)  # fmt: skip
#: Every product is rounded, as NumPy's are, so that a * a - b * b is 0 where a is b; or sums with a
#: product are rounded once.
ROUNDED, CONTRACTED = "-ffp-contract=off", "-ffp-contract=fast"
#: How much is made of loops; the second takes half of the time, and makes loops of fixed extents a
#: few percent slower.
MOST, QUICK = "-O3", "-O2"
COMPILERS = ("cc", "gcc", "clang")

_GENTLY = ContextVar("gently", default=False)
_children: set[subprocess.Popen[str]] = set()


@cache
def command(what: str = 'backend="c"') -> tuple[str, ...]:
    """The compiler's command: what the variable CC says, or the first that is there.

    An Error says `what` needs it.
    """
    text = os.environ.get("CC", "")
    try:
        named = shlex.split(text)
    except ValueError as error:
        raise Error(f"CC={text} is no command: {error}") from error
    for words in [named] if named else [[name] for name in COMPILERS]:
        if shutil.which(words[0]):
            return tuple(words)
    looked = f"CC={shlex.join(named)}" if named else ", ".join(COMPILERS)
    raise Error(f"{what} needs a C compiler; looked for {looked}")


def loaded(
    source: str, symbols: Sequence[str], flag: str = ROUNDED, level: str = MOST
) -> ctypes.CDLL:
    """The library of some C source, which has these symbols, compiled now or before."""
    words = (*command(), level, *FLAGS, flag)
    made_of = "\0".join([*words, _version(), _processor(), source])

    def compile(library: Path) -> None:
        text = library.with_suffix(".c")
        text.write_text(source, encoding="utf-8")
        done = _told([*words, "-o", str(library), str(text), "-lm"])
        if done.returncode or not library.exists():
            raise Error(f"{shlex.join(words)} failed:\n{done.stderr.strip()[:2000]}")

    return kept(made_of, symbols, compile)


def _told(line: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What a compiler says, in whatever encoding."""
    words = [*_gentle(), *line] if _GENTLY.get() else line
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    ) as child:
        _children.add(child)
        try:
            out, err = child.communicate()
        except BaseException:
            child.kill()
            raise
        finally:
            _children.discard(child)
    return subprocess.CompletedProcess(words, child.returncode, out, err)


@contextmanager
def gently() -> Iterator[None]:
    """Within it compilers leave the processor to others."""
    token = _GENTLY.set(True)
    try:
        yield
    finally:
        _GENTLY.reset(token)


def end_children() -> None:
    """Ends the compilers that run now."""
    for child in list(_children):
        child.kill()


@cache
def _gentle() -> tuple[str, ...]:
    return ("nice", "-n", "10") if shutil.which("nice") else ()


@cache
def _version() -> str:
    try:
        return _told([*command(), "--version"]).stdout.partition("\n")[0]
    except OSError as error:
        raise Error(f"{shlex.join(command())} does not run: {error}") from error


@cache
def _processor() -> str:
    """What tells machines apart that share a cache folder, since their instructions differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        found = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
        return "\n".join(sorted(set(found)))
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
