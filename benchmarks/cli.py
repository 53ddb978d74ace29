"""The command line: `run list fit factor source first depth spellings cluster report plot`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from . import devices, first, nests, processes, report, sources, spellings, suite
from .machines import machine
from .problem import QUANTITIES
from .problems import OPERATORS_ALONE, PROBLEMS
from .processes import progress
from .reporting import command
from .rivals import RIVALS


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    try:
        status: int = options.command(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, RuntimeError, OSError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return status


FITTED = {name: problem for name, problem in PROBLEMS.items() if problem.fit}
FACTORED = {problem.name: problem for problem in OPERATORS_ALONE}
CURVED = {name: problem for name, problem in PROBLEMS.items() if "hessian" in problem.hand}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="command")

    run = commands.add_parser("run", help="check and time rivals side by side")
    run.add_argument("problems", nargs="*", metavar="problem", help=f"of {', '.join(PROBLEMS)}")
    run.add_argument("--sizes", default="small", help="tiny, small, paper, or numbers: 100,300")
    run.add_argument("--quantities", default=",".join(QUANTITIES), help="default: all")
    run.add_argument("--rivals", default="hand,jax", help=f"beside tcalc, of {', '.join(RIVALS)}")
    run.add_argument(
        "--backend", choices=("host", "cupy"), default="host",
        help="cupy: tcalc, jax and torch on a device, by default at the paper's sizes",
    )  # fmt: skip
    run.add_argument("--gradbench", metavar="CHECKOUT", help="runs the suite's own C++ beside ours")
    measuring(run, repeat=7)
    run.add_argument("--markdown", type=Path, metavar="FILE")
    run.set_defaults(command=run_problems)

    listing = commands.add_parser("list", help="problems, cases, claims and rivals")
    listing.set_defaults(command=list_problems)

    opening = commands.add_parser("first", help="time from text to the first Hessian")
    opening.add_argument("problems", nargs="*", metavar="problem")
    opening.add_argument("--threads", type=int, default=1)
    opening.add_argument("--repeat", type=int, default=3)
    opening.set_defaults(command=first_numbers)

    printing = commands.add_parser("source", help="printed programs beside plans")
    printing.add_argument("problems", nargs="*", metavar="problem", help=", ".join(sources.SIZES))
    printing.add_argument("--to", default=",".join(sources.LANGUAGES), help="numpy, c or both")
    printing.add_argument("--size", type=int, help="n; default: each problem's own")
    printing.add_argument("--threads", type=int, default=1)
    printing.add_argument("--repeat", type=int, default=7)
    printing.set_defaults(command=printed)

    deep = commands.add_parser("depth", help="symbolic time against depth")
    deep.add_argument("--layers", default="10,100,1000")
    deep.add_argument("--chain", type=int, default=100_000)
    deep.set_defaults(command=depths)

    spelled = commands.add_parser("spellings", help="one model in several spellings: counts")
    spelled.add_argument("--n", type=int, help="default: each model's own")
    spelled.add_argument("--repeat", type=int, default=0, help="times too, the best of so many")
    spelled.add_argument("--threads", type=int, default=1)
    spelled.set_defaults(command=spelled_models)

    plot = commands.add_parser("plot", help="draw a file that `run --json` wrote")
    plot.add_argument("file", type=Path)
    plot.add_argument("--out", type=Path, required=True, metavar="PNG")
    plot.set_defaults(command=draw)
    add_factor_and_fit(commands)
    command.add(commands)
    return top


def add_factor_and_fit(commands: Any) -> None:
    factoring = commands.add_parser("factor", help="forward and backward of factorisations alone")
    factoring.add_argument("problems", nargs="*", metavar="problem", help=", ".join(FACTORED))
    factoring.add_argument("--sizes", default="100,200,500,1000,2000")
    factoring.add_argument("--rivals", default="tcalc-c,hand,jax,torch", help="beside tcalc")
    measuring(factoring, repeat=20)
    factoring.add_argument("--plot", type=Path, metavar="PNG")
    factoring.set_defaults(command=factor)

    fitting = commands.add_parser("fit", help="minimise with SciPy by compiled derivatives")
    fitting.add_argument("problems", nargs="*", metavar="problem", help=f"of {', '.join(FITTED)}")
    fitting.add_argument("--sizes", default="real", help="real (data), tiny, small, paper, or 100")
    fitting.add_argument("--threads", type=int, default=1)
    fitting.set_defaults(command=fit_problems)

    blocks = commands.add_parser("cluster", help="what dask's blocks cost, what workers save")
    blocks.add_argument("--partitions", default="1,10,100,1000,10000", help="numbers, or none")
    blocks.add_argument("--workers", default="1,2", help="numbers of processes, or none")
    blocks.add_argument("--repeat", type=int, default=5, help="median of")
    blocks.add_argument("--plot", type=Path, metavar="PNG")
    blocks.add_argument("--json", type=Path, metavar="FILE")
    blocks.set_defaults(command=cluster)


def measuring(command: argparse.ArgumentParser, repeat: int) -> None:
    command.add_argument("--threads", type=int, action="append", help="may be repeated; default 1")
    command.add_argument("--repeat", type=int, default=repeat, help="best of; 0 only checks")
    command.add_argument("--json", type=Path, metavar="FILE")


def chosen(names: Sequence[str], table: dict[str, Any], what: str) -> list[str]:
    """Names that exist, all if none are given."""
    for name in names:
        if name not in table:
            raise ValueError(f"no {what} {name!r}; one of {', '.join(table)}")
    return list(names) or list(table)


def run_problems(options: argparse.Namespace) -> int:
    if options.backend == "cupy":
        devices.ask(options)
    problems = chosen(options.problems, PROBLEMS, "problem")
    quantities = chosen(options.quantities.split(","), dict.fromkeys(QUANTITIES), "quantity")
    if options.gradbench:
        os.environ[suite.CHECKOUT] = str(Path(options.gradbench).resolve())
        options.rivals += ",gradbench"
    document, failures = measured(problems, quantities, options)
    print(report.text(document))
    if options.markdown:
        options.markdown.write_text(report.markdown(document) + "\n", encoding="utf-8")
    return ended(document, failures, options)


def factor(options: argparse.Namespace) -> int:
    problems = chosen(options.problems, FACTORED, "factorisation")
    document, failures = measured(problems, ["value", "both"], options)
    print(report.factor(document))
    if options.plot:
        from . import plot

        plot.factor(document, options.plot)
    return ended(document, failures, options)


def measured(
    problems: Sequence[str], quantities: Sequence[str], options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """What every case in a process of its own gave, and what failed."""
    device = getattr(options, "backend", "") == "cupy"
    first = [] if device else ["tcalc"]
    rivals = list(dict.fromkeys([*first, *filter(None, options.rivals.split(","))]))
    chosen(rivals, RIVALS, "rival")
    jobs = [
        (count, {"problem": name, "sizes": options.sizes, "place": place})
        for count in options.threads or [1]
        for name in problems
        for place in range(len(PROBLEMS[name].select(options.sizes)))
    ]
    results, failures = [], []
    with progress(len(jobs)) as (tell, step):
        for name in rivals:
            if not RIVALS[name].installed:
                tell(f"{name} is not installed and left out")
        for count, job in jobs:
            extra = {"rivals": rivals, "quantities": quantities, "repeat": options.repeat}
            try:
                result = processes.run("cases", {**job, **extra}, count, tell, device)
                results.append({"threads": count, **result})
            except RuntimeError as error:
                failures.append(str(error))
            step()
    return {"machine": machine(), "results": results}, failures


def ended(document: dict[str, Any], failures: list[str], options: argparse.Namespace) -> int:
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures or report.wrong(document) else 0


def list_problems(options: argparse.Namespace) -> int:
    for problem in PROBLEMS.values():
        variables = ", ".join(nests.leaves(problem.wrt))
        print(f"{problem.name}: {problem.text}, derivatives with respect to {variables}")
        for name, cases in problem.cases.items():
            print(f"  {name}: {'; '.join(case.label for case in cases)}")
        for quantity, forms in problem.hand.items():
            print(f"  {quantity}: by hand {', '.join(filter(None, forms)) or 'in one form'}")
        for claim in problem.claims:
            print(f"  claim: {claim}")
    for rival in RIVALS.values():
        print(f"rival {rival.name}: {rival.version if rival.installed else 'not installed'}")
    return 0


def fit_problems(options: argparse.Namespace) -> int:
    problems = chosen(options.problems, FITTED, "problem with a fit")
    jobs = [
        {"problem": name, "sizes": options.sizes, "place": place}
        for name in problems
        for place in range(len(PROBLEMS[name].select(options.sizes)))
    ]
    results = []
    with progress(len(jobs)) as (tell, step):
        for job in jobs:
            results.append(processes.run("fit", job, options.threads, tell))
            step()
    print(report.fits(results))
    return 0 if all(result["converged"] for result in results) else 1


def first_numbers(options: argparse.Namespace) -> int:
    problems = chosen(options.problems, CURVED, "problem with a Hessian")
    with progress(len(problems) * len(first.CONTESTANTS) * options.repeat) as (tell, step):
        results = first.measure(problems, options.threads, options.repeat, tell, step)
    print(report.first(results))
    return 0


def printed(options: argparse.Namespace) -> int:
    problems = chosen(options.problems, dict.fromkeys(sources.SIZES), "problem with a program")
    languages = chosen(options.to.split(","), dict.fromkeys(sources.LANGUAGES), "language")
    results = []
    with progress(len(problems) * len(languages)) as (tell, step):
        for problem, language in product(problems, languages):
            n = options.size or sources.SIZES[problem][sources.LANGUAGES.index(language)]
            job = {"problem": problem, "n": n, "repeat": options.repeat, "language": language}
            results += processes.run("sources", job, options.threads, tell)["rows"]
            step()
    print(report.sources(results))
    return 0 if all(row["error"] < sources.TOLERANCE for row in results) else 1


def depths(options: argparse.Namespace) -> int:
    jobs = [{"kind": "net", "count": int(n)} for n in options.layers.split(",")]
    jobs.append({"kind": "chain", "count": options.chain})
    results = []
    with progress(len(jobs)) as (tell, step):
        for job in jobs:
            tell(f"{job['kind']} of {job['count']:,}")
            results.append(processes.run("depth", job, 1, tell))
            step()
    print(report.depth(results[:-1], results[-1]))
    return 0


def spelled_models(options: argparse.Namespace) -> int:
    job = {"n": options.n, "repeat": options.repeat}
    with progress(1) as (tell, step):
        found = processes.run("spellings", job, options.threads, tell)
        step()
    print(spellings.text(found["rows"]))
    return 0


def cluster(options: argparse.Namespace) -> int:
    counts = {
        name: [int(n) for n in getattr(options, name).split(",") if n not in ("", "none")]
        for name in ("partitions", "workers")
    }
    with progress(1) as (tell, step):
        result = processes.run("clusters", {**counts, "repeat": options.repeat}, 1, tell)
        step()
    print(report.cluster(result))
    if options.plot:
        from . import plot

        plot.cluster(result, options.plot)
    if options.json:
        document = {"machine": machine(), **result}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def draw(options: argparse.Namespace) -> int:
    from . import plot

    plot.draw(json.loads(options.file.read_text(encoding="utf-8")), options.out)
    return 0
