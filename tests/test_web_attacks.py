"""What somebody may try who means no good: the server goes on, and others are answered."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="the extra `web` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx
from tcalc_web.__main__ import configured
from tcalc_web.application import LEFT, Service, application
from tcalc_web.settings import SETTINGS

from tests.web_server import OPEN, serving

DERIVE = "/api/v1/derive"
SHORT = {"expression": "sum(x.^2)", "wrt": ["x"]}
#: Takes all the time that a query has.
LONG = {"expression": "*".join(["(A + B + C)"] * 300), "wrt": ["A"], "order": 4}
Server = tuple[str, Service]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Requests must arrive soon, so that nobody waits for those that do not.
    with serving(replace(OPEN, arrival=0.5, connections=8)) as served:
        yield served


def post(address: str, query: dict[str, Any], **more: Any) -> Any:
    return httpx.post(address + DERIVE, json=query, timeout=30, **more)


def connected(address: str, source: str = "127.0.0.1") -> socket.socket:
    there = urlsplit(address)
    return socket.create_connection((there.hostname, there.port), 10, (source, 0))


def request_of(query: dict[str, Any]) -> bytes:
    body = json.dumps(query).encode()
    head = f"POST {DERIVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def children(service: Service) -> list[str]:
    """Processes that answer queries now."""
    found = []
    for link in service.evaluator._links:
        tasks = Path(f"/proc/{link.pid}/task").glob("*/children")
        found += [pid for task in tasks for pid in task.read_text().split()]
    return found


def test_whoever_leaves_frees_the_place_and_its_child_ends(server: Server) -> None:
    address, service = server
    charged = service.gate._bucket("127.0.0.1").seconds
    connection = connected(address)
    connection.sendall(request_of(LONG))
    until(lambda: bool(children(service)))
    assert service.evaluator.running == 1
    start = time.monotonic()
    connection.close()
    until(lambda: not children(service))
    until(lambda: service.evaluator.running == 0)
    assert time.monotonic() - start < SETTINGS.cpu / 2
    assert service.gate._bucket("127.0.0.1").seconds < charged
    assert service.metrics.statuses[LEFT] >= 1
    assert post(address, SHORT).status_code == 200


def test_whoever_leaves_while_waiting_is_never_run(server: Server) -> None:
    address, service = server
    full = SETTINGS.running + SETTINGS.background + 2
    connections = [connected(address, f"127.0.0.{k + 2}") for k in range(full)]
    for connection in connections:
        connection.sendall(request_of(LONG))
    until(lambda: service.evaluator.waiting > 0)
    for connection in connections:
        connection.close()
    until(lambda: service.evaluator.waiting == service.evaluator.running == 0)
    assert not children(service)
    assert post(address, SHORT).status_code == 200


def test_queries_in_flight_when_the_fork_server_is_killed_are_answered(server: Server) -> None:
    address, service = server
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(post, address, LONG) for _ in range(2)]
        until(lambda: len(children(service)) == 2)
        left = children(service)
        killed = next(link for link in service.evaluator._links if link.flights)
        os.kill(killed.pid, signal.SIGKILL)
        start = time.monotonic()
        assert [wait.result().status_code for wait in waits] == [503, 503]
        assert post(address, SHORT).status_code == 200
        assert time.monotonic() - start < SETTINGS.wall
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


@pytest.mark.parametrize("character", ["𝒜", "中", "\\", '"', "\x7f", "é"])
def test_no_text_ends_the_fork_server(server: Server, character: str) -> None:
    address, service = server
    before = [link.pid for link in service.evaluator._links]
    longest = (SETTINGS.body - 500) // len(json.dumps(character, ensure_ascii=False).encode()[1:-1])
    text = character * min(longest, SETTINGS.characters)
    body = json.dumps({"expression": text}, ensure_ascii=False).encode()
    json_type = {"content-type": "application/json"}
    answer = httpx.post(address + DERIVE, content=body, headers=json_type, timeout=30)
    assert answer.status_code == 422
    assert len(answer.content) < 2000
    assert [link.pid for link in service.evaluator._links] == before


@pytest.mark.parametrize(
    "start",
    [b"", b"GET / HTTP/1.1\r\n", request_of(SHORT)[:-5], b"POST / HTTP/1.1\r\nHost: x\r\n"],
    ids=["nothing", "head", "body", "half a head"],
)
def test_requests_that_trickle_in_are_cut_off(server: Server, start: bytes) -> None:
    connection = connected(server[0])
    connection.sendall(start)

    def cut() -> bool:
        try:
            if start:
                connection.sendall(b"X")
            return not connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True

    with connection:
        connection.settimeout(0.05)
        until(cut)


def test_connections_that_are_used_stay(server: Server) -> None:
    with httpx.Client(base_url=server[0]) as client:
        for _ in range(4):
            assert client.get("/health").status_code == 200
            time.sleep(0.2)


def test_one_address_holds_some_connections_and_others_have_theirs(server: Server) -> None:
    held = [connected(server[0]) for _ in range(12)]
    time.sleep(0.1)
    closed = 0
    for connection in held:
        connection.settimeout(0.05)
        try:
            closed += connection.recv(1) == b""
        except TimeoutError:
            continue
        except ConnectionResetError:
            closed += 1
    assert closed == 4
    transport = httpx.HTTPTransport(local_address="127.0.0.9")
    with httpx.Client(base_url=server[0], transport=transport) as other:
        assert other.get("/health").status_code == 200
    for connection in held:
        connection.close()


@pytest.mark.parametrize(
    ("proxies", "free"), [("", False), ("10.0.0.1", False), ("127.0.0.1", True)]
)
def test_only_proxies_are_believed_who_asks(proxies: str, free: bool) -> None:
    with serving(replace(SETTINGS, burst=2, rate=1e-3), proxies) as (address, _):
        # Whoever asks may write what they like; the proxy adds what it has seen.
        seen = [
            post(address, SHORT, headers={"X-Forwarded-For": f"8.8.8.{k}, 9.9.9.{k}"}).status_code
            for k in range(4)
        ]
        spoofed = [
            post(address, SHORT, headers={"X-Forwarded-For": f"8.8.8.{k}, 7.7.7.7"}).status_code
            for k in range(4)
        ]
    assert seen == ([200] * 4 if free else [200, 200, 429, 429])
    assert spoofed == ([200, 200, 429, 429] if free else [429] * 4)


@pytest.mark.parametrize("proxies", ["*", "nginx", "10.0.0.0/99", "127.0.0.1,*"])
def test_proxies_are_told_by_their_addresses(proxies: str) -> None:
    with pytest.raises(ValueError, match=r"address|network"):
        configured(application(), "127.0.0.1", 0, proxies)


@pytest.mark.parametrize(
    "path", ["/", "/embed?e=x", "/nothing", "/health", "/static/page.js", DERIVE]
)
def test_every_answer_says_what_a_page_may_load(server: Server, path: str) -> None:
    for answer in (
        httpx.get(server[0] + path, timeout=30),
        httpx.post(server[0] + path, content=b" " * (SETTINGS.body + 1)),
        httpx.request("TRACE", server[0] + path),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert ("frame-ancestors *" in policy) == (path == "/embed?e=x")
        assert answer.headers["x-content-type-options"] == "nosniff"
