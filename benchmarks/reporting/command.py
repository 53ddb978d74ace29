"""`python -m benchmarks report`: measure what is missing, then draw the page from what is there."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from .. import suite
from ..machines import memory
from ..processes import ROOT, Bounds, progress
from . import page
from .jobs import Folder, distinct, measure
from .sections import SECTIONS
from .selection import REACHES, Selection

#: The part of the machine's memory that a job may take.
SHARE = 0.7


def add(commands: Any) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "report", help="measure the whole suite, resumably, and write the report's page"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "benchmarks/results",
        metavar="FOLDER",
        help="a file a job; what is there is not measured again",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "docs/report",
        metavar="FOLDER",
        help="index.md, figures, results.csv",
    )
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="start no job after so long; 0 only draws"
    )
    parser.add_argument(
        "--sizes",
        choices=REACHES,
        default="usual",
        help="tiny: minutes; usual: a good half hour on two cores; full: hours",
    )
    parser.add_argument("--full", action="store_const", const="full", dest="sizes")
    parser.add_argument("--repeat", type=int, default=5, help="best of")
    parser.add_argument(
        "--limit",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="of one call of a contestant, what it compiles included",
    )
    parser.add_argument(
        "--again", action="store_true", help="measure anew the jobs that gave no result"
    )
    parser.add_argument("--gradbench", metavar="CHECKOUT", help="the suite's own C++ beside ours")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """0 when everything that was asked for is there."""
    names = options.sections.split(",")
    for name in names:
        if name not in SECTIONS:
            raise ValueError(f"no section {name!r}; one of {', '.join(SECTIONS)}")
    if options.gradbench:
        os.environ[suite.CHECKOUT] = str(Path(options.gradbench).resolve())
    selected = Selection(options.sizes, options.repeat)
    plan = [(SECTIONS[name], SECTIONS[name].jobs(selected)) for name in names]
    jobs, folder = distinct([job for _, own in plan for job in own]), Folder(options.results)
    if options.again:
        for job in jobs:
            if (record := folder.read(job)) and record["failed"]:
                folder.file(job).unlink()
    size = memory()
    bounds = Bounds(options.limit, None if size is None else int(SHARE * size))
    with progress(len(jobs)) as (tell, step):
        left = measure(jobs, folder, bounds, options.budget, tell, step)
    page.write(plan, folder, options.out)
    print(f"{options.out}: drawn from {len(jobs) - left} of {len(jobs)} jobs")
    if left:
        print(f"{left} jobs are left: the same command goes on with them", file=sys.stderr)
    return 1 if left else 0
