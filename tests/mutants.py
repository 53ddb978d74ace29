"""Do the tests notice planted faults? ``python -m tests.mutants [--part NAME] [--count N]``.

Faults (`mutations`) are drawn from the modules of each part (`mutant_parts`), planted one at a time
in a copy of the repository, and the part's tests are run that enter the function with the fault,
quick ones first, up to the first that fails. Which test enters which functions is measured once for
every test file (`--map`, outside the repository; a changed file is measured again). Every mutant is
a line of `--log`; those that stand there are not run again, so that a stopped run goes on.

Exit status 1 where fewer than `GOAL` of a part's mutants were caught.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.documents import ROOT
from tests.mutant_parts import PARTS, REASONS, Part
from tests.mutations import Faults, Mutation

GOAL = 0.98
#: Seconds that the tests of one mutant may take without a fault, altogether and in one file.
BUDGET, IN_FILE = 40.0, 12.0
#: Tests that take so many times as long as without the fault, and some seconds, hang; by the
#: processor's time. On a busy machine they may take so many times as long by the clock.
PATIENCE, GRACE, BUSY = 5.0, 20.0, 100.0
COPIED = ("tcalc", "tests", "docs", "README.md", "pyproject.toml", "web", "benchmarks")

#: Functions that a test enters, as [file, first line], and the seconds it takes.
Entered = dict[str, tuple[float, list[list[Any]]]]


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


# --- what tests enter -----------------------------------------------------------------------------


def measured(
    part: Part, tree: Path, path: Path, seconds: float, count: int | None = None
) -> dict[str, Entered]:
    """Test file -> test -> what it enters; measured where it is not known for this text."""
    known = json.loads(path.read_text()) if path.exists() else {}
    for file in part.tests[:count]:
        digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        if known.get(file, {}).get("digest") == digest:
            continue
        tell(f"measuring {file}")
        out = tree / "entered.json"
        out.unlink(missing_ok=True)
        worked(
            tree, {"tests": [[file]], "entered": str(out), "seconds": seconds}, 10 * seconds + 60
        )
        entered = json.loads(out.read_text()) if out.exists() else {}
        known[file] = {"digest": digest, "tests": entered}
        path.write_text(json.dumps(known))
    return {file: known[file]["tests"] for file in part.tests[:count]}


def chosen(mutant: Mutant, entered: dict[str, Entered], budget: float) -> tuple[list[Any], float]:
    """Tests to run by file, in the part's order, and the seconds that they take together.

    A fault outside functions is in a table that is read when the module is imported: tests that
    enter anything of the module read it.
    """
    of_module = {(mutant.module, line) for line in mutant.fault.functions[:1]}
    files, total = [], 0.0
    for tests in entered.values():
        names, spent = [], 0.0
        for name, (seconds, functions) in sorted(tests.items(), key=lambda item: item[1][0]):
            if of_module:
                fits = any(tuple(f) in of_module for f in functions)
            else:
                fits = any(f[0] == mutant.module for f in functions)
            if fits and spent + seconds <= IN_FILE and total + spent + seconds <= budget:
                names.append(name)
                spent += seconds
        if names:
            files.append(names)
            total += spent
    return files, total


# --- running --------------------------------------------------------------------------------------


def worked(tree: Path, task: dict[str, Any], limit: float) -> str:
    """What a process of the copied tree answers: `passed`, `failed`, ..., or `hangs`.

    Raises
    ------
    TimeoutError
        Where the machine does not let it have its seconds of the processor.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TCALC_CACHE": str(tree / "compiled"),
        "XDG_CACHE_HOME": str(tree / "compiled"),
    }
    command = [sys.executable, "-m", "tests.mutant_worker", json.dumps({**task, "limit": limit})]
    process = subprocess.Popen(
        command, cwd=tree, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        told, _ = process.communicate(timeout=BUSY * limit)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{BUSY * limit:.0f} s were not enough for {limit:.0f} s") from error
    finally:
        stop(process)
    if process.returncode == -signal.SIGXCPU:
        return "hangs"
    return told.rpartition("\n== ")[2].strip() if "\n== " in told else "died"


def stop(process: subprocess.Popen[str]) -> None:
    """End a process and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def verdict(mutant: Mutant, tree: Path, entered: dict[str, Entered], budget: float) -> dict:
    """The line of the log."""
    files, seconds = chosen(mutant, entered, budget)
    start, answer = time.monotonic(), UNREACHED
    if files:
        path = tree / mutant.module
        plain = path.read_bytes()
        path.write_text(mutant.source, encoding="utf-8")
        try:
            answer = worked(tree, {"tests": files}, PATIENCE * seconds + GRACE)
        finally:
            path.write_bytes(plain)
    return {
        "key": mutant.key,
        "part": mutant.part,
        "at": f"{mutant.module}:{mutant.fault.line}",
        "what": mutant.fault.what,
        "caught": answer not in ("passed", UNREACHED),
        "answer": answer,
        "tests": sum(map(len, files)),
        "seconds": round(time.monotonic() - start, 1),
    }


# --- which mutants --------------------------------------------------------------------------------


def drawn(name: str, count: int, seed: int) -> Iterator[Mutant]:
    """Mutants of a part in an order that the seed gives, without those that mean the same."""
    part = PARTS[name]
    faults = {
        module: Faults((ROOT / module).read_text(encoding="utf-8"), part.texts)
        for module in part.modules
    }
    places = [(module, k) for module, f in faults.items() for k in range(len(f.all))]
    random.Random(f"{name} {seed}").shuffle(places)
    found = 0
    for module, k in places:
        if found == count:
            return
        fault = faults[module].all[k]
        source = faults[module].planted(fault)
        if source is not None:
            found += 1
            yield Mutant(name, module, fault, source)


def copied() -> Path:
    """A copy of the repository in which faults are planted."""
    tree = Path(tempfile.mkdtemp(prefix="mutants-"))
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_build", "results")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, tree / name)
    return tree


# --- the report -----------------------------------------------------------------------------------

UNREACHED = "no measured test enters it"


def report(lines: list[dict[str, Any]]) -> int:
    """Caught and survived by part; survivors with the reason where one is known."""
    status = 0
    for name in PARTS:
        rows = [line for line in lines if line["part"] == name]
        unreached = sum(line["answer"] == UNREACHED for line in rows)
        left = [line for line in rows if not line["caught"] and line["answer"] != UNREACHED]
        reasons = [REASONS.get((line["at"].partition(":")[0], line["what"])) for line in left]
        idle = sum(reason is not None for reason in reasons)
        counted = len(rows) - unreached - idle
        if not rows:
            continue
        caught = counted + idle - len(left)
        ways = Counter(line["answer"].partition(" ")[0] for line in rows if line["caught"])
        share = f"{caught} of {counted} caught" + (f" ({caught / counted:.1%})" if counted else "")
        told = ", ".join(f"{n} {way}" for way, n in ways.most_common())
        print(f"{name}: {share}; {told}; {idle} make no difference, {unreached} not reached")
        for line, reason in zip(left, reasons, strict=True):
            print(f"  {line['at']}: {line['what']} ({reason or line['answer']})")
        status |= caught < GOAL * counted
    return status


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="default: all")
    parser.add_argument("--count", type=int, default=50, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS")
    parser.add_argument("--measure", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument(
        "--files", type=int, help="run the first test files of a part; default: all"
    )
    parser.add_argument("--again", action="store_true", help="run the survivors of the log again")
    folder = Path(tempfile.gettempdir())
    parser.add_argument("--log", type=Path, default=folder / "mutants.jsonl")
    parser.add_argument("--map", type=Path, default=folder / "mutants-map.json")
    options = parser.parse_args(arguments)
    lines: dict[str, dict[str, Any]] = {}
    if options.log.exists():
        told = options.log.read_text().splitlines()
        lines = {line["key"]: line for line in map(json.loads, told)}
    trees = [copied() for _ in range(options.jobs)]
    try:
        for name in options.part or PARTS:
            entered = measured(PARTS[name], trees[0], options.map, options.measure, options.files)
            todo = [
                m for m in drawn(name, options.count, options.seed)
                if m.key not in lines or (options.again and not lines[m.key]["caught"])
            ]  # fmt: skip
            free = list(trees)

            def one(mutant: Mutant, entered: Any = entered, free: Any = free) -> dict[str, Any]:
                tree = free.pop()
                try:
                    return verdict(mutant, tree, entered, options.budget)
                finally:
                    free.append(tree)

            with ThreadPoolExecutor(options.jobs) as pool, options.log.open("a") as log:
                for line in pool.map(one, todo):
                    lines[line["key"]] = line
                    print(json.dumps(line), file=log, flush=True)
                    tell(f"{line['answer']}: {line['at']}: {line['what']}")
    finally:
        for tree in trees:
            shutil.rmtree(tree)
    return report(list(lines.values()))


if __name__ == "__main__":
    sys.exit(main())
