"""Compiled libraries kept on disk by what they were made from, and loaded if they are whole.

What lies in the cache is run. So it lies where nobody else can write, and beside every library is a
digest of it: a file that was cut short or changed is never mapped, it is made again.
"""

from __future__ import annotations

import _ctypes
import atexit
import ctypes
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ...support.errors import Error

#: Where libraries are kept, instead of the user's cache folder.
CACHE = "TCALC_CACHE"


def kept(made_of: str, symbols: Iterable[str], make: Callable[[Path], None]) -> ctypes.CDLL:
    """The library that was made of this, from the cache or made now.

    Parameters
    ----------
    made_of : str
        All that decides what is in it.
    symbols : iterable of str
        What it must have.
    make : callable
        ``make(path)`` compiles it there.
    """
    name = hashlib.sha256(made_of.encode()).hexdigest()[:32]
    library = folder() / f"{name}.so"
    found = _load(library, symbols) if _whole(library) else None
    if found is None:
        _store(library, make)
        found = _load(library, symbols)
    if found is None:
        wanted = ", ".join(symbols)
        raise Error(f"the compiler made no library with {wanted} in {library.parent}")
    return found


def closed(handle: int) -> None:
    """Unmap a library."""
    close = getattr(_ctypes, "dlclose", None)
    if close is not None:
        close(handle)


def _load(library: Path, symbols: Iterable[str]) -> ctypes.CDLL | None:
    """The library with these symbols; None where it is another."""
    try:
        found = ctypes.CDLL(str(library))
    except OSError:
        return None
    if all(hasattr(found, symbol) for symbol in symbols):
        return found
    closed(found._handle)  # or its path would stand for it from now on
    return None


def _digest(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _sum(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


def _whole(library: Path) -> bool:
    """Is it there, as it was made?"""
    try:
        return _digest(library).read_bytes() == _sum(library).encode()
    except OSError:
        return False


def _store(library: Path, make: Callable[[Path], None]) -> None:
    """Made beside its place and moved there once it is on disk, as others may be at it too."""
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as work:
            made = Path(work, library.name)
            make(made)
            _digest(made).write_text(_sum(made), encoding="ascii")
            for file, place in ((made, library), (_digest(made), _digest(library))):
                with file.open("rb") as written:
                    os.fsync(written.fileno())
                file.replace(place)
    except OSError as error:
        raise Error(f"no library can be made in {library.parent}: {error}") from error


# --- where ----------------------------------------------------------------------------------------


@cache
def folder() -> Path:
    """A folder that only this user writes to: the cache, or else a temporary one."""
    named = os.environ.get(CACHE)
    with suppress(OSError, RuntimeError):  # no such place, or nobody's home
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        found = (Path(named) if named else Path(base, "tcalc")).resolve()
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        if private(found) and os.access(found, os.W_OK):
            return found
    found = Path(tempfile.mkdtemp(prefix="tcalc-"))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def private(place: Path) -> bool:
    """Can nobody else change what lies in a folder, nor put another one in its place?

    As OpenSSH asks of its files: it and all folders above belong to this user or to root, and
    others write to none of them, but to those where they can only move what is theirs.
    """
    if not hasattr(os, "getuid"):
        return True
    for around in (place, *place.parents):
        found = around.stat()
        writable = found.st_mode & 0o022
        if found.st_uid not in (0, os.getuid()) or (
            writable and (around == place or not found.st_mode & stat.S_ISVTX)
        ):
            return False
    return place.stat().st_uid == os.getuid()
