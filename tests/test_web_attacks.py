"""What somebody may try who means no good: the server goes on, and others are answered."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from select import select
from typing import Any
from urllib.parse import quote, urlsplit

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
LONG = {"expression": "*".join(["(A + exp(B) + C)"] * 220), "wrt": ["A", "B"], "order": 4}
Server = tuple[str, Service]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Requests must arrive soon, so that nobody waits for those that do not.
    with serving(replace(OPEN, arrival=3.0, connections=8)) as served:
        yield served


def post(address: str, query: dict[str, Any], **more: Any) -> Any:
    return httpx.post(address + DERIVE, json=query, timeout=90, **more)


def connected(address: str, source: str = "127.0.0.1") -> socket.socket:
    there = urlsplit(address)
    return socket.create_connection((there.hostname, there.port), 10, (source, 0))


def request_of(query: dict[str, Any]) -> bytes:
    body = json.dumps(query).encode()
    head = f"POST {DERIVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
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


def test_processes_that_fork_have_one_thread(server: Server) -> None:
    for link in server[1].evaluator._links:
        assert "\nThreads:\t1\n" in Path(f"/proc/{link.pid}/status").read_text()


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
    assert time.monotonic() - start < OPEN.wall / 2
    assert service.gate._bucket("127.0.0.1").seconds < charged
    assert service.metrics.statuses[LEFT] >= 1
    assert post(address, SHORT).status_code == 200


def test_what_takes_too_long_is_told_so_while_there_is_time(server: Server) -> None:
    answer = post(server[0], LONG)
    assert answer.status_code == 422
    assert answer.json()["error"]["kind"] == "LimitError"
    assert "processor" in answer.json()["error"]["message"]


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
        assert time.monotonic() - start < OPEN.wall / 2
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


@pytest.mark.parametrize("character", ["𝒜", "中", "\\", '"', "\x7f", "é"])
def test_no_text_ends_the_fork_server(server: Server, character: str) -> None:
    address, service = server
    before = [link.pid for link in service.evaluator._links]
    longest = (SETTINGS.body - 500) // len(json.dumps(character, ensure_ascii=False).encode()[1:-1])
    text = character * min(longest, SETTINGS.characters)
    body = json.dumps({"expression": text}, ensure_ascii=False).encode()
    json_type = {"content-type": "application/json"}
    answer = httpx.post(address + DERIVE, content=body, headers=json_type, timeout=90)
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
            time.sleep(1.0)


def test_one_address_holds_some_connections_and_others_have_theirs(server: Server) -> None:
    held = [connected(server[0], "127.0.0.77") for _ in range(12)]
    # Of those that are left open nothing comes until they have waited too long.
    closed: list[socket.socket] = []
    until(lambda: bool(closed.extend(select(held, [], [], 0)[0]) or closed))
    assert not set(closed) & set(held[:8])
    transport = httpx.HTTPTransport(local_address="127.0.0.9")
    with httpx.Client(base_url=server[0], transport=transport) as other:
        assert other.get("/health").status_code == 200
    for connection in held:
        connection.close()


def asker(proxies: str, *headers: str) -> str:
    """Who asks, as the application sees it, where a request comes from 127.0.0.1."""
    seen = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope["client"][0])

    config = configured(app, "127.0.0.1", 0, proxies)
    config.load()
    named = [(b"x-forwarded-for", header.encode()) for header in headers]
    scope = {"type": "http", "client": ("127.0.0.1", 1), "headers": named}
    asyncio.run(config.loaded_app(scope, None, None))  # type: ignore[arg-type]
    return str(seen[0])


@pytest.mark.parametrize(
    ("proxies", "headers", "found"),
    [
        ("", ["8.8.8.8"], "127.0.0.1"),
        ("10.0.0.1", ["8.8.8.8"], "127.0.0.1"),
        ("127.0.0.1", ["8.8.8.8"], "8.8.8.8"),
        # Whoever asks may write what they like; the proxy adds what it has seen.
        ("127.0.0.1", ["1.1.1.1, 8.8.8.8"], "8.8.8.8"),
        ("127.0.0.1", ["1.1.1.1", "8.8.8.8"], "8.8.8.8"),
        ("127.0.0.0/8,10.0.0.0/8", ["1.1.1.1, 8.8.8.8, 10.1.2.3"], "8.8.8.8"),
        ("127.0.0.1", [], "127.0.0.1"),
    ],
)
def test_only_proxies_are_believed_who_asks(proxies: str, headers: list[str], found: str) -> None:
    assert asker(proxies, *headers) == found


@pytest.mark.parametrize("proxies", ["*", "nginx", "10.0.0.0/99", "127.0.0.1,*"])
def test_proxies_are_told_by_their_addresses(proxies: str) -> None:
    with pytest.raises(ValueError, match=r"address|network"):
        configured(application(), "127.0.0.1", 0, proxies)


@pytest.mark.parametrize(
    "path", ["/", "/embed?e=x", "/nothing", "/health", "/static/page.js", DERIVE]
)
def test_every_answer_says_what_a_page_may_load(server: Server, path: str) -> None:
    for answer in (
        httpx.get(server[0] + path, timeout=90),
        httpx.post(server[0] + path, content=b" " * (SETTINGS.body + 1)),
        httpx.request("TRACE", server[0] + path),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert ("frame-ancestors *" in policy) == (path == "/embed?e=x")
        assert answer.headers["x-content-type-options"] == "nosniff"


def anatomy(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page and the names of their attributes, each once."""
    found: set[tuple[str, tuple[str, ...]]] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.add((tag, tuple(name for name, _ in attrs)))

    Reader().feed(page)
    return sorted(found)


