"""Many clients at once, some of them hostile: ``python -m web.load``.

A server of its own is started; every client has a loopback address of its own, pauses between
queries as people do, and, unless it is hostile, waits where it is told that it asks too often.
Honest answers are compared with what tcalc says here. In between the health of the server is asked,
the memory of its processes is read, and with ``--kill`` its fork server is killed once, halfway.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import httpx

import tcalc as tc

PACKAGE = Path(__file__).resolve().parent
HONEST = (
    ("sum(log(1 + exp(-y .* (X*w))))", "w", 2), ("x'*A*x", "x", 1), ("norm2(T - U*V')^2", "U", 2),
    ("log(det(X'*X))", "X", 1), ("tr(A*inv(X)*B)", "X", 1), ("x'*A*x / (x'*x)", "x", 2),
    ("norm2(tanh(X*V)*w - y)^2", "V", 1), ("log(sum(exp(W*x)))", "W", 1),
)  # fmt: skip
HOSTILE = (
    ("(" * 1900 + "x" + ")" * 1900, "x", 1),
    ("*".join(["(A + B + C)"] * 300), "A", 4),
    ("x^(9^9^9^9)", "x", 1),
    ("exp(" * 300 + "a" + ")" * 300, "a", 4),
    ("+".join(f"tanh(X{k}*x)'*x" for k in range(150)), "x", 3),
    ("prod(" + " .* ".join(["(X*w)"] * 200) + ")", "w", 4),
    ("A^" + "9" * 3000, "A", 2),
    ("tr(" + "*".join(["inv(X)"] * 120) + ")", "X", 3),
)


@dataclass
class Seen:
    """What the clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    hostile: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    memory: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)
    back: float = 0.0

    @property
    def queries(self) -> int:
        """Those that were let in."""
        counts = self.statuses + self.hostile
        return sum(counts.values()) - counts[429]


@cache
def expected(query: tuple[str, str, int]) -> str:
    text, by, order = query
    return str(tc.derivative(tc.parse(text), by, order))


def body(query: tuple[str, str, int]) -> dict[str, Any]:
    text, by, order = query
    return {
        "expression": text[:4096], "wrt": [by], "order": order, "outputs": ["text", "latex"],
        "check": order < 3,
    }  # fmt: skip


async def client(
    number: int, url: str, hostile: bool, pause: float, seen: Seen, end: float, most: float
) -> None:
    """Ask until the time is up or enough was asked."""
    address = f"127.0.0.{number + 2}"
    choice = random.Random(number)
    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with httpx.AsyncClient(base_url=url, transport=transport, timeout=30) as http:
        await asyncio.sleep(choice.random() * pause)
        while time.monotonic() < end and seen.queries < most:
            query = choice.choice(HOSTILE if hostile else HONEST)
            start = time.monotonic()
            try:
                answer = await http.post("/api/v1/derive", json=body(query))
            except httpx.HTTPError as error:
                seen.wrong.append(f"{query[0][:40]}: {error!r}")
                continue
            taken = time.monotonic() - start
            if hostile:
                seen.hostile[answer.status_code] += 1
                if answer.status_code not in (200, 413, 422, 429, 503, 504):
                    seen.wrong.append(f"hostile {query[0][:40]}: {answer.status_code}")
            else:
                seen.statuses[answer.status_code] += 1
                _judge(query, expected(query), answer, taken, seen)
                if answer.status_code == 429:
                    await asyncio.sleep(float(answer.headers["Retry-After"]))
            if pause:
                await asyncio.sleep(choice.expovariate(1 / pause))


def _judge(query: Any, known: str, answer: httpx.Response, taken: float, seen: Seen) -> None:
    if answer.status_code == 200:
        seen.times.append(taken)
        found = answer.json()
        if found["outputs"]["text"] != known:
            seen.wrong.append(f"{query[0]}: {found['outputs']['text']}, not {known}")
        if found["check"] and found["check"]["agrees"] is False:
            seen.wrong.append(f"{query[0]}: the check differs")
    elif answer.status_code not in (429, 503):
        seen.wrong.append(f"{query[0]}: {answer.status_code} {answer.text[:200]}")


