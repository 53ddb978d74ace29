"""Threads of Python that share a job whose pieces release the interpreter's lock."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from importlib import import_module
from itertools import count
from threading import Lock
from typing import Any


class Pool:
    """Threads that start with the first job, of which there is one at a time.

    Who comes while they are at work does his own alone; the child of a fork has its own.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Without threads, as in the child of a fork."""
        self._busy = Lock()
        self._threads: Any = None
        self._most = 0
        self.shared = 0

    def share(self, piece: Callable[[int, int], None], pieces: int, threads: int) -> None:
        """Do all pieces, in whatever order; of errors the first piece's is raised.

        Parameters
        ----------
        piece : callable
            ``piece(k, worker)`` does number k; `worker` is below `threads`, another one for all
            that are at work at a time.
        pieces, threads : int
        """
        threads = min(threads, pieces)
        if threads < 2 or not self._busy.acquire(blocking=False):
            for k in range(pieces):
                piece(k, 0)
            return
        try:
            self._shared(piece, pieces, threads)
        finally:
            self._busy.release()

    def _shared(self, piece: Callable[[int, int], None], pieces: int, threads: int) -> None:
        self.shared += 1
        numbers, failed = count(), dict[int, BaseException]()

        def work(worker: int) -> None:
            while (k := next(numbers)) < pieces and not failed:
                try:
                    piece(k, worker)
                except BaseException as error:
                    failed[k] = error

        # Each has the caller's settings of floating point errors.
        others = [
            self._started(threads).submit(contextvars.copy_context().run, work, k)
            for k in range(1, threads)
        ]
        try:
            work(0)
        finally:
            for other in others:
                if not other.cancel():
                    other.exception()  # waits
        if failed:
            raise failed[min(failed)]

    def _started(self, threads: int) -> Any:
        if self._most < threads - 1:
            if self._threads is not None:
                self._threads.shutdown()
            self._most = threads - 1
            executor = import_module("concurrent.futures").ThreadPoolExecutor
            self._threads = executor(self._most, "tcalc tiles")
        return self._threads


POOL = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.begin)
