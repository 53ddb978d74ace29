"""The page: what was measured where, a part for every section, what is lost, what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import report
from . import tables
from .jobs import Folder, Job, Record
from .sections import Section, Sheet, folded, results

Plan = Sequence[tuple[Section, Sequence[Job]]]

COMMAND = "python -m benchmarks report"
TITLE = "# Benchmark report"
#: Other systems; code by hand and the public suite's are what people wrote.
SYSTEMS = ("jax", "torch", "autograd", "asdex")
NOTHING = f"No results are here yet: `{COMMAND}` measures them and writes this page."
MEASURED = (
    f"Written by `{COMMAND}`, which measures every job in a process of its own. Times are the best "
    "of several turns, taken by all contestants one after the other, on values that another family "
    "checked first; all have the same threads. *tcalc*, in figures *tcalc auto*, is the default "
    "back end, once what it compiles in the background is there; *÷ best* is its time by that of "
    "the best other contestant, code by hand included, and bold where that one is faster. All "
    "rows: [results.csv](results.csv)."
)
LOST = (
    "Every time of the default back end that is not the best, the worst first; differences of a "
    "few per cent are noise."
)


def write(plan: Plan, folder: Folder, out: Path) -> None:
    """Write the page, its figures and all rows, from the results that are there."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("*.svg"), *out.glob("*.csv")]:
        old.unlink()
    found = {job.name: r for _, jobs in plan for job in jobs if (r := folder.read(job))}
    parts = [TITLE, body(plan, found, out) if found else NOTHING]
    (out / "index.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def body(plan: Plan, found: Mapping[str, Record], out: Path) -> str:
    places = provenance(list(found.values()))
    cases = results([r for r in found.values() if r["module"] == "cases"])
    (out / "results.csv").write_text(tables.comma_separated(cases), encoding="utf-8")
    parts = [MEASURED, where(places)]
    for section, jobs in plan:
        records = [found[job.name] for job in jobs if job.name in found]
        parts += [f"## {section.title}", section.words, *shown(section, records, out)]
        parts += [apart(records, places), missing(len(jobs), len(records))]
    parts += losses(cases, [r for r in found.values() if r["failed"]])
    return "\n\n".join(filter(None, parts))


def shown(section: Section, records: list[Record], out: Path) -> list[str]:
    """The section's figures and tables; a job without a result is a line of its own."""
    given = results(records)
    failed = [f"* {named(record)}: {record['failed']}" for record in records if record["failed"]]
    return [*(section.show(given, Sheet(out)) if given else []), "\n".join(failed)]


def named(record: Record) -> str:
    said = {k: v for k, v in record["arguments"].items() if k not in ("place", "repeat")}
    words = [str(v) for v in said.values() if isinstance(v, str | int)]
    return f"{record['module']}, {', '.join(words)}, threads {record['threads']}"


def provenance(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by machine, versions and state of the code; dates may differ."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(place(record), []).append(record)
    return found


def place(record: Record) -> str:
    return json.dumps({**record["machine"], "date": ""}, sort_keys=True)


def where(places: Mapping[str, list[Record]]) -> str:
    """A line for every machine and state of the code, the first and the last date."""
    lines = []
    for letter, records in zip(letters(places).values(), places.values(), strict=True):
        dates = sorted({record["machine"]["date"] for record in records})
        said = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        line = report.machine_line({"machine": {**records[0]["machine"], "date": said}})
        hours = sum(record["wall"] for record in records) / 3600
        lines.append(f"* {letter}: {line}; {len(records)} jobs in {hours:.1f} hours")
    return "\n".join(lines)


def letters(places: Mapping[str, Any]) -> dict[str, str]:
    return {key: f"measurement {count}" for count, key in enumerate(places, 1)}


def apart(records: Sequence[Record], places: Mapping[str, list[Record]]) -> str:
    """Which of several machines and states of the code a section's numbers are of."""
    if len(places) < 2 or not records:
        return ""
    own = dict.fromkeys(letters(places).values(), 0)
    for record in records:
        own[letters(places)[place(record)]] += 1
    said = ", ".join(f"{name} ({count} jobs)" for name, count in own.items() if count)
    return f"From {said}."


def missing(wanted: int, there: int) -> str:
    if not wanted:
        return "*Not asked for.*"
    left = wanted - there
    return f"*Not measured yet: {left} of {wanted} jobs.*" if left else ""


def losses(cases: list[dict[str, Any]], failed: list[Record]) -> list[str]:
    """What is slower than others, and who came to no result."""
    written = tables.compared(cases, tables.WRITTEN)
    systems = tables.compared(cases, SYSTEMS)
    ends = tables.ends(cases, [(named(record), record["failed"]) for record in failed])
    return [
        "## What is lost", LOST,
        "### To other systems", tables.summary(systems, "the best of them"), tables.lost(systems),
        "### To code by hand", tables.summary(written, "the best of it"), tables.lost(written),
        "## What has no time", folded("contestants without a time, and why", ends),
    ]  # fmt: skip
