"""Printed programs in other languages, many in one run of an interpreter."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import tcalc as tc
from tcalc.graph.extents import extent_of
from tcalc.graph.nodes import variables
from tests.source_programs import Program

#: What interpreters answer: results by name, or the message of an error.
Answer = dict[str, np.ndarray] | str


def need(program: str) -> None:
    """Skip the test where there is no such interpreter."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the path")


def outputs(program: Program) -> Any:
    """What is printed: one expression, or a tuple."""
    found = tuple(program.wanted.values())
    return found if len(found) > 1 else found[0]


def octave(programs: Sequence[Program], folder: Path) -> list[Answer]:
    """What Octave computes."""
    need("octave-cli")
    cells = np.empty(len(programs), object)
    for k, program in enumerate(programs):
        source = tc.to_code(outputs(program), "matlab", name=f"case{k}")
        (folder / f"case{k}.m").write_text(source)
        head = re.search(r"^function .*?\((.*)\)$", source, re.MULTILINE)
        assert head is not None
        names = [name for name in head.group(1).split(", ") if name]
        cells[k] = np.empty((1, len(names)), object)
        for place, name in enumerate(names):
            value = program.data[name]
            cells[k][0, place] = np.asarray(value, float if isinstance(value, int) else None)
    counts = [len(program.wanted) for program in programs]
    scipy.io.savemat(folder / "in.mat", {"given": cells, "counts": counts}, oned_as="column")
    done = octave_script(DRIVER, folder)
    assert (folder / "out.mat").exists(), done.stderr
    found = scipy.io.loadmat(folder / "out.mat")
    rows = zip(programs, found["results"].ravel(), found["errors"].ravel(), strict=True)
    return ["".join(e.ravel()) or shaped(program, r.ravel()) for program, r, e in rows]


def shaped(program: Program, results: Sequence[np.ndarray]) -> Answer:
    """Arrays with the axes that they have in tcalc, where they have these in Octave."""
    sizes = {name: n for name, n in program.data.items() if isinstance(n, int)}
    for v in variables(program.wanted.values()).values():
        sizes |= {
            n: k
            for n, k in zip(v.shape, np.shape(program.data[v.name]), strict=True)
            if isinstance(n, str)
        }
    answer = {}
    for (name, e), value in zip(program.wanted.items(), results, strict=True):
        shape = tuple([extent_of(extent, sizes) for extent in e.shape])
        answer[name] = value.reshape(shape, order="F") if value.shape == padded(shape) else value
    return answer


DRIVER = """
load in.mat
results = cell(1, numel(given));
errors = repmat({''}, 1, numel(given));
for k = 1:numel(given)
  try
    found = cell(1, counts(k));
    [found{:}] = feval(sprintf('case%d', k - 1), given{k}{:});
    results{k} = found;
  catch failure
    errors{k} = [failure.message, ' '];
    if ~isempty(failure.stack)
      errors{k} = [errors{k}, failure.stack(1).name, ' line ', num2str(failure.stack(1).line)];
    end
  end
end
save('-v7', 'out.mat', 'results', 'errors');
"""


def padded(shape: Sequence[int]) -> tuple[int, ...]:
    """The size that Octave says of an array: of two axes at least, none of 1 behind these."""
    found = [*shape, *[1] * (2 - len(shape))]
    while len(found) > 2 and found[-1] == 1:
        found.pop()
    return tuple(found)


def octave_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script run in a folder of functions."""
    need("octave-cli")
    (folder / "script.m").write_text(text)
    return subprocess.run(
        ["octave-cli", "--norc", "--quiet", "script.m"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
