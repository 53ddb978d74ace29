"""Faults behind a switch are on in forks, one at a time, and meet what enters their blocks."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests import mutant_programs, mutants, planted, reach
from tests.fuzz import CHECKS, Draw
from tests.mutations import Faults, held
from tests.random_programs import FAMILIES

SWITCHED = """
def f(a, b, c=1):
    if a < b and not c:
        return f"{a + 1}: {2 * b:.{c + 2}f}"
    total = a - b * c
    total += 0.5
    for k in range(a):
        if k:
            continue
        total = max(total, k - b)
    match a:
        case 3:
            return [x[k - 1] for x in [(a, b)] if x is not c], total
    return (lambda x, y: x / y)(total, a + b * 2)
"""


def outcome(scope: dict[str, Any], arguments: tuple[Any, ...]) -> str:
    try:
        return repr(scope["f"](*arguments))
    except Exception as error:
        return repr(error)


def test_a_fault_that_is_on_computes_what_its_source_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them stand behind one switch; constants of patterns have no place for it."""
    faults = Faults(SWITCHED, texts=True)
    everything = {str(k): fault for k, fault in enumerate(faults.all)}
    assert planted.switched(faults, everything, "") is None
    single = {k: f for k, f in everything.items() if planted.switched(faults, {k: f}, "")}
    assert 0 < len(everything) - len(single) < 3
    code = planted.switched(faults, single, "")
    assert code is not None
    switch = planted.Switch()
    scope: dict[str, Any] = {planted.NAME: switch}
    plain: dict[str, Any] = {}
    exec(code, scope)
    exec(SWITCHED, plain)
    changed = 0
    for arguments in [(1, 2, 0), (1, 2, 3), (3, 2), (4, 5, 1), (0, 1)]:
        wanted = outcome(plain, arguments)
        assert outcome(scope, arguments) == wanted
        for key, fault in single.items():
            source, other = faults.planted(fault), dict[str, Any]()
            if source is not None and fault.line > 2:
                exec(source, other)
                switch.on = key
                assert outcome(scope, arguments) == outcome(other, arguments), fault
                changed += outcome(other, arguments) != wanted
        switch.on = ""
    assert changed > 40
    assert ast.unparse(faults.tree) == ast.unparse(ast.parse(SWITCHED))


SMALL = """
from functools import lru_cache

def f(n):
    return 3 * n + 1

def outer(k):
    def inner(n):
        return k * n
    return inner

made = outer(5)
rows = {"g": lambda n: n - 2, "h": lambda n: n - 2}

@lru_cache
def held(n):
    return n * 7
"""
#: What is called, and the line of its function.
CALLS = {"f(2)": 5, "made(2)": 9, "outer(5)(2)": 9, "rows['g'](2)": 13, "held(2)": 17}


def spawned(check: Callable[..., None], *given: Any) -> None:
    """Run a check in a new process: threads that libraries have started here may hang its forks."""
    with get_context("spawn").Pool(1) as pool:
        pool.apply(check, given)


def test_faults_are_on_in_functions_of_a_fork(tmp_path: Path) -> None:
    """In functions that were made before, and in those that are made later."""
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")
    spawned(on_in_forks, tmp_path)


def on_in_forks(folder: Path) -> None:
    planted.ROOT = folder

    def imported(source: str) -> dict[str, Any]:
        scope: dict[str, Any] = {"__name__": "tcalc.small"}
        exec(compile(source, str(folder / "small.py"), "exec"), scope)
        return scope

    here, faults = imported(SMALL), Faults(SMALL)
    before = {call: eval(call, here) for call in CALLS}
    everything = {str(k): fault for k, fault in enumerate(faults.all)}
    inside = planted.plant({"small.py": (faults, everything)})
    assert inside == {k for k, fault in everything.items() if fault.functions}
    trials = [planted.Trial(call, lambda call=call: repr(eval(call, here))) for call in CALLS]
    count = 0
    for trial in trials:
        for key, fault in everything.items():
            source = faults.planted(fault)
            if fault.line == CALLS[trial.name] and source is not None:
                wanted = repr(eval(trial.name, imported(source)))
                found = planted.caught(key, [(trial, 1.0)])
                assert found == (f"{trial.name}: {wanted}", 0), (found, wanted)
                count += wanted != repr(before[trial.name])
    assert count > 5
    assert {call: eval(call, here) for call in CALLS} == before


def test_what_hangs_or_dies_in_a_fork_is_told() -> None:
    spawned(hanging_and_dying)


def hanging_and_dying() -> None:
    def endless(tell: Callable[[str], None]) -> None:
        tell("begun")
        while True:
            pass

    assert planted.forked(endless, 0.5) == (["begun"], "hangs")
    assert planted.forked(lambda tell: tell(str(1 / 0)), 5) == ([], "died")
    assert planted.forked(lambda tell: tell("x" * 900_000), 5) == (["x" * 900_000], "")
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    with pytest.raises(RuntimeError, match="2 threads would be lost"):
        planted.forked(lambda tell: None, 5)
    waiting.set()
    thread.join()


