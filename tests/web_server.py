"""The web form, served by a thread of the tests, for which nobody asks too often."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from tcalc_web.__main__ import configured
from tcalc_web.application import Service, application
from tcalc_web.settings import SETTINGS, Settings

#: Nobody asks too often, and a busy machine has the time that a query needs of the processor.
OPEN = replace(SETTINGS, rate=1e6, burst=10**6, seconds_at_once=1e6, wall=60.0)


@contextmanager
def served(settings: Settings = OPEN, proxies: str = "") -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    with serving(settings, proxies) as (address, _):
        yield address


@contextmanager
def serving(settings: Settings = OPEN, proxies: str = "") -> Iterator[tuple[str, Service]]:
    """The address of a server and what serves there."""
    app = application(settings)
    server = uvicorn.Server(configured(app, "127.0.0.1", 0, proxies, settings))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 120  # of which a busy machine may need much
    while not (server.started and app.state.service.evaluator.ready):
        assert time.monotonic() < end, "the server does not start"
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", app.state.service
    finally:
        server.should_exit = True
        thread.join(20)
