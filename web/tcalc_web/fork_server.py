"""Forks a child for every query: ``python -m tcalc_web.fork_server DESCRIPTOR SETTINGS``.

It is single-threaded and has tcalc imported and warm; memory that children only read stays shared
(`gc.freeze`). Over the socket of the descriptor come ``{"id", "query"}``, and ``{"id"}`` alone
where nobody waits for the answer any more; there go ``{"id", "slow": true}`` when a query takes
long, and at last ``{"id", "reply", "seconds"}``, the reply ``None`` where it was killed. When the
socket closes, all children are killed and it ends.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .confinement import confine, mapped
from .frames import Frames, frame
from .queries import out_of_time, warm_up, written
from .settings import Settings

#: How much lower a query in the background stands with the scheduler.
NICE = 15
_CHUNK = 1 << 16


@dataclass
class Child:
    """A query that is being answered."""

    id: int
    pid: int
    pipe: int
    start: float
    slow: bool = False
    written: bytearray = field(default_factory=bytearray)


class ForkServer:
    """Children by the pipe that they answer through.

    Parameters
    ----------
    control : socket
    settings : Settings
    """

    def __init__(self, control: socket.socket, settings: Settings) -> None:
        self.control, self.settings = control, settings
        self.children: dict[int, Child] = {}
        self.requests = Frames(settings.request)
        self.address_space = mapped() + settings.memory
        self.outgoing = bytearray()
        control.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the other side closes."""
        try:
            while self._turn():
                pass
        finally:
            for child in list(self.children.values()):
                self._end(child)

    def _turn(self) -> bool:
        for key, events in self.selector.select(self._pause()):
            if key.fileobj is not self.control:
                child = self.children.get(key.fd)
                # An earlier event may have ended it, and another one may have its descriptor.
                if child is not None and child is key.data:
                    self._read(child)
                continue
            if events & selectors.EVENT_WRITE:
                self._flush()
            if events & selectors.EVENT_READ and not self._receive():
                return False
        now = time.monotonic()
        for child in list(self.children.values()):
            age = now - child.start
            if age > self.settings.wall:
                self._finish(child, killed=True)
            elif age > self.settings.patience and not child.slow:
                child.slow = True
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, child.pid, NICE)
                self._send({"id": child.id, "slow": True})
        return True

    def _pause(self) -> float | None:
        """Seconds until a child is too old, or has waited long enough at full speed."""
        ends = [
            c.start + (self.settings.wall if c.slow else self.settings.patience)
            for c in self.children.values()
        ]
        return max(0.0, min(ends) - time.monotonic()) + 0.001 if ends else None

    # --- the socket ---

    def _receive(self) -> bool:
        try:
            data = self.control.recv(_CHUNK)
        except BlockingIOError:
            return True
        for request in self.requests.fed(data):
            if "query" in request:
                self._start(request)
            else:
                self._cancel(request["id"])
        return bool(data)

    def _send(self, message: Any) -> None:
        self.outgoing += frame(message)
        self._flush()

    def _flush(self) -> None:
        with suppress(BlockingIOError):
            while self.outgoing:
                del self.outgoing[: self.control.send(self.outgoing[:_CHUNK])]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.outgoing else 0)
        self.selector.modify(self.control, events)

    # --- children ---

    def _start(self, request: dict[str, Any]) -> None:
        read, write = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            self._send({"id": request["id"], "reply": None, "seconds": 0.0})
            return
        if pid == 0:
            self._answer(request["query"], write)
        os.close(write)
        child = Child(request["id"], pid, read, time.monotonic())
        self.children[read] = child
        self.selector.register(read, selectors.EVENT_READ, child)

    def _cancel(self, id: int) -> None:
        """Kill the child of a query; where it has answered, that stands."""
        for child in list(self.children.values()):
            if child.id == id:
                self._finish(child, killed=True)

    def _answer(self, query: Any, write: int) -> None:
        """In the child: answer and end, whatever happens."""
        status = 1
        try:
            s = self.settings
            confine(s.cpu, self.address_space, write, s.warned, out_of_time)
            reply = written(query, s)
            with open(write, "wb", closefd=False) as pipe:
                pipe.write(reply)
            status = 0
        finally:
            os._exit(status)

    def _read(self, child: Child) -> None:
        data = os.read(child.pipe, _CHUNK)
        child.written += data
        if len(child.written) > self.settings.reply:
            self._finish(child, killed=True)
        elif not data:
            self._finish(child, killed=False)

    def _finish(self, child: Child, killed: bool) -> None:
        status, seconds = self._end(child)
        whole = not killed and status == 0
        reply = child.written.decode() if whole else None
        self._send({"id": child.id, "reply": reply, "seconds": seconds})

    def _end(self, child: Child) -> tuple[int, float]:
        """Kill what is left of a child's group; its status and the processor time it took."""
        self.selector.unregister(child.pipe)
        os.close(child.pipe)
        del self.children[child.pipe]
        # One that has closed its pipe is past the point where a signal changes its status.
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(child.pid, signal.SIGKILL)
        _, status, used = os.wait4(child.pid, 0)
        return status, used.ru_utime + used.ru_stime


def main(descriptor: int, settings: Settings) -> None:
    """Warm up, say so, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's end closes the socket
    control = socket.socket(fileno=descriptor)
    warm_up(settings)
    gc.collect()
    gc.freeze()
    control.sendall(frame({"ready": os.getpid()}))
    ForkServer(control, settings).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), Settings(**json.loads(sys.argv[2])))
