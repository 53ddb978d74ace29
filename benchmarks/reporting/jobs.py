"""Jobs of the report: each is measured in a process of its own, and written down at once.

A run that ends early goes on where it stopped, for what is written is not measured again. A
contestant at whose call a process ended, over its time or out of memory, is named by the last word
of the process; the job is done again without it, and its row says what happened.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import processes
from ..harness import Row
from ..machines import machine
from ..problem import Case
from ..problems import PROBLEMS

Record = dict[str, Any]

#: How much longer a job may be silent that says nothing until it ends; those of `cases` name every
#: call.
SILENT = 15
#: How often a job is done again without the contestant that ended its process.
AGAIN = 4


@dataclass(frozen=True, eq=False)
class Job:
    """One process: a module of `benchmarks` that serves, with its arguments.

    Attributes
    ----------
    turn : int
        Tells jobs apart that measure the same several times.
    """

    module: str
    arguments: Mapping[str, Any]
    threads: int = 1
    turn: int = 0

    @property
    def name(self) -> str:
        """What the job is, for a reader, and what tells it from all others."""
        asked = json.dumps([self.module, self.arguments, self.threads, self.turn], sort_keys=True)
        words = [str(v) for v in self.arguments.values() if isinstance(v, str | int)]
        said = re.sub(r"[^\w.]+", "-", "-".join([self.module, *words, f"t{self.threads}"]))
        return f"{said[:80]}-{hashlib.sha256(asked.encode()).hexdigest()[:10]}"


class Folder:
    """Results, a file a job; one is there entirely or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, job: Job) -> Path:
        return self.path / f"{job.name}.json"

    def read(self, job: Job) -> Record | None:
        file = self.file(job)
        found: Record | None = json.loads(file.read_text("utf-8")) if file.exists() else None
        return found

    def write(self, job: Job, record: Record) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        half = self.file(job).with_suffix(".part")
        half.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        half.replace(self.file(job))


def distinct(jobs: Sequence[Job]) -> list[Job]:
    """Each once, where it comes first: sections share measurements."""
    return list({job.name: job for job in reversed(jobs)}.values())[::-1]


def measure(
    jobs: Sequence[Job],
    folder: Folder,
    bounds: processes.Bounds,
    budget: float | None,
    tell: Callable[[str], None],
    step: Callable[[int], Any] = lambda count: None,
) -> int:
    """Do what is not there, in order, until the budget's seconds are over; how many are left."""
    start, here = time.perf_counter(), machine()
    known: list[Record] = [record for job in jobs if (record := folder.read(job))]
    waiting = [job for job in jobs if not folder.file(job).exists()]
    step(len(jobs) - len(waiting))
    for place, job in enumerate(waiting):
        spent = time.perf_counter() - start
        if budget is not None and spent >= budget:
            return len(waiting) - place
        record = {"machine": here, **done(job, bounds, stopped(job, known))}
        folder.write(job, record)
        known.append(record)
        ended = f": {record['failed']}" if record["failed"] else ""
        tell(f"{place + 1} of {len(waiting)}: {job.name}, {record['wall']:.1f} s{ended}")
        step(1)
    return 0


def done(
    job: Job, bounds: processes.Bounds, without: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    """What a job gave, or why it failed; rows of those that ended its process are added."""
    start, refused, ended = time.perf_counter(), dict(without), {}
    result: dict[str, Any] | None = None
    if job.module != "cases" and bounds.seconds is not None:
        bounds = replace(bounds, seconds=SILENT * bounds.seconds)
    for _ in range(AGAIN + 1):
        given = {**job.arguments, **({"without": [*refused]} if refused else {})}
        failed, said = "", []
        try:
            result = processes.run(job.module, given, job.threads, lambda _: None, bounds=bounds)
            break
        except processes.Failed as error:
            failed, said = error.why, error.said[-20:]
        blamed = culprit(said)
        if blamed is None or blamed[0] in refused:
            break
        ended[blamed[0]] = refused[blamed[0]] = blamed[1] + failed
    if result and refused:
        offered = [row for pair, why in refused.items() if (row := missing(*pair, why))]
        result["rows"] += [row for row in offered if row["quantity"] in job.arguments["quantities"]]
    return {
        "module": job.module,
        "arguments": dict(job.arguments),
        "threads": job.threads,
        "wall": time.perf_counter() - start,
        "failed": failed,
        "said": said if failed else [],
        "ended": [[*pair, why] for pair, why in ended.items()],
        "result": result,
    }


def culprit(said: Sequence[str]) -> tuple[tuple[str, str], str] | None:
    """(quantity, contestant) at which a process of `cases` was, and what cannot be held against it:
    that nobody could judge its value in time."""
    for line in reversed(said):
        if found := re.search(r": (checking|judging|calling) (\w+), (.+)$", line):
            return (found[2], found[3]), "unchecked: " * (found[1] == "judging")
        if re.search(r": timing \w+$", line):
            return None
    return None


def missing(quantity: str, label: str, why: str) -> dict[str, Any]:
    return vars(Row(quantity, label, None, None, why, None))


def stopped(job: Job, known: Sequence[Record]) -> dict[tuple[str, str], str]:
    """Contestants that ended a process of the same problem at smaller sizes: not tried again."""
    return {
        (quantity, label): f"not tried: {why} at {case_of(record['arguments']).label}"
        for record in known
        if record["ended"] and record["threads"] == job.threads and smaller(record, job)
        for quantity, label, why in record["ended"]
    }


def smaller(record: Record, job: Job) -> bool:
    """Whether a record is of the job's problem, and no larger."""
    if job.module != "cases" or record["arguments"]["problem"] != job.arguments["problem"]:
        return False
    extents = [math.prod(case_of(a).sizes.values()) for a in (record["arguments"], job.arguments)]
    return extents[0] <= extents[1]


def case_of(arguments: Mapping[str, Any]) -> Case:
    return PROBLEMS[arguments["problem"]].select(arguments["sizes"])[arguments["place"]]
