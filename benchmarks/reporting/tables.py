"""Results as Markdown tables: who takes how long, where ours is slower, what came to no end."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..plot import OURS
from ..report import brief, duration

Result = dict[str, Any]

#: How columns are named that are not named by a label's first word.
NAMES = {"tcalc auto": "tcalc", "tcalc": "tcalc, NumPy", "tcalc c": "tcalc, C"}
#: What a person wrote, told apart from other systems.
WRITTEN = ("hand", "gradbench")


@dataclass(frozen=True)
class Comparison:
    """One quantity of one case: ours, and the best of the others."""

    problem: str
    case: str
    threads: int
    quantity: str
    ours: float | None
    why: str
    rival: str
    theirs: float

    @property
    def ratio(self) -> float:
        return math.inf if self.ours is None else self.ours / self.theirs


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in r) + " |" for r in cells
    )


def column(label: str) -> str:
    return NAMES.get(label, label.split()[0])


def by_quantity(results: Iterable[Result]) -> Iterator[tuple[Result, str, list[dict[str, Any]]]]:
    for result in results:
        quantities = dict.fromkeys(row["quantity"] for row in result["rows"])
        for quantity in quantities:
            rows = [row for row in result["rows"] if row["quantity"] == quantity]
            yield result, quantity, rows


def best_of_families(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Seconds of every family's best form, where it has one."""
    best: dict[str, float] = {}
    for row in rows:
        if row["seconds"] is not None:
            name = column(row["label"])
            best[name] = min(row["seconds"], best.get(name, math.inf))
    return best


def compared(results: Iterable[Result], against: Sequence[str]) -> list[Comparison]:
    """Ours beside the best contestant of these families, where one of them has a time."""
    found = []
    for result, quantity, rows in by_quantity(results):
        labels = {row["label"]: row for row in rows}
        ours = next((labels[label] for label in OURS if label in labels), None)
        rivals = [
            (row["seconds"], row["label"])
            for row in rows
            if row["label"].split()[0] in against and row["seconds"] is not None
        ]
        if ours and rivals:
            theirs, rival = min(rivals)
            found.append(
                Comparison(
                    result["problem"], result["case"], result["threads"], quantity,
                    ours["seconds"], brief(ours["refused"]), rival, theirs,
                )
            )  # fmt: skip
    return found


def times(results: Sequence[Result]) -> str:
    """A row for every quantity of every case, a column for every family, its best form."""
    labels = dict.fromkeys(row["label"] for result in results for row in result["rows"])
    first = [label for label in OURS if label in labels]
    columns = list(dict.fromkeys(map(column, [*first, *labels])))
    rivals = [name for name in columns if not name.startswith("tcalc")]
    best = {(c.problem, c.case, c.threads, c.quantity): c.ratio for c in compared(results, rivals)}
    lines = []
    for result, quantity, rows in by_quantity(results):
        case = (result["problem"], result["case"], result["threads"], quantity)
        ratio = best.get(case)
        shown = "-" if ratio is None else ratio_of(ratio)
        cells = [cell([r for r in rows if column(r["label"]) == name]) for name in columns]
        lines.append([*case[:2], str(case[2]), quantity, *cells, shown])
    return markdown(["problem", "case", "threads", "", *columns, "÷ best"], lines)


def ratio_of(ratio: float) -> str:
    """Ours by the best of the others; what is lost stands out."""
    if math.isinf(ratio):
        return "**no time**"
    return f"**{ratio:.2f}**" if ratio > 1 else f"{ratio:.2g}"


def cell(rows: Sequence[dict[str, Any]]) -> str:
    taken = [row["seconds"] for row in rows if row["seconds"] is not None]
    if taken:
        return duration(min(taken))
    return brief(rows[0]["refused"]) or "checked" if rows else "-"


def summary(found: Sequence[Comparison], rival: str) -> str:
    """How many are faster, and the geometric mean, in a sentence for each number of threads."""
    said = []
    for threads in sorted({c.threads for c in found}):
        ratios = [c.ratio for c in found if c.threads == threads and c.ours is not None]
        if not ratios:
            continue
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        faster = sum(ratio < 1 for ratio in ratios)
        said.append(
            f"With {threads} thread{'s' * (threads > 1)} tcalc is faster than {rival} in {faster} "
            f"of {len(ratios)} times; the geometric mean of its time by theirs is {mean:.2g}."
        )
    return " ".join(said)


def lost(found: Sequence[Comparison]) -> str:
    """Every one that is slower than the best of the others, the worst first."""
    rows = [
        [
            c.problem, c.case, str(c.threads), c.quantity,
            c.why or duration(c.ours), c.rival, duration(c.theirs), ratio_of(c.ratio),
        ]
        for c in sorted(found, key=lambda c: -c.ratio)
        if c.ratio > 1
    ]  # fmt: skip
    header = ["problem", "case", "threads", "", "tcalc", "best", "its time", "ratio"]
    return markdown(header, rows) if rows else "None."


def ends(results: Iterable[Result], failed: Iterable[tuple[str, str]]) -> str:
    """Contestants without a time and why, and jobs without a result."""
    rows = [
        [
            result["problem"], result["case"], str(result["threads"]), row["quantity"],
            row["label"], short(row["refused"]),
        ]
        for result in results
        for row in result["rows"]
        if row["refused"]
    ]  # fmt: skip
    rows += [[name, "", "", "", "all", short(why)] for name, why in failed]
    header = ["problem", "case", "threads", "", "contestant", "what happened"]
    return markdown(header, rows) if rows else "None."


def short(text: str, length: int = 140) -> str:
    words = " ".join(text.replace("<", "‹").replace(">", "›").split())
    return words if len(words) <= length else words[: length - 1] + "…"


def peaks(rows: Sequence[Result]) -> str:
    """Megabytes at the peak, a column for every contestant."""
    found: dict[tuple[str, str, str], dict[str, Result]] = {}
    for row in rows:
        case = row["problem"], row["case"], row["quantity"]
        found.setdefault(case, {})[column(row["label"])] = row
    names = list(dict.fromkeys(column(row["label"]) for row in rows))
    lines = []
    for case, by in found.items():
        told = [row[key] for key in ("predicted", "result") for row in by.values() if row[key]]
        cells = [millions(by[name]["bytes"]) if name in by else "-" for name in names]
        predicted = next((row["predicted"] for row in by.values() if row["predicted"]), None)
        lines.append([*case, *cells, millions(predicted), millions(told[-1] if told else None)])
    return markdown(["problem", "case", "", *names, "tcalc's plan says", "result"], lines)


def millions(size: int | None) -> str:
    if size is None:
        return "-"
    return f"{size / 1e6:,.0f} MB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


def comma_separated(results: Iterable[Result]) -> str:
    """All rows of all cases, for those who compute with them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    kept = ("quantity", "label", "seconds", "error", "bytes", "peak", "refused")
    writer.writerow(["problem", "case", "threads", "commit", *kept])
    for result in results:
        for row in result["rows"]:
            cells = [short(v) if isinstance(v, str) else v for v in map(row.get, kept)]
            writer.writerow(
                [result["problem"], result["case"], result["threads"], result["commit"], *cells]
            )
    return out.getvalue()
