"""The sections of the report: what each measures, and how its figure and table are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .. import plot, report, spellings
from ..problem import QUANTITIES
from . import selection, tables
from .jobs import Job, Record
from .selection import Selection, series


@dataclass(frozen=True)
class Sheet:
    """Where figures are written."""

    folder: Path

    def figure(self, name: str, alt: str, draw: Callable[..., None], *given: Any) -> str:
        """Markdown of a picture, or a sentence where there is nothing to draw."""
        file = self.folder / f"{name}.svg"
        file.unlink(missing_ok=True)
        try:
            draw(*given, out=file)
        except ValueError as error:
            return f"*{alt}: {error}.*"
        return f"![{alt}]({file.name})"


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes
    ----------
    words : str
        What is measured, and whose experiment it repeats.
    jobs : callable
        ``jobs(selection)``: what is measured, the most telling first.
    show : callable
        ``show(results, sheet)``: paragraphs of Markdown from what there is.
    """

    name: str
    title: str
    words: str
    jobs: Callable[[Selection], list[Job]]
    show: Callable[[list[dict[str, Any]], Sheet], list[str]]


def results(records: Sequence[Record]) -> list[dict[str, Any]]:
    """What jobs gave, each with what was asked, its threads, and the state of the code."""
    return [
        {"threads": r["threads"], "commit": r["machine"]["commit"], **r["arguments"], **r["result"]}
        for r in records
        if r["result"] is not None
    ]


def folded(title: str, text: str) -> str:
    """Shown where a reader asks for it."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def block(text: str) -> str:
    return f"```text\n{text}\n```"


def over_sizes(
    name: str, alt: str, found: list[dict[str, Any]], sheet: Sheet, cubed: bool = False
) -> list[str]:
    """Times against sizes, the ratios below them, and the numbers."""
    document = {"results": found}
    if cubed:
        drawn, unit = plot.cubed(document), "seconds / n³"
    else:
        drawn, unit = plot.panels(document), "seconds"
    picture = partial(plot.picture, columns=2, ratios=True)
    shown = sheet.figure(name, alt, picture, drawn, unit)
    return [shown, folded("all numbers", tables.times(found))]


def of_sizes(name: str, alt: str, cubed: bool = False) -> Callable[..., list[str]]:
    return lambda found, sheet: over_sizes(name, alt, found, sheet, cubed)


def overview(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    """A line of dots for every problem: ours by jax's time, a dot for every quantity."""
    compared = tables.compared(found, ("jax",))
    parts = [tables.summary(compared, "jax")]
    for threads in sorted({c.threads for c in compared}):
        rows: dict[str, dict[str, float]] = {}
        for quantity in QUANTITIES:
            for c in compared:
                if c.ours is not None and (c.threads, c.quantity) == (threads, quantity):
                    rows.setdefault(f"{c.problem}, {c.case}", {})[quantity] = c.ratio
        alt = f"Time of tcalc by that of jax, {threads} thread{'s' * (threads > 1)}"
        unit = "tcalc's time ÷ jax's (left of the line: tcalc is faster)"
        draw = partial(plot.dots, line=1.0)
        parts.append(sheet.figure(f"suite-{threads}", alt, draw, dict(sorted(rows.items())), unit))
    return [*parts, folded("all numbers", tables.times(found))]


