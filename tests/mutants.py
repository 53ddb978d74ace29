"""Are planted faults noticed? ``python -m tests.mutants [--part NAME] [--count N] [--seed N]``.

What every test and random program enters is measured once (`reach`), and kept with `--reach` for
other runs. Faults (`mutations`) are drawn from the modules of each part (`mutant_parts`) and
planted in forks of this process, one at a time (`planted`); there the tests and programs that enter
the block of a fault run, quick ones first, up to the first that fails and passes without the fault.
What runs when a module is imported, and what passed them all, is imported anew in another process.
Every fault is a line of `--log`; those that stand there are not run again, so that a stopped run
goes on; `--again` runs those again that were not noticed, with other tests or more time.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.documents import ROOT
from tests.mutant_parts import PARTS, REASONS, tests
from tests.mutant_tests import imported_anew, with_tests
from tests.mutations import Faults, Mutation, held
from tests.planted import Trial, caught, plant
from tests.reach import Reach, Source, blocks_of, function_of, light, measured

GOAL = 0.98
#: Seconds that the trials of one fault may take without it.
BUDGET = 40.0
PROGRAMS, ANEW = ("program ", "cost ", "form "), "imported anew"
#: Test files that a new process collects.
FILES = 12
UNREACHED = "nothing that ran enters it"


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
    """Trials, what they enter, and faults that nothing has noticed yet."""

    def __init__(self, log: Log, reach: Reach, trials: Sequence[Trial], budget: float) -> None:
        self.log, self.reach, self.budget = log, reach, budget
        self.trials = {trial.name: trial for trial in trials}
        self.sources = {
            module: Source(module, (ROOT / module).read_text(encoding="utf-8"))
            for part in PARTS.values()
            for module in part.modules
        }

    def measure(self, seconds: float) -> None:
        """Run the trials of each file that nothing is known of, in a fork of its own."""
        groups: dict[str, list[Trial]] = {}
        known = [name for name in self.trials if self.reach.known(name)]
        for name, trial in self.trials.items():
            if not self.reach.known(name):
                groups.setdefault(file_of(name), []).append(trial)
        if not groups or not seconds:
            return
        self.reach.now(light(self.sources, {module: str(ROOT / module) for module in self.sources}))
        for file, trials in groups.items():
            count = 0
            for trial, row in measured(trials, seconds, known):
                self.reach.add(trial.name, row)
                count += row is not None
            tell(f"{file}: {count} of {len(trials)} measured")

    def plant(self, mutants: Sequence[Mutant]) -> None:
        modules: dict[str, tuple[Faults, dict[str, Mutation]]] = {}
        for module in self.sources:
            texts = any(module in part.modules and part.texts for part in PARTS.values())
            modules[module] = faults(module, texts), {}
        for m in mutants:
            modules[m.module][1][m.key] = m.fault
        #: Those that stand in functions.
        self.planted = plant(modules)

    def meeting(self, mutant: Mutant) -> list[tuple[Trial, float]]:
        """Trials that enter the fault's block as long as there is time.

        The quick first: of a function's cases those of the third place have three times to wait.
        """
        blocks = blocks_of(mutant.module, held(mutant.fault.place), self.sources)
        functions: dict[str, list[tuple[float, str]]] = {}
        for name, seconds in self.reach.entering(blocks).items():
            if name in self.trials:
                functions.setdefault(function_of(name), []).append((seconds, name))
        ranked = [
            (seconds * place, seconds, name)
            for cases in functions.values()
            for place, (seconds, name) in enumerate(sorted(cases), 1)
        ]
        found, spent = [], 0.0
        for _, seconds, name in sorted(ranked):
            if spent + seconds <= self.budget or not found:
                found.append((self.trials[name], seconds))
                spent += seconds
        return found

    def look(self, mutant: Mutant) -> None:
        """Write what notices a fault."""
        trials = self.meeting(mutant)
        answer, passed = "", 0
        if mutant.key in self.planted:
            answer, passed = self.in_forks(mutant.key, trials)
        if not answer:
            answer, also = self.anew(mutant, trials)
            passed = max(passed, also)
        self.log.write(line(mutant, answer, passed))

    def in_forks(self, key: str, trials: Sequence[tuple[Trial, float]]) -> tuple[str, int]:
        done = 0
        while done < len(trials):
            answer, passed = caught(key, trials[done:])
            if not answer or not caught("", trials[done : done + passed + 1])[0]:
                return answer, done + passed
            done += passed + 1  # goes wrong without the fault too
        return "", done

    def anew(self, mutant: Mutant, trials: Sequence[tuple[Trial, float]]) -> tuple[str, int]:
        """Tests in a new process, of not more files than can be collected quickly."""
        files: set[str] = set()
        names = []
        for name in (trial.name for trial, _ in trials if "::" in trial.name):
            if file_of(name) in files or len(files) < FILES:
                files.add(file_of(name))
                names.append(name)
        if not names:
            return "", 0
        answer, passed = imported_anew(mutant.module, mutant.source, names, self.budget)
        if answer:
            plain = (ROOT / mutant.module).read_text(encoding="utf-8")
            if imported_anew(mutant.module, plain, names[: passed + 1], self.budget)[0]:
                return "", passed
            answer = f"{ANEW}: {answer}"
        return answer, passed


def file_of(name: str) -> str:
    """The file of a test, or the kind of a program."""
    return name.partition("::")[0] if "::" in name else name.partition(" ")[0]


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
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS")
    parser.add_argument(
        "--measure", type=float, default=60.0, metavar="SECONDS",
        help="in which the tests of a file are run once without faults; 0: none are",
    )  # fmt: skip
    parser.add_argument("--reach", type=Path, help="a file of what tests enter, to be gone on with")
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
    from tests import mutant_programs  # this reads the environment

    def work(trials: Sequence[Trial]) -> None:
        everything = [*mutant_programs.trials(options.programs), *trials]
        run = Run(log, Reach(options.reach), everything, options.budget)
        run.measure(options.measure)
        run.plant(mutants)
        for mutant in mutants:
            run.look(mutant)

    with_tests(tests(), work)


if __name__ == "__main__":
    sys.exit(main())
