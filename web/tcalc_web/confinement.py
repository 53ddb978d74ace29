"""What a child may do: limits of the kernel, set before it looks at anything a user wrote."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Numbers of prctl(2).
_PDEATHSIG, _NO_NEW_PRIVS = 1, 38
#: Seconds of the processor between a warning and the next one.
AGAIN = 0.05


def mapped() -> int:
    """Bytes of address space of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    return pages * resource.getpagesize()


def confine(
    cpu: int, address_space: int, keep: int, warned: int, warning: Callable[..., Any]
) -> None:
    """Enter a session of one's own with little time and memory, no files to write, no new rights.

    Parameters
    ----------
    cpu : int
        Seconds of the processor; the kernel kills what takes more.
    address_space : int
        Bytes.
    keep : int
        The one descriptor that stays open, beside the standard ones, which read and write nothing.
    warned : int
        Seconds of the processor after which, and then every `AGAIN` seconds until `unwarned`,
        `warning` is called as a handler of signals.
    warning : callable
        May raise an error, which Python drops where it comes in the middle of a destructor, and
        code that gives up an attempt takes for its own: hence again.

    Raises
    ------
    OSError
        Where the system has no such limit: then nothing is run.
    """
    os.setsid()
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue  # reserved by the C library
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(3, keep)
    os.closerange(keep + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    signal.signal(signal.SIGPROF, warning)
    signal.setitimer(signal.ITIMER_PROF, warned, AGAIN)
    for limit, most in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    library = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PDEATHSIG, int(signal.SIGKILL)), (_NO_NEW_PRIVS, 1)):
        if library.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"prctl({option}) is refused")


def unwarned() -> None:
    """No further warning: what is left to do is short."""
    signal.setitimer(signal.ITIMER_PROF, 0)