INJECTED = [
    '<img src=x onerror="alert(1)">',
    '"><script>alert(1)</script>',
    "</textarea><u>",
    "`<i>`",
]
FIELDS = {
    "expression": "e={}", "language": "e=x&l={}", "variables": "e=x&d={}", "order": "e=x&o={}",
    "mode": "e=x&m={}", "sizes": "e=x&s=n%3D{}", "repeated": "e=x&e={}", "unknown": "e=x&{}=1",
    "name": "e=x&vn={}&vs=n&vp=", "shape": "e=x&vn=x&vs={}&vp=",
    "property": "e=x&vn=x&vs=n&vp={}", "guess": "e=x&vn=x&vs=n&vp=&vg={}",
}  # fmt: skip


@pytest.mark.parametrize("place", ["/", "/embed"])
@pytest.mark.parametrize("field", FIELDS)
def test_what_is_typed_is_text_wherever_it_is_shown(server: Server, place: str, field: str) -> None:
    for text in INJECTED:
        page = httpx.get(f"{server[0]}{place}?{FIELDS[field].format(quote(text))}", timeout=90)
        assert page.status_code in (200, 422), text
        for tag, attributes in anatomy(page.text):
            assert tag not in ("img", "i", "u"), text
            assert not any(name.startswith("on") or name == "style" for name in attributes), text
            assert tag != "script" or attributes == ("src", "type"), text


TAMPERED = [
    "9" * 6000, "\x00", "\ud800", "%", "٣", "²", "-1", "e" * 9000, "1e9", "a,b,c" * 50,
]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_links_that_were_tampered_with_are_answered(server: Server, field: str) -> None:
    for text in TAMPERED:
        given = quote(text.encode(errors="surrogatepass"))
        page = httpx.get(f"{server[0]}/?{FIELDS[field].format(given)}", timeout=90)
        assert page.status_code in (200, 422), text
        assert len(page.text) < 64_000, text
        assert "set_int_max" not in page.text


def test_a_link_makes_no_more_rows_than_a_query_has_variables(server: Server) -> None:
    rows = "&".join(f"vn=v{k}&vs=n&vp=&vg=n" for k in range(400))
    names = "%2B".join(f"name{k}" for k in range(400))
    for link in (f"/?e=x%2B&{rows}", f"/?e={names}%2B"):
        page = httpx.get(server[0] + link, timeout=90)
        assert page.status_code == 422
        assert page.text.count('name="vs"') <= SETTINGS.variables + 1


def test_a_warning_that_is_dropped_comes_again() -> None:
    program = (
        "import os\n"
        "from tcalc_web.confinement import confine, unwarned\n"
        "heard = []\n"
        "read, write = os.pipe()\n"
        "if not os.fork():\n"
        "    confine(10, 2**33, write, 1, lambda *_: heard.append(1))\n"
        "    while len(heard) < 3: pass\n"
        "    unwarned()\n"
        "    for _ in range(10**7): pass\n"
        "    os.write(write, b'%d' % len(heard))\n"
        "    os._exit(0)\n"
        "os.close(write)\n"
        "print(os.read(read, 9).decode())\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).stdout == b"3\n"
