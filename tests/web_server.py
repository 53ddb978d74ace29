"""The web form, served by a thread of the tests, for which nobody asks too often."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from tcalc_web.application import application
from tcalc_web.settings import SETTINGS

OPEN = replace(SETTINGS, rate=1e6, burst=10**6, seconds_at_once=1e6)


@contextmanager
def served() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    server = uvicorn.Server(uvicorn.Config(application(OPEN), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < end, "the server does not start"
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
