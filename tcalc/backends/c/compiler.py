"""The system's C compiler: source to a loaded library, kept on disk by what it was made from."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from ...support.errors import Error

#: Results keep NaN, infinities and signed zeros; only errno and traps, which nobody reads, go.
FLAGS = (
    "-O3", "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math",
    "-fopenmp-simd", "-shared", "-fPIC", "-w",
)  # fmt: skip
#: Every product is rounded, as NumPy's are, so that a * a - b * b is 0 where a is b; or sums with a
#: product are rounded once.
ROUNDED, CONTRACTED = "-ffp-contract=off", "-ffp-contract=fast"
COMPILERS = ("cc", "gcc", "clang")
#: Where libraries are kept, instead of the user's cache folder.
CACHE = "TCALC_CACHE"


@cache
def command() -> tuple[str, ...]:
    """The compiler's command: what the variable CC says, or the first that is there."""
    text = os.environ.get("CC", "")
    try:
        named = shlex.split(text)
    except ValueError as error:
        raise Error(f"CC={text} is no command: {error}") from error
    for words in [named] if named else [[name] for name in COMPILERS]:
        if shutil.which(words[0]):
            return tuple(words)
    looked = f"CC={shlex.join(named)}" if named else ", ".join(COMPILERS)
    raise Error(f'backend="c" needs a C compiler; looked for {looked}')


def loaded(source: str, contract: str = ROUNDED) -> ctypes.CDLL:
    """The library of some C source, compiled now or before."""
    words = (*command(), *FLAGS, contract)
    made_of = "\0".join([*words, _version(), _processor(), source])
    name = hashlib.sha256(made_of.encode()).hexdigest()[:32]
    library = _folder() / f"{name}.so"
    if library.exists():
        with suppress(OSError):  # not whole, as on a disk that was full
            return ctypes.CDLL(str(library))
    _compile(words, source, library)
    return ctypes.CDLL(str(library))


def _compile(words: tuple[str, ...], source: str, library: Path) -> None:
    """Made beside its place and moved there whole, as others may be at it too."""
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as work:
            text, made = Path(work, "tcalc.c"), Path(work, "tcalc.so")
            text.write_text(source, encoding="utf-8")
            line = [*words, "-o", str(made), str(text), "-lm"]
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            if done.returncode or not made.exists():
                raise Error(f"{shlex.join(words)} failed:\n{done.stderr.strip()[:2000]}")
            made.replace(library)
    except OSError as error:
        raise Error(f"no library can be made in {library.parent}: {error}") from error


@cache
def _folder() -> Path:
    """A folder that only this user writes to, since what lies there is run."""
    named = os.environ.get(CACHE)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = (Path(named) if named else Path(base, "tcalc")).resolve()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        private = not hasattr(os, "getuid") or (
            found.st_uid == os.getuid() and not found.st_mode & 0o022
        )
        if private and os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # no such place, or nobody's home
        pass
    folder = Path(tempfile.mkdtemp(prefix="tcalc-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _version() -> str:
    done = subprocess.run([*command(), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


@cache
def _processor() -> str:
    """What tells machines apart that share a cache folder, since their instructions differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
        return "\n".join(sorted(set(found)))
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
