"""The link from the web process to the fork server, and a second one in reserve."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from .frames import Frames, frame
from .settings import Settings

_CHUNK = 1 << 16
_IDS = itertools.count(1)
#: One thread: a fork of a process with several may hang. No compiler, which would need another one.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TCALC_BACKEND": "numpy",
    "PYTHONUNBUFFERED": "1",
}


class Busy(Exception):
    """Too many queries wait."""


class Gone(Exception):
    """The process that answers ended while a query was in flight."""


@dataclass
class _Flight:
    """A query on its way: JSON text is its reply, or None where it was killed."""

    id: int
    charge: Callable[[float], None]
    done: asyncio.Future[str | None]
    slow: asyncio.Event = field(default_factory=asyncio.Event)


class _Link:
    """One fork server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.flights: dict[int, _Flight] = {}
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self.pid = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        ours, theirs = socket.socketpair()
        process = None
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", f"{__package__}.fork_server", str(theirs.fileno()),
                    json.dumps(asdict(self.settings)),
                    pass_fds=[theirs.fileno()], stdin=asyncio.subprocess.DEVNULL,
                    # Modules are found where this process finds them.
                    env=os.environ | _ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(sys.path)},
                )  # fmt: skip
            self.pid = process.pid
            reader, self._writer = await asyncio.open_connection(sock=ours)
            replies = Frames(3 * self.settings.reply)  # as text inside JSON
            while data := await reader.read(_CHUNK):
                for message in replies.fed(data):
                    self._take(message)
        except (OSError, ValueError):
            pass  # as if it had ended
        finally:
            self.gone.set()
            self.ready.set()
            for flight in self.flights.values():
                if not flight.done.done():
                    flight.done.set_exception(Gone())
            if self._writer is not None:
                self._writer.close()
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self.ready.set()
            return
        flight = self.flights.get(message["id"])
        if flight is None:
            return
        if "slow" in message:
            flight.slow.set()
        elif not flight.done.done():
            flight.charge(message["seconds"])
            flight.done.set_result(message["reply"])

    @contextlib.asynccontextmanager
    async def flight(self, query: Any, charge: Callable[[float], None]) -> AsyncIterator[_Flight]:
        """A query that is sent; where nobody waits for its end, it ends before the block does."""
        flight = _Flight(next(_IDS), charge, asyncio.get_running_loop().create_future())
        self.flights[flight.id] = flight
        try:
            self._send({"id": flight.id, "query": query})
            yield flight
        finally:
            try:
                if not flight.done.done():
                    self._send({"id": flight.id})
                    with contextlib.suppress(Gone):
                        await flight.done
            finally:
                del self.flights[flight.id]

    def _send(self, message: Any) -> None:
        assert self._writer is not None
        self._writer.write(frame(message))

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


class Evaluator:
    """Answers queries, a few at once; others wait their turn.

    Attributes
    ----------
    waiting, running, restarts : int
        For whoever watches.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.waiting = self.running = 0
        self.restarts = -2  # the first two are no restarts
        self._fast = asyncio.Semaphore(settings.running)
        self._background = asyncio.Semaphore(settings.background)
        self._links: list[_Link] = []

    @property
    def ready(self) -> bool:
        return any(link.ready.is_set() and not link.gone.is_set() for link in self._links)

    def start(self) -> None:
        self._links = [link for link in self._links if not link.gone.is_set()]
        while len(self._links) < 2:
            link = _Link(self.settings)
            link.start()
            self._links.append(link)
            self.restarts += 1

    async def close(self) -> None:
        for link in self._links:
            await link.close()

    async def _link(self) -> _Link:
        """A fork server that is there; another one takes its place in reserve."""
        self.start()
        for link in self._links:
            if link.ready.is_set() and not link.gone.is_set():
                return link
        await self._links[0].ready.wait()
        if self._links[0].gone.is_set():
            raise Gone
        return self._links[0]

    async def answer(self, query: Any, charge: Callable[[float], None]) -> str | None:
        """The answer of a child that is forked for this query.

        Whoever waits for it may be cancelled: the child is killed then, and its place is free when
        it has ended.

        Parameters
        ----------
        query
            For `queries.answer`.
        charge : callable
            Called with the seconds of the processor that it has taken.

        Returns
        -------
        str or None
            JSON; None where it was killed.

        Raises
        ------
        Busy
            Too many wait already.
        Gone
            The fork server ended meanwhile; the next query has another one.
        """
        if self.waiting >= self.settings.waiting:
            raise Busy
        async with self._turn() as turn:
            link = await self._link()
            try:
                async with link.flight(query, charge) as flight:
                    watch = asyncio.create_task(self._make_room(flight, turn))
                    try:
                        return await asyncio.shield(flight.done)
                    finally:
                        watch.cancel()
            finally:
                self.start()

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[list[asyncio.Semaphore]]:
        """A place among those that run; the list holds what is released at the end."""
        self.waiting += 1
        try:
            await self._fast.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        held = [self._fast]
        try:
            yield held
        finally:
            self.running -= 1
            held[0].release()

    async def _make_room(self, flight: _Flight, held: list[asyncio.Semaphore]) -> None:
        """A query that takes long gives its place to others, where the background has room."""
        await flight.slow.wait()
        if not self._background.locked():
            await self._background.acquire()
            held[0].release()
            held[0] = self._background
