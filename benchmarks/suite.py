"""GradBench's programs beside ours: a checkout of the suite, its own timings, our data.

Every eval of the suite has a program in C++, which reads a JSON file, computes one function as
often as it is asked, and writes the result and what every run took. They are compiled by the
suite's own makefiles, for this processor, and take the place of a contestant where a checkout is
named.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The environment variable that names the checkout, for processes that inherit it.
CHECKOUT = "GRADBENCH"


@dataclass(frozen=True)
class Eval:
    """One eval of the suite, for a problem of ours.

    Attributes
    ----------
    name : str
        The module's name there.
    given : callable
        ``given(data)`` is its input, apart from how often it runs; None where it cannot take them.
    functions : mapping
        Quantity -> the function that computes it, and ``read(output, data)``, which nests its
        output as we do.
    tools : sequence of str
        Which of its tools are written by hand or by source transformation.
    """

    name: str
    given: Callable[[Any], dict[str, Any] | None]
    functions: Mapping[str, tuple[str, Callable[[Any, Any], Any]]]
    tools: tuple[str, ...] = field(default=("manual",))


def checkout() -> Path | None:
    """The suite's folder, where one is named."""
    return Path(os.environ[CHECKOUT]) if os.environ.get(CHECKOUT) else None


def program(root: Path, tool: str, name: str) -> Path:
    """The compiled program; RuntimeError with the compiler's words where it cannot be made."""
    folder = root / "tools" / tool
    made = subprocess.run(
        ["make", "-s", f"bin/{name}"], cwd=folder, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise RuntimeError(f"{folder}: make bin/{name} failed\n{made.stderr[-2000:]}")
    return folder / "bin" / name


@dataclass
class Run:
    """One function of one program on fixed data: its result, and its best time."""

    program: Path
    function: str
    given: dict[str, Any]

    def __call__(self, seconds: float = 0.0, runs: int = 1) -> tuple[Any, float]:
        """The output, and the least seconds of its runs."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({**self.given, "min_runs": runs, "min_seconds": seconds}, file)
            file.flush()
            done = subprocess.run(
                [self.program, file.name, self.function], capture_output=True, text=True, check=True
            )
        output, *timings = map(json.loads, done.stdout.splitlines())
        taken = [one["nanoseconds"] for one in timings if one["name"] == "evaluate"]
        return output, min(taken) / 1e9