def test_random_programs_see_a_fault_that_they_reach() -> None:
    """A derivative's sign; each kind of comparison is measured for some programs."""
    spawned(seen_by_programs)


def seen_by_programs() -> None:
    units = list(mutant_programs.units(200))
    assert {where for unit in units for where in unit.checks} == {*CHECKS}
    assert {unit.draw for unit in units} >= {Draw((family,)) for family in FAMILIES}
    module = "tcalc/ops/elementwise.py"
    source = (mutants.ROOT / module).read_text(encoding="utf-8")
    sources = {module: reach.Source(module, source)}
    faults = Faults(source)
    some = {str(k): f for k, f in enumerate(faults.all) if f.functions and " * " in f.what}
    kept = reach.Reach(None)
    kept.now(reach.light(sources, {module: str(mutants.ROOT / module)}))
    trials = mutant_programs.trials(6)[:6]
    for trial, row in reach.measured(trials, 60):
        kept.add(trial.name, row)
    meeting = {
        key: kept.entering(reach.blocks_of(module, held(fault.place), sources)).keys()
        for key, fault in some.items()
    }
    assert planted.plant({module: (faults, some)}) == {*some}
    asked = [key for key, names in meeting.items() if names][:6]
    told = [
        planted.caught(key, [(trial, 5.0) for trial in trials if trial.name in meeting[key]])[0]
        for key in asked
    ]
    assert any("program" in answer for answer in told), told


# --- what tests enter -----------------------------------------------------------------------------

BLOCKS = '''
def f(n):
    """Words."""
    if n > 2:
        return [g(k) for k in range(n)]
    else:
        n += 1
    return rows["twice"](n)

def g(k, more=3):
    return k + more

def unread():
    return LIMIT

LIMIT = 4
rows = {"twice": lambda n: 2 * n,
        "fifth": lambda n: n / 5}
'''


def test_every_function_is_measured_before_further_cases() -> None:
    spawned(in_turn)


def in_turn() -> None:
    trials = [planted.Trial(f"{f}[{k}]", str) for f in "abc" for k in range(f == "c" or 4)]
    order = [trial.name for trial, _ in reach.measured(trials, 60, ["a[9]"])]
    assert sorted(order) == sorted(trial.name for trial in trials)
    found = [reach.function_of(name) for name in order]
    assert sorted(found[:2]) == ["b", "c"]
    assert sorted(found[2:]) == sorted("ab" * 3 + "a")
    assert sorted(found[2:4]) == ["a", "b"]


def test_trials_enter_blocks(tmp_path: Path) -> None:
    spawned(entered, tmp_path)


def entered(folder: Path) -> None:
    path = str(folder / "small.py")
    here: dict[str, Any] = {"__name__": "tcalc.small"}
    exec(compile(BLOCKS, path, "exec"), here)
    sources = {"small.py": reach.Source("small.py", BLOCKS)}
    names = reach.light(sources, {"small.py": path})
    wanted = {"f(3)": {"f:0", "f:1", "g:0"}, "f(1)": {"f:0", "f:2", "lambda:0"}, "g(1)": {"g:0"}}
    trials = [planted.Trial(call, lambda call=call: eval(call, here) and "") for call in wanted]
    kept = reach.Reach(folder / "reach.jsonl")
    kept.now(names)
    wrong = planted.Trial("wrong", lambda: "wrong")
    for trial, row in reach.measured([*trials, wrong], 60):
        assert (row is None) == (trial is wrong)
        kept.add(trial.name, row)
    again = reach.Reach(folder / "reach.jsonl")
    assert all(again.known(name) for name in (*wanted, "wrong"))
    for name in names:
        calls = {call for call, blocks in wanted.items() if name.partition(":")[2] in blocks}
        assert again.entering({name}).keys() == calls, name
    # Where faults are: what runs there, or what reads it.
    found = {
        fault.what: {
            name.partition(":")[2]
            for name in reach.blocks_of("small.py", held(fault.place), sources)
        }
        for fault in Faults(BLOCKS).all
    }
    assert found["n > 2 -> n >= 2"] == {"f:0"}
    assert found["1 -> 2"] == {"f:2"}
    assert found["3 -> 4"] == {"g:0"}  # a default
    assert found["4 -> 5"] == {"unread:0"}
    assert found["2 * n -> 2 + n"] == {"lambda:0"}
    # Rows of another version of the modules stay known by the names of their blocks.
    again.now(["small.py:g:0", "small.py:new:0"])
    assert again.entering({"small.py:g:0"}).keys() == {"f(3)", "g(1)"}
