"""Records are data classes and named tuples in all but what they cost an import."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any

import pytest

from tcalc.graph.extents import Coef
from tcalc.integers.affine import Affine
from tcalc.support.machine import Machine
from tcalc.support.records import NamedTuple, record

OPTIONS: list[dict[str, bool]] = [
    {}, {"frozen": True}, {"frozen": True, "eq": False}, {"frozen": True, "order": True},
    {"order": True}, {"kw_only": True, "frozen": True}, {"repr": False},
]  # fmt: skip


def point(made_by: Callable[..., Any], options: dict[str, bool]) -> Any:
    """A class with defaults of all sorts, and one more field in a class below it."""

    class Point:
        x: int
        y: float = 2.0
        tags: list[str] = dataclasses.field(default_factory=list, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "y", self.y + 1)

    made = made_by(**options)(Point)

    class Named(made):  # type: ignore[misc, valid-type]
        name: str = "a"

    return made_by(**options)(Named)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives: of an error its kind."""
    try:
        return call()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_records_do_as_data_classes(options: dict[str, bool]) -> None:
    seen = []
    for made_by in (record, dataclasses.dataclass):
        kind = point(made_by, options)
        a, b = kind(x=1), kind(x=2, name="b")
        seen.append(
            [
                outcome(lambda a=a, b=b, kind=kind, try_=try_: try_(kind, a, b))
                for try_ in (
                    lambda kind, a, b: repr(a).split("(")[-1] if options.get("repr", True) else 0,
                    lambda kind, a, b: (a == b, a == kind(x=1), a != kind(x=1), a == 1),
                    lambda kind, a, b: (a < b, a <= b, a > b, a >= b),
                    lambda kind, a, b: (hash(a) == hash(kind(x=1)), False)[options == {}],
                    lambda kind, a, b: {a: 1}[a],
                    lambda kind, a, b: {a: 1}.get(kind(x=1)),
                    lambda kind, a, b: setattr(a, "x", 5) or a.x,
                    lambda kind, a, b: delattr(b, "name"),
                    lambda kind, a, b: kind(1, 2.0, ["t"], "c").y,
                    lambda kind, a, b: kind(1, 2.0, [], "c", 5),
                    lambda kind, a, b: kind(),
                    lambda kind, a, b: kind(1, x=2),
                    lambda kind, a, b: kind(x=1, z=2),
                    lambda kind, a, b: dataclasses.replace(a, x=7).x,
                    lambda kind, a, b: dataclasses.asdict(kind(x=3)),
                    lambda kind, a, b: [f.name for f in dataclasses.fields(kind)],
                    lambda kind, a, b: (kind(x=1).tags is kind(x=1).tags, kind.__match_args__),
                )
            ]
        )
    assert seen[0] == seen[1]


def test_named_tuples_are_those_of_typing() -> None:
    bodies = []
    for base in (NamedTuple, typing.NamedTuple):
        space: dict[str, Any] = {"base": base, "__name__": __name__}
        exec(
            "class Pair(base):\n    'Two.'\n    x: int\n    y: str = 'b'\n"
            "    @property\n    def both(self): return self.x, self.y\n",
            space,
        )
        bodies.append(space["Pair"])
    mine, theirs = bodies
    assert mine._fields == theirs._fields
    assert mine._field_defaults == theirs._field_defaults
    assert (mine.__doc__, mine.__module__) == (theirs.__doc__, theirs.__module__)
    assert mine(1) == theirs(1) == (1, "b")
    assert mine(2, y="c").both == (2, "c")
    assert repr(mine(1)) == repr(theirs(1))
    assert typing.get_type_hints(mine) == typing.get_type_hints(theirs)
    with pytest.raises(TypeError):
        mine()


@pytest.mark.parametrize(
    "value", [Affine.of("i") + 2, Coef(3, ("n",)), Machine(call=3)], ids=lambda v: type(v).__name__
)
def test_records_are_pickled(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def printed(code: str) -> list[str]:
    """The words that code prints in a process of its own, as modules of the tests are many."""
    code = f"import gc; from tcalc.support.collector import resting_collector\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_lasts_is_of_the_oldest_generation() -> None:
    told = printed(
        "with resting_collector(lasting=True): kept = [[k] for k in range(5000)]\n"
        "print(gc.isenabled(), any(e is kept for e in gc.get_objects(2)), gc.get_freeze_count())"
    )
    assert told == ["True", "True", "0"]


def test_what_somebody_froze_stays_frozen() -> None:
    told = printed(
        "gc.freeze(); n = gc.get_freeze_count()\n"
        "with resting_collector(lasting=True): kept = [[k] for k in range(5000)]\n"
        "print(gc.isenabled(), gc.get_freeze_count() == n > 0)"
    )
    assert told == ["True", "True"]


def test_a_resting_collector_wakes_after_an_error() -> None:
    told = printed(
        "try:\n    with resting_collector(lasting=True): raise ValueError\n"
        "except ValueError: print(gc.isenabled())"
    )
    assert told == ["True"]
