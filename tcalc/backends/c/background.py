"""Compiling beside the program: one thread that takes one piece of work after the other."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable

from ...support.errors import Error
from .compiler import end_children, gently

Work = Callable[[], None]
#: Seconds in which a compiler that is told to end has cleared away its files.
SECONDS = 2.0


class Background:
    """Pieces of work in the order in which they came, done by a thread that starts with the first.

    What fails is left undone: those who wait for it go on as they did. When the interpreter ends
    the rest is dropped; after a fork the child does what was left, too.
    """

    def __init__(self) -> None:
        self._left: deque[Work] = deque()
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def put(self, work: Work) -> None:
        with self._changed:
            self._left.append(work)
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="tcalc", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Until all is done that was put here; False where that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._left, seconds)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        end_children()
        if self._thread is not None:
            self._thread.join(SECONDS)

    def forked(self) -> None:
        """In the child of a fork, where the thread is not."""
        self._begin()
        if self._left:
            self.put(self._left.popleft())

    def _run(self) -> None:
        with gently():
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._ended or self._left)
                    if self._ended:
                        return
                    work = self._left[0]
                try:
                    work()
                except (Error, OSError):
                    pass
                except Exception:  # a defect, which must hold up nobody who waits
                    logging.getLogger(__name__).exception("work beside the program failed")
                with self._changed:
                    self._left.popleft()
                    self._changed.notify_all()


BACKGROUND = Background()
atexit.register(BACKGROUND.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.forked)
