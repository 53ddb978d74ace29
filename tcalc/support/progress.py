"""A line on stderr while something takes more than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

DELAY = 1.0


class Progress:
    """``with Progress("deriving"):`` prints elapsed seconds, on a terminal over one line.

    Where that is no terminal a command prints lines, now and then; a `library` function nothing.
    """

    def __init__(self, what: str, library: bool = False) -> None:
        self.what, self.library = what, library
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _tick(self) -> None:
        shown = 0
        live = sys.stderr.isatty()
        if self.library and not live:
            return
        while not self._stop.wait(DELAY if live or not shown else 10 * DELAY):
            elapsed = time.perf_counter() - self._start
            print(
                f"{self.what} … {elapsed:.0f} s",
                end="\r" if live else "\n",
                file=sys.stderr,
                flush=True,
            )
            shown += 1
        if shown and live:
            print(" " * (len(self.what) + 16) + "\r", end="", file=sys.stderr, flush=True)
