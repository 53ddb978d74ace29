"""Are planted faults noticed? ``python -m tests.mutants [--part NAME] [--count N] [--seed N]``.

Faults (`mutations`) are drawn from the modules of each part (`mutant_parts`) and planted in forks
of this process, one at a time (`planted`). Random programs that ask for the place of a fault run
first; a fault that none of them notices goes on to the tests that ask for its place, test file by
test file, quick tests first, up to the first that fails. What only runs when a module is imported
is imported anew, where tests pass with the plain module imported so. Every fault is a line of
`--log`; those that stand there are not run again, so that a stopped run goes on; `--again` runs
those again that were not noticed, with other tests or more time.

Exit status 1 where fewer than `GOAL` of a part's faults were caught.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.documents import ROOT
from tests.mutant_parts import PARTS, REASONS
from tests.mutations import Faults, Mutation
from tests.planted import Seen, Trial, caught, plant, seen

GOAL = 0.98
#: Seconds that the trials of one fault may take without it, altogether and of one file.
BUDGET, IN_FILE = 40.0, 8.0
PROGRAMS = "programs"
UNREACHED = "nothing that ran asks for it"


class Mutant(NamedTuple):
    """A fault in a module, and the module with it."""

    part: str
    module: str
    fault: Mutation
    source: str

    @property
    def key(self) -> str:
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return f"{self.module}:{self.fault.line}:{digest}"


@functools.cache
def faults(module: str, texts: bool) -> Faults:
    return Faults((ROOT / module).read_text(encoding="utf-8"), texts)


def drawn(name: str, count: int, seed: int) -> Iterator[Mutant]:
    """Faults of a part in an order that the seed gives, without those that mean the same."""
    part = PARTS[name]
    places = [
        (module, k) for module in part.modules for k in range(len(faults(module, part.texts).all))
    ]
    random.Random(f"{name} {seed}").shuffle(places)
    found = 0
    for module, k in places:
        if found == count:
            return
        of_module = faults(module, part.texts)
        source = of_module.planted(of_module.all[k])
        if source is not None:
            found += 1
            yield Mutant(name, module, of_module.all[k], source)


# --- the log --------------------------------------------------------------------------------------


def line(mutant: Mutant, answer: str, count: int) -> dict[str, Any]:
    """What is told of a fault: the answer of the trial that noticed it, or how many did not."""
    missed = f"passed {count}" if count else UNREACHED
    return {
        "key": mutant.key,
        "part": mutant.part,
        "at": f"{mutant.module}:{mutant.fault.line}",
        "what": mutant.fault.what,
        "caught": bool(answer),
        "answer": answer or missed,
        "trials": count,
    }


class Log:
    """Lines of a file, if there is one, and of this run; the last that tells of a fault counts."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        told = path.read_text().splitlines() if path is not None and path.exists() else []
        self.lines: dict[str, dict[str, Any]] = {row["key"]: row for row in map(json.loads, told)}

    def write(self, row: dict[str, Any]) -> None:
        self.lines[row["key"]] = row
        tell(f"{row['answer']}: {row['at']}: {row['what']}")
        if self.path is not None:
            with self.path.open("a") as file:
                print(json.dumps(row), file=file)


def tell(words: str) -> None:
    print(words, file=sys.__stderr__, flush=True)


# --- the run --------------------------------------------------------------------------------------