async def watch(url: str, seen: Seen, end: float, most: float, kill: bool, pid: int) -> None:
    """The health of the server and its memory; halfway its fork server is killed if asked."""
    middle = (time.monotonic() + end) / 2
    read = 0.0
    status: int | str
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        while time.monotonic() < end and seen.queries < most:
            start = time.monotonic()
            if start > read + 1:
                read = start
                seen.memory["web process"].append(own_memory(pid))
                seen.memory["fork servers"].append(sum(map(own_memory, children(pid))))
                start = time.monotonic()
            try:
                status = (await http.get("/health")).status_code
            except httpx.HTTPError as error:
                status = repr(error)
            seen.health.append(time.monotonic() - start)
            if kill and (start > middle or seen.queries > most / 2):
                kill = False
                os.kill(min(children(pid)), signal.SIGKILL)
                start = time.monotonic()
                while (await http.get("/health")).status_code != 200:
                    await asyncio.sleep(0.02)
                seen.back = time.monotonic() - start
            if status != 200:
                seen.wrong.append(f"health: {status}")
            await asyncio.sleep(0.2)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are there."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def own_memory(pid: int) -> float:
    """MiB that a process has written, shared with its children or not; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def growth(values: Sequence[float]) -> float:
    """From the second tenth to the last one, of medians: at first caches are filled."""
    tenth = len(values) // 10
    return median(values[-tenth:]) - median(values[tenth : 2 * tenth]) if tenth else 0.0


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


async def measure(options: argparse.Namespace, url: str, pid: int) -> Seen:
    for query in HONEST:
        expected(query)  # before anything is timed
    seen, end = Seen(), time.monotonic() + options.seconds
    hostile = round(options.clients * options.hostile)
    pause = options.clients / options.rate if options.rate else 0.0
    await asyncio.gather(
        *[
            client(k, url, k < hostile, pause, seen, end, options.queries)
            for k in range(options.clients)
        ],
        watch(url, seen, end, options.queries, options.kill, pid),
    )
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m web.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--hostile", type=float, default=0.1, help="their share")
    parser.add_argument("--rate", type=float, default=6.0, help="queries a second; 0: all it can")
    parser.add_argument("--seconds", type=float, help="stop after so many; 60")
    parser.add_argument("--queries", type=int, help="stop after so many that were let in")
    parser.add_argument("--kill", action="store_true", help="kill the fork server halfway")
    options = parser.parse_args()
    if options.seconds is None:
        options.seconds = 60.0 if options.queries is None else math.inf
    if options.queries is None:
        options.queries = math.inf
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join([str(PACKAGE), *sys.path])
    server = subprocess.Popen(
        [sys.executable, "-m", "tcalc_web", "--port", str(port)],
        env={**os.environ, "PYTHONPATH": path, "TCALC_WEB_ROOT": "1"},
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                if httpx.get(f"{url}/health").status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        time.sleep(2)
        seen = asyncio.run(measure(options, url, server.pid))
        time.sleep(4)
        left = [child for one in children(server.pid) for child in children(one)]
        servers = len(children(server.pid))
    finally:
        server.terminate()
        server.wait(20)
    print(f"honest  {dict(sorted(seen.statuses.items()))}")
    print(f"hostile {dict(sorted(seen.hostile.items()))}")
    for name, values in (("honest answers", seen.times), ("health", seen.health)):
        told = ", ".join(f"p{q} {quantile(values, q / 100) * 1e3:.0f} ms" for q in (50, 95, 99))
        print(f"{name}: {told}, at most {max(values, default=0) * 1e3:.0f} ms")
    for name, series in seen.memory.items():
        grown = growth(series)
        print(f"memory of {name}: {series[0]:.0f} to {series[-1]:.0f} MiB, grown by {grown:.1f}")
        if grown > max(2.0, 0.05 * series[0]):
            seen.wrong.append(f"the memory of {name} grows")
    print(f"fork servers {servers}; children left {len(left)}")
    if options.kill:
        print(f"fork server killed: back after {seen.back * 1e3:.0f} ms")
    for line in seen.wrong[:20]:
        print(f"WRONG {line}")
    return 1 if seen.wrong or left or servers != 2 else 0


if __name__ == "__main__":
    sys.exit(main())