def peaks(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    rows: dict[str, dict[str, float]] = {}
    for row in found:
        if row["bytes"]:
            name = f"{row['problem']}, {row['case']}: {row['quantity']}"
            rows.setdefault(name, {})[tables.column(row["label"])] = row["bytes"] / 1e6
    shown = sheet.figure("memory", "Peak memory", plot.dots, rows, "MB at the peak")
    return [shown, tables.peaks(found)]


def depth(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    """Seconds of every step by the number of layers or operations."""
    nets = [row for row in found if "layers" in row]
    chains = [row for row in found if "operations" in row]
    drawn = {
        title: plot.Panel({
            step: [(row[count], row["seconds"][step]) for row in rows]
            for step in (rows[0]["seconds"] if rows else ())
        })
        for title, count, rows in (
            ("Hessian of a net", "layers", nets), ("a chain", "operations", chains)
        )
    }  # fmt: skip
    picture = partial(plot.picture, columns=2, across="layers, or operations")
    shown = sheet.figure("depth", "Symbolic time against depth", picture, drawn, "seconds")
    return [shown, *([block(report.depth(nets, chains[-1]))] if nets and chains else [])]


def printed(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    rows = [row for result in found for row in result["rows"]]
    drawn: dict[str, dict[str, float]] = {}
    for row in rows:
        name = f"{row['problem']}, {row['quantity']}"
        drawn.setdefault(name, {})[row["language"]] = row["program"] / row["plan"]
    shown = sheet.figure(
        "source", "Printed programs beside plans", partial(plot.dots, line=1.0), drawn,
        "time of the printed program ÷ time of the plan",
    )  # fmt: skip
    return [shown, folded("all numbers", block(report.sources(rows)))]


def opened(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    """The best of the turns."""
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found:
        key = row["problem"], row["label"]
        steps = {step: row[step] for step in ("import", "first", "again")}
        old = best.get(key, steps)
        best[key] = {step: min(old[step], taken) for step, taken in steps.items()}
    rows = [{"problem": problem, "label": label, **by} for (problem, label), by in best.items()]
    drawn: dict[str, dict[str, float]] = {}
    for row in rows:
        taken = drawn.setdefault(row["problem"], {})
        taken[row["label"]] = row["first"]
        taken[f"{row['label']} with import"] = row["import"] + row["first"]
    unit = "seconds from text to the first Hessian"
    shown = sheet.figure("first", "Seconds to the first Hessian", plot.dots, drawn, unit)
    return [shown, block(report.first(rows))]


def spelled(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    return [block(spellings.text(result["rows"])) for result in found]


def fitted(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    return [block(report.fits(found))]


def blocks(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    return [
        part
        for result in found
        for part in (
            sheet.figure("blocks", "What a block costs", plot.cluster, result),
            block(report.cluster(result)),
        )
    ]


def dotted(name: str, alt: str, base: str = "") -> Callable[..., list[str]]:
    """A line of dots for every quantity: seconds of the families, or times by those of one."""

    def show(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
        drawn: dict[str, dict[str, float]] = {}
        for result, quantity, rows in tables.by_quantity(found):
            taken = tables.best_of_families(rows)
            unit = taken.pop(base, None) if base else 1.0
            if unit is not None:
                line = f"{result['problem']}, {result['case']}: {quantity}"
                drawn[line] = {family: seconds / unit for family, seconds in taken.items()}
        label = f"time ÷ that of {base}" if base else "seconds"
        draw = partial(plot.dots, line=1.0 if base else None)
        return [sheet.figure(name, alt, draw, drawn, label), *numbers(found, sheet)]

    return show


def numbers(found: list[dict[str, Any]], sheet: Sheet) -> list[str]:
    return [folded("all numbers", tables.times(found))]


def of(rows: Sequence[selection.Series]) -> Callable[[Selection], list[Job]]:
    return partial(series, rows)


SECTIONS = {
    section.name: section
    for section in (
        Section(
            "suite", "All problems",
            "Every problem of the suite at a small size: tcalc as it is where nobody names a back "
            "end, beside jitted jax, on the same threads, in turns, in one process.",
            of(selection.SUITE), overview,
        ),
        Section(
            "laue", "Hessians against size",
            "Logistic regression, matrix factorisation and a small neural net, the experiment of "
            "Laue, Mitterreiter and Giesen (2020, Figure 3); core and Newton step are those of the "
            "compressed Hessian, which is never dense. A cross is where a contestant came to its "
            "end: out of memory, or over the limit of time.",
            of(selection.LAUE), of_sizes("laue", "Time of Hessians against size"),
        ),
        Section(
            "operators", "Factorisations",
            "Forward and backward of the Cholesky, LQ and symmetric eigenvalue factorisations, "
            "times divided by n³, as in Figure 1 of Seeger et al. (2017).",
            of(selection.OPERATORS), of_sizes("operators", "Time of factorisations by n³", True),
        ),
        Section(
            "models", "Models with linear algebra",
            "Gaussian process, its sparse approximation, Bayesian linear regression by Cholesky "
            "and by LQ, Kalman filter: the models of Seeger et al. (2017).",
            of(selection.MODELS), of_sizes("models", "Time of models with linear algebra"),
        ),
        Section(
            "affine", "Affine indices",
            "The example of Urban and van der Smagt (2017), as it is written and as a person "
            "expands it, and convolutions of one and two axes.",
            of(selection.AFFINE), of_sizes("affine", "Time of functions with affine indices"),
        ),
        Section(
            "arrays", "Array programs",
            "Micro-benchmarks by forward mode, the gradient of a non-negative factorisation, and "
            "Jacobians of projections: Shaikhha et al. (2019, Figures 11 to 13).",
            of(selection.ARRAYS), of_sizes("arrays", "Time of array programs"),
        ),
        Section(
            "structured", "Structured Hessians",
            "Hessians that are blocks, sparse, or diagonal and of low rank: core and Newton step "
            "without the dense matrix, beside dense ones of jax and colouring by asdex.",
            of(selection.STRUCTURED), dotted("structured", "Time of structured Hessians"),
        ),
        Section(
            "memory", "Peak memory",
            "What a process grows by in a second call, results and buffers included, as the system "
            "counts resident pages.",
            selection.peaks, peaks,
        ),
        Section(
            "depth", "Symbolic time against depth",
            "The Hessian of a net with respect to its first layer, built, derived and planned; a "
            "chain of operations built, differentiated, evaluated and printed.",
            selection.depths, depth,
        ),
        Section(
            "first", "Time to the first Hessian",
            "A fresh process: from text to numbers, with and without the import.",
            selection.opened, opened,
        ),
        Section(
            "source", "Printed programs",
            "NumPy and C as they are printed, beside the plans of the same back end.",
            selection.printed, printed,
        ),
        Section(
            "spellings", "Many spellings",
            "One model written in several ways: predicted operations of value, gradient and "
            "Hessian, matrix products and n × n arrays of the Hessian. Counts, not times.",
            selection.spelled, spelled,
        ),
        Section(
            "fit", "Fits on real data",
            "SciPy's minimisers with compiled value, gradient and Hessian.",
            selection.fitted, fitted,
        ),
        Section(
            "gradbench", "GradBench",
            "Evals of the public suite beside its own C++, by hand or by Tapenade, compiled here; "
            "measured where a checkout is named by `--gradbench`.",
            selection.gradbench,
            dotted("gradbench", "Time by that of GradBench's own C++", "gradbench"),
        ),
        Section(
            "cluster", "Blocks on a cluster",
            "What a block of dask's costs on two processes, and what a second worker saves; "
            "measured with `--full`.",
            selection.blocks, blocks,
        ),
        Section(
            "everything", "Everything beside everybody",
            "All problems at the papers' sizes and on real data, on one and two threads, beside "
            "all rivals; measured with `--full`.",
            selection.whole, numbers,
        ),
    )
}  # fmt: skip
