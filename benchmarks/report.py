"""Results as text and as Markdown: times as ratios side by side, with what the machine allows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

HEADER = (
    "quantity",
    "contestant",
    "error",
    "time",
    "x best hand",
    "Mflop",
    "at gemm rate",
    "written",
)

FIT_COLUMNS = (
    "problem",
    "case",
    "method",
    "parameters",
    "steps",
    "f before",
    "f after",
    "|gradient|",
    "least curvature",
    "deriving",
    "fitting",
    "converged",
)

FACTOR_COLUMNS = (
    "forward",
    "ps/n^3",
    "products",
    "backward",
    "ps/n^3",
    "products",
    "value and gradient",
    "ps/n^3",
    "products",
)


def text(document: dict[str, Any]) -> str:
    parts = [machine_line(document)]
    for result in document["results"]:
        parts += ["", title(result), aligned([HEADER, *table(result)]), *claim_lines(result)]
    return "\n".join(parts)


def markdown(document: dict[str, Any]) -> str:
    parts = [machine_line(document)]
    for result in document["results"]:
        cells = [HEADER, ("---",) * len(HEADER), *table(result)]
        rows = ["| " + " | ".join(row) + " |" for row in cells]
        claims = [f"- {line}" for line in claim_lines(result)]
        parts += ["", f"### {title(result)}", "", *rows, "", *claims]
    return "\n".join(parts).rstrip()


def machine_line(document: dict[str, Any]) -> str:
    machine = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    device = f"{machine['device']}, " if machine.get("device") else ""
    name = f" ({machine['processor']})" if machine.get("processor") else ""
    memory = f"{machine['memory'] / 2**30:.0f} GiB, " if machine.get("memory") else ""
    commit = f"; commit {machine['commit']}" if machine.get("commit") else ""
    return (
        f"{machine['system']}, {machine['processors']} processors{name}, {memory}{device}"
        f"Python {machine['python']}, {versions}; {machine['date']}{commit}"
    )


def title(result: dict[str, Any]) -> str:
    count = result["threads"]
    line = f"{result['problem']}, {result['case']}, {count} thread{'s' if count > 1 else ''}"
    if result["rates"]:
        rates = result["rates"]
        line += f" (gemm {rates['flops'] / 1e9:.1f} Gflop/s, write {rates['bytes'] / 1e9:.1f} GB/s)"
    return line


def table(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in result["rows"]:
        best = min(
            (
                other["seconds"]
                for other in result["rows"]
                if other["quantity"] == row["quantity"]
                and other["label"].startswith("hand")
                and other["seconds"] is not None
            ),
            default=None,
        )
        took, flops = row["seconds"], row["flops"]
        yield (
            row["quantity"],
            row["label"],
            "-" if row["error"] is None else f"{row['error']:.1e}",
            row["refused"] or duration(took) + ", once" * row.get("once", False),
            f"{took / best:.2f}" if took is not None and best else "-",
            "-" if flops is None else f"{flops / 1e6:.3g}",
            floor(flops, result, "flops"),
            floor(row["bytes"], result, "bytes"),
        )


#: What libraries say where they ask the system for more than there is.
NO_MEMORY = re.compile(r"out of memory|memoryerror|memory.?limit|resource_exhausted|allocate", re.I)


def brief(refused: str) -> str:
    """In a few words, why a contestant has no time."""
    if refused.startswith("not tried"):
        return refused
    words = ("unchecked", "nobody to check it", "wrong value", "failed")
    found = next((word for word in words if refused.startswith(word)), refused)
    return "out of memory" if found == "failed" and NO_MEMORY.search(refused) else found


def floor(amount: float | None, result: dict[str, Any], rate: str) -> str:
    """How long the operations take at the rate of a matrix product, or the result to write."""
    return duration(amount / result["rates"][rate]) if amount and result["rates"] else "-"


def claim_lines(result: dict[str, Any]) -> list[str]:
    words = {True: "met", False: "NOT MET", None: "not decided"}
    return [
        f"{words[claim['met']]}: {claim['claim']}"
        + ("" if claim["ratio"] is None else f", measured {claim['ratio']:.3g}")
        for claim in result["claims"]
    ]


def factor(document: dict[str, Any]) -> str:
    """Forward and backward of the factorisations, also by n^3 and in n x n matrix products."""
    header = ("n", "contestant", "error", *FACTOR_COLUMNS)
    blocks: dict[str, list[tuple[str, ...]]] = {}
    claims: dict[str, list[str]] = {}
    for result in document["results"]:
        name = f"{result['problem']}, threads: {result['threads']}"
        blocks.setdefault(name, [header]).extend(factor_rows(result))
        lines = claims.setdefault(name, [])
        lines += [f"n={result['sizes']['n']}: {line}" for line in claim_lines(result)]
    parts = [machine_line(document)]
    for name, rows in blocks.items():
        parts += ["", name, aligned(rows), *claims[name]]
    return "\n".join(parts)


def factor_rows(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    n = result["sizes"]["n"]
    found: dict[str, dict[str, Any]] = {}
    for row in result["rows"]:
        found.setdefault(row["label"], {})[row["quantity"]] = row
    for label, rows in found.items():
        refused = next((row["refused"] for row in rows.values() if row["refused"]), "")
        error = max(row["error"] or 0.0 for row in rows.values())
        cells = [
            cell
            for seconds in three_times(rows)
            for cell in (duration(seconds), *by_cube(seconds, n, result["rates"]))
        ]
        if refused:
            cells = [refused, *["-"] * (len(FACTOR_COLUMNS) - 1)]
        yield (str(n), label, f"{error:.1e}", *cells)


def three_times(rows: dict[str, Any]) -> tuple[float | None, ...]:
    """Seconds forward, backward, and of value and gradient."""
    value, both = (rows[quantity]["seconds"] for quantity in ("value", "both"))
    return value, None if both is None else max(both - value, 0.0), both


def by_cube(seconds: float | None, n: int, rates: dict[str, float] | None) -> tuple[str, str]:
    if seconds is None or rates is None:
        return "-", "-"
    return f"{seconds / n**3 * 1e12:.3g}", f"{seconds * rates['flops'] / (2 * n**3):.3g}"


def wrong(document: dict[str, Any]) -> bool:
    """Whether a contestant was refused a time."""
    return any(row["refused"] for result in document["results"] for row in result["rows"])


def first(results: Sequence[dict[str, Any]]) -> str:
    """Seconds to the first Hessian; the import is in the first column and not in the second."""
    header = ("problem", "contestant", "with import", "without", "again", "import")
    rows = [
        (
            r["problem"],
            r["label"],
            duration(r["import"] + r["first"]),
            duration(r["first"]),
            duration(r["again"]),
            duration(r["import"]),
        )
        for r in results
    ]
    return aligned([header, *rows])


def sources(rows: Sequence[dict[str, Any]]) -> str:
    """Time and peak memory of printed programs, by those of plans: of arrays, or of kernels."""
    times, peaks = ("program", "plan", "x"), ("peak", "plan's", "kernels'", "x")
    header = ("problem", "n", "quantity", "in", "error", *times, *peaks)
    lines = [
        (
            r["problem"],
            str(r["n"]),
            r["quantity"],
            r["language"],
            f"{r['error']:.0e}",
            duration(r["program"]),
            duration(r["plan"]),
            f"{r['program'] / r['plan']:.2f}",
            f"{r['traced'] / 1e3:.0f} kB",
            f"{r['predicted'] / 1e3:.0f} kB",
            f"{r['kernels'] / 1e3:.0f} kB",
            f"{r['traced'] / max(r['predicted'], r['kernels']):.2f}",
        )
        for r in rows
    ]
    return aligned([header, *lines])


def fits(results: Sequence[dict[str, Any]]) -> str:
    """How every fit went, and the smallest eigenvalue of the Hessian where it ended."""
    rows = [
        (
            r["problem"],
            r["case"],
            r["method"],
            str(r["parameters"]),
            str(r["steps"]),
            f"{r['start']:.6f}",
            f"{r['end']:.6f}",
            f"{r['slope']:.1e}",
            f"{r['curvature']:.1e}",
            duration(r["derived"]),
            duration(r["seconds"]),
            "yes" if r["converged"] else "NO",
        )
        for r in results
    ]
    return aligned([FIT_COLUMNS, *rows])


def depth(rows: Sequence[dict[str, Any]], chain: dict[str, Any]) -> str:
    """Symbolic times of the net's Hessian, a layer's against the first row's, and a chain's."""
    steps = list(rows[0]["seconds"])
    header = ("layers", *steps, "per layer", "relative")
    lines = []
    base = sum(rows[0]["seconds"].values()) / rows[0]["layers"]
    for row in rows:
        each = sum(row["seconds"].values()) / row["layers"]
        times = [duration(row["seconds"][step]) for step in steps]
        lines.append((str(row["layers"]), *times, duration(each), f"{each / base:.2f}"))
    parts = [duration(taken) + " " + step for step, taken in chain["seconds"].items()]
    tail = f"chain of {chain['operations']:,} operations: {', '.join(parts)}"
    return aligned([header, *lines]) + "\n\n" + tail


def cluster(result: dict[str, Any]) -> str:
    """What each block costs, with the times that say so, and what workers save."""
    found, saved = result["overhead"], result["speedup"]
    lines = []
    if found:
        rows = zip(found["alone"], found["shared"], strict=True)
        cells = [(str(n), duration(alone), duration(shared)) for (n, alone), (_, shared) in rows]
        lines.append(aligned([("blocks", "a task each", "sharing tasks"), *cells]))
        each = duration(found["each"])
        lines.append(f"a block of its own task: {each}, a call {duration(found['base'])} besides")
    if saved:
        one = next(iter(saved["seconds"].values()))
        cells = [(n, duration(t), f"{one / t:.2f}") for n, t in saved["seconds"].items()]
        lines.append(aligned([("workers", "seconds", "times as fast"), *cells]))
        shape, work = f"{saved['rows']} x {saved['columns']}", duration(saved["work"])
        lines.append(
            f"{saved['blocks']} blocks of {shape}, Hessians of logistic regression, each at least "
            f"{work} of work; best of {saved['repeat']} turns"
        )
    return "\n".join(lines)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
