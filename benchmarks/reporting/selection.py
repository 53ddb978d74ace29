"""Which jobs the sections need: problems, sizes, rivals and threads as rows of tables.

Everything has three reaches: `tiny` tries the machinery, `usual` takes a good half hour on two slow
cores, `full` hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import first, sources, suite
from ..problems import OPERATORS_ALONE, PROBLEMS
from .jobs import Job

REACHES = ("tiny", "usual", "full")

#: Beside the default back end.
BESIDE = ("tcalc-auto", "hand", "jax")
ALL = ("tcalc-auto", "hand", "jax", "torch", "autograd")
EVERYBODY = ("tcalc-auto", "tcalc", "tcalc-c", "hand", "jax", "torch", "autograd", "asdex")

#: Seconds that a contestant's repetitions may take in all, by reach.
PATIENCE = {"tiny": 0.1, "usual": 1.0, "full": 10.0}


@dataclass(frozen=True)
class Selection:
    """What was asked for: how far, and the best of how many."""

    reach: str = "usual"
    repeat: int = 5


@dataclass(frozen=True)
class Series:
    """Problems over sizes: what is asked of them, beside whom, on how many threads.

    Attributes
    ----------
    usual, full : str
        Sizes: a named set or numbers; `last` takes the last case of the named set alone.
    """

    problems: tuple[str, ...]
    usual: str
    full: str = "paper"
    quantities: tuple[str, ...] = ("hessian",)
    rivals: tuple[str, ...] = ALL
    threads: tuple[int, ...] = (1,)
    last: bool = False

    def jobs(self, selection: Selection) -> Iterator[Job]:
        sizes = {"tiny": "tiny", "usual": self.usual, "full": self.full}[selection.reach]
        for threads in self.threads:
            for problem in self.problems:
                for size, place in cases(problem, sizes, self.last and selection.reach == "usual"):
                    asked = {
                        "problem": problem,
                        "sizes": size,
                        "place": place,
                        "rivals": list(self.rivals),
                        "quantities": list(self.quantities),
                        "repeat": selection.repeat,
                        "patience": PATIENCE[selection.reach],
                    }
                    yield Job("cases", asked, threads)


def cases(problem: str, sizes: str, last: bool) -> list[tuple[str, int]]:
    """(sizes, place) of every case; a number is a case of its own, whatever else is measured."""
    if sizes not in PROBLEMS[problem].cases:
        return [(n, 0) for n in sizes.split(",")]
    count = len(PROBLEMS[problem].cases[sizes])
    return [(sizes, place) for place in range(count)][-1 if last or sizes == "tiny" else 0 :]


QUANTITIES = ("value", "gradient", "both", "jacobian", "hessian", "core", "newton")
ALONE = tuple([problem.name for problem in OPERATORS_ALONE])

SUITE = (
    Series(
        tuple([name for name in PROBLEMS if name not in ALONE]), "small", "small", QUANTITIES,
        BESIDE, (1, 2), last=True,
    ),
)  # fmt: skip
LAUE = (
    Series(("logistic",), "30,100,300,1000", "30,100,300,1000,2000"),
    Series(("matrix-factorisation",), "10,30,100,300", "10,30,100,200,300"),
    Series(("net",), "10,20,40", "10,20,40,80"),
    Series(("matrix-factorisation",), "100,300", "100,300,1000", ("core", "newton"), BESIDE),
    Series(("logistic",), "100,300,1000", "100,300,1000,2000", rivals=BESIDE, threads=(2,)),
)
OPERATORS = (Series(ALONE, "100,300,1000", "100,200,500,1000,2000", ("value", "both"),
                    ("tcalc-auto", "hand", "jax", "torch")),)  # fmt: skip
MODELS = (
    Series(("gp",), "100,300,600", "100,300,1000", ("gradient", "hessian"), BESIDE),
    Series(("sparse-gp",), "100,300,1000", "100,300,1000,3000", ("gradient", "hessian"), BESIDE),
    Series(("linear-regression", "linear-regression-lq"), "100,300", "100,300,1000",
           ("gradient", "hessian"), BESIDE),
    Series(("kalman",), "10,30,100", "10,30,100,300", ("gradient",), BESIDE),
)  # fmt: skip
AFFINE = (
    Series(("affine-example", "affine-example-expanded"), "30,100,300", "30,100,300",
           ("value", "both"), BESIDE),
    Series(("convolution-1d",), "10000,100000", "10000,100000", ("gradient",), BESIDE),
    Series(("convolution-1d-kernel",), "1000,10000", "1000,10000,100000", ("hessian",), BESIDE),
    Series(("convolution-2d",), "64,256", "64,256", ("gradient", "hessian"), BESIDE),
)  # fmt: skip
LINES = tuple([f"array-micro-{name}" for name in ("dot", "max", "scale")])
SQUARES = tuple([f"array-micro-{name}" for name in ("add", "matrix-vector")])
ARRAYS = (
    Series(LINES, "100,1000,10000", "100,1000,10000,100000", ("value",), BESIDE),
    Series(SQUARES, "100,1000", "100,1000,3000", ("value",), BESIDE),
    Series(("nnmf",), "100,300,1000", "100,300,1000,3000", ("gradient",), BESIDE),
    Series(("bundle-adjustment-jacobian",), "100,1000,10000", "100,1000,10000,100000", ("value",),
           BESIDE),
)  # fmt: skip
STRUCTURED = (
    Series(("population-glm", "cosine-sum", "ridge-logistic", "weighted-factorisation"), "small",
           quantities=("core", "newton", "hessian"), rivals=(*BESIDE, "asdex"), last=True),
    Series(("bundle-adjustment",), "10,20", "10,20,50", ("core", "newton"), (*BESIDE, "asdex")),
)  # fmt: skip
WHOLE = (Series(tuple(PROBLEMS), "paper", "paper", QUANTITIES, EVERYBODY, (1, 2)),)

#: Problems with a program in the public suite.
EVALS = tuple([name for name, problem in PROBLEMS.items() if problem.suite])
GRADBENCH = (
    Series(EVALS, "small", "paper", ("value", "gradient", "jacobian"),
           ("tcalc-auto", "tcalc-c", "hand", "jax", "gradbench"), (1,), last=True),
)  # fmt: skip

#: (problem, size, quantity) whose peaks are measured.
PEAKS = (
    ("logistic", "1000", "hessian"),
    ("matrix-factorisation", "200", "hessian"),
    ("gp", "600", "gradient"),
    ("gp", "600", "hessian"),
    ("affine-example", "300", "gradient"),
    ("nnmf", "1000", "gradient"),
)


def series(rows: Sequence[Series], selection: Selection) -> list[Job]:
    return [job for row in rows for job in row.jobs(selection)]


def gradbench(selection: Selection) -> list[Job]:
    return series(GRADBENCH, selection) if suite.checkout() else []


def whole(selection: Selection) -> list[Job]:
    return series(WHOLE, selection) if selection.reach == "full" else []


def peaks(selection: Selection) -> list[Job]:
    tiny = selection.reach == "tiny"
    rows = PEAKS[:2] if tiny else PEAKS
    return [
        Job("memory", {"problem": problem, "sizes": "4" if tiny else size, "quantity": quantity,
                       "rival": rival})
        for problem, size, quantity in rows
        for rival in ("tcalc-auto", "hand", "jax", "torch")
    ]  # fmt: skip


def depths(selection: Selection) -> list[Job]:
    counts: dict[str, dict[str, tuple[int, ...]]] = {
        "tiny": {"net": (2, 4), "chain": (10,)},
        "usual": {"net": (10, 100, 1000), "chain": (1000, 3000, 10_000)},
        "full": {"net": (10, 100, 1000, 10_000), "chain": (1000, 10_000, 100_000)},
    }
    return [
        Job("depth", {"kind": kind, "count": count})
        for kind, each in counts[selection.reach].items()
        for count in each
    ]


def printed(selection: Selection) -> list[Job]:
    chosen = dict(list(sources.SIZES.items())[: 1 if selection.reach == "tiny" else None])
    return [
        Job("sources", {"problem": name, "n": 4 if selection.reach == "tiny" else sizes[place],
                        "repeat": selection.repeat, "language": language})
        for place, language in enumerate(sources.LANGUAGES)
        for name, sizes in chosen.items()
    ]  # fmt: skip


#: Whose time from text to the first Hessian is measured in the usual reach.
OPENED = ("logistic", "matrix-factorisation", "net", "gp", "linear-regression", "kalman")


def opened(selection: Selection) -> list[Job]:
    curved = [name for name, problem in PROBLEMS.items() if "hessian" in problem.hand]
    names = {"tiny": OPENED[:1], "usual": OPENED, "full": curved}[selection.reach]
    return [
        Job("first", {"problem": name, "label": label}, turn=turn)
        for name in names
        for label in first.CONTESTANTS
        for turn in range({"tiny": 1, "usual": 2, "full": 5}[selection.reach])
    ]


def spelled(selection: Selection) -> list[Job]:
    return [Job("spellings", {"n": 60} if selection.reach == "tiny" else {})]


def fitted(selection: Selection) -> list[Job]:
    """Where there are real data, those."""
    tiny = selection.reach == "tiny"
    names = [name for name, problem in PROBLEMS.items() if problem.fit]
    jobs: list[dict[str, Any]] = [
        {"problem": name, "sizes": "tiny" if tiny else "real", "place": 0}
        for name in names
        if tiny or "real" in PROBLEMS[name].cases
    ]
    return [Job("fit", asked) for asked in jobs[: 1 if tiny else None]]


def blocks(selection: Selection) -> list[Job]:
    """What dask's blocks cost; minutes, and so for those who take hours."""
    asked = {"partitions": [1, 10, 100, 1000], "workers": [1, 2], "repeat": 5}
    return [Job("clusters", asked)] if selection.reach == "full" else []