class Run:
    """Faults that nothing has noticed yet, and what each has left of its budget."""

    def __init__(self, mutants: Sequence[Mutant], log: Log, budget: float) -> None:
        self.log, self.budget = log, budget
        self.left = {mutant.key: mutant for mutant in mutants}
        self.spent: Counter[str] = Counter()
        self.trials: Counter[str] = Counter()
        modules: dict[str, tuple[Faults, dict[str, Mutation]]] = {}
        for m in mutants:
            found = faults(m.module, PARTS[m.part].texts)
            modules.setdefault(m.module, (found, {}))[1][m.key] = m.fault
        #: Those that stand in functions.
        self.planted: Collection[str] = plant(modules)

    def found(self, key: str, answer: str) -> None:
        self.log.write(line(self.left.pop(key), answer, self.trials[key]))

    def look(self, name: str, trials: Sequence[Trial], seconds: float) -> None:
        """Run trials with each of the faults that they ask for."""
        waiting = [key for key in self.left if key in self.planted]
        if not waiting:
            return
        rows = seen(trials, seconds)
        asked = frozenset[str]().union(*(row.faults for row in rows))
        for key in waiting:
            chosen = self.chosen(key, rows) if key in asked else []
            if chosen and (answer := caught(key, chosen)):
                self.found(key, f"{name}: {answer}")
        tell(f"{name}: {len(rows)} of {len(trials)} measured, {len(self.left)} left")

    def chosen(self, key: str, rows: Sequence[Seen]) -> list[Seen]:
        """Quick trials first, as long as the fault has time."""
        some, spent = [], 0.0
        for row in rows:
            if key in row.faults:
                spent += row.seconds
                if some and (spent > IN_FILE or self.spent[key] + spent > self.budget):
                    break
                if self.spent[key] > self.budget:
                    break
                some.append(row)
                self.spent[key] += row.seconds
        self.trials[key] += len(some)
        return some

    def anew(self, seconds: float, count: int | None) -> None:
        """Import the modules of those anew that stand outside of functions."""
        from tests.mutant_tests import imported_anew

        @functools.cache
        def sound(module: str, files: tuple[str, ...]) -> bool:
            """Do these tests pass after the module as it is was imported anew?"""
            text = (ROOT / module).read_text(encoding="utf-8")
            return not imported_anew(module, text, files, seconds)

        for key in [key for key in self.left if key not in self.planted]:
            m = self.left[key]
            files = PARTS[m.part].tests[:count]
            if not sound(m.module, files):
                continue
            self.trials[key] += 1
            answer = imported_anew(m.module, m.source, files, seconds)
            if answer:
                self.found(key, f"imported anew: {answer}")

    def end(self) -> None:
        for key in [*self.left]:
            self.found(key, "")


# --- the report -----------------------------------------------------------------------------------


def report(lines: Sequence[Mapping[str, Any]]) -> int:
    """Caught and left by part, with the reason where one is known; where most are left."""
    status = 0
    left: list[Mapping[str, Any]] = []
    for name in [*PARTS, ""]:
        rows = [row for row in lines if name in ("", row["part"])]
        if not rows:
            continue
        missed = [row for row in rows if not row["caught"]]
        reasons = [REASONS.get((module(row), row["what"])) for row in missed]
        idle = sum(reason is not None for reason in reasons)
        counted, caught = len(rows) - idle, len(rows) - len(missed)
        programs = sum(row["caught"] and row["answer"].startswith(PROGRAMS) for row in rows)
        unreached = sum(row["answer"] == UNREACHED for row in missed)
        share = f" ({caught / counted:.1%})" if counted else ""
        print(
            f"{name or 'all'}: {caught} of {counted} caught{share}, {programs} by programs; "
            f"{idle} make no difference, {unreached} not reached"
        )
        if name:
            for row, reason in zip(missed, reasons, strict=True):
                print(f"  {row['at']}: {row['what']} ({reason or row['answer']})")
            left += [row for row, reason in zip(missed, reasons, strict=True) if reason is None]
            status |= caught < GOAL * counted
    for path, count in Counter(map(module, left)).most_common(10):
        print(f"  {count} left in {path}")
    return status


def module(row: Mapping[str, Any]) -> str:
    path: str = row["at"].partition(":")[0]
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="default: all")
    parser.add_argument("--count", type=int, default=50, help="faults of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=150, help="random programs that run")
    parser.add_argument("--files", type=int, help="the first test files of a part; default: all")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS")
    parser.add_argument(
        "--measure", type=float, default=60.0, metavar="SECONDS",
        help="in which the tests of a file are run once without faults",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="run those again that were missed")
    parser.add_argument("--log", type=Path, help="a file with a line for each fault")
    options = parser.parse_args(arguments)
    log = Log(options.log)
    names = options.part or [*PARTS]
    asked = [m for name in names for m in drawn(name, options.count, options.seed)]
    mutants = [
        m
        for m in asked
        if m.key not in log.lines or (options.again and not log.lines[m.key]["caught"])
    ]
    if mutants:
        # Libraries start no threads, and what is compiled stands beside no user's.
        os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TCALC_CACHE"] = folder
            noticed(mutants, log, options)
    return report([log.lines[m.key] for m in asked])


def noticed(mutants: Sequence[Mutant], log: Log, options: argparse.Namespace) -> None:
    """Write of each fault what noticed it."""
    from tests import mutant_programs  # these read the environment
    from tests.mutant_tests import each_file

    run = Run(mutants, log, options.budget)
    run.look(PROGRAMS, mutant_programs.trials(options.programs), options.measure)
    parts = {m.part: None for m in run.left.values()}
    files = {file: None for part in parts for file in PARTS[part].tests[: options.files]}

    def work(found: Mapping[str, Sequence[Trial]]) -> None:
        for file, trials in found.items():
            run.look(file, trials, options.measure)

    if files:
        each_file([*files], work)
        run.anew(IN_FILE, options.files)
    run.end()


if __name__ == "__main__":
    sys.exit(main())
