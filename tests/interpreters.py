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
            array = np.asarray(value, float if isinstance(value, int) else None)
            cells[k][0, place] = array[:, None] if array.ndim == 1 else array
    counts = [len(program.wanted) for program in programs]
    scipy.io.savemat(folder / "in.mat", {"given": cells, "counts": counts}, oned_as="column")
    done = octave_script(DRIVER, folder)
    assert (folder / "out.mat").exists(), done.stderr
    found = scipy.io.loadmat(folder / "out.mat")
    rows = zip(programs, found["results"].ravel(), found["errors"].ravel(), strict=True)
    return ["".join(e.ravel()) or shaped(program, r.ravel()) for program, r, e in rows]


def shaped(program: Program, results: Sequence[np.ndarray]) -> Answer:
    """Arrays with the axes that they have in tcalc, where they have these in Octave."""
    sizes, answer = program.extents(), {}
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


JULIA = ["julia", "--startup-file=no", "--compile=min", "-O0"]
JULIA_DRIVER = """
function put(x)
    entries = x isa Number ? [x] : vec(collect(x))
    println(eltype(x), ";", join(size(x), ","), ";", join(Float64.(entries), " "))
end
for (k, given) in enumerate(inputs)
    try
        found = Base.include(Module(Symbol("Case", k)), string("case", k - 1, ".jl"))
        results = Base.invokelatest(found, given...)
        println("case ", k - 1)
        foreach(put, results isa Tuple ? results : (results,))
    catch failure
        println("error ", k - 1, " ", replace(first(sprint(showerror, failure), 300), "\\n" => " "))
    end
end
"""


def julia(programs: Sequence[Program], folder: Path) -> list[Answer]:
    """What Julia computes."""
    need("julia")
    inputs = []
    for k, program in enumerate(programs):
        source = tc.to_code(outputs(program), "julia", name=f"case{k}")
        (folder / f"case{k}.jl").write_text(f"{source}\ncase{k}\n")
        found = re.search(rf"^(?:@views )?function case{k}\((.*)\)$", source, re.MULTILINE)
        assert found is not None
        names = [name for name in found.group(1).split(", ") if name]
        inputs.append(f"({' '.join([literal(program.data[name]) + ',' for name in names])})")
    text = "inputs = Any[\n" + ",\n".join(inputs) + "]\n" + JULIA_DRIVER
    (folder / "drive.jl").write_text(text)
    done = subprocess.run(
        [*JULIA, "drive.jl"], cwd=folder, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    answers: list[Answer] = []
    parts = re.split(r"^(?=case \d+$|error \d+ )", done.stdout, flags=re.MULTILINE)[1:]
    for program, part in zip(programs, parts, strict=True):
        head, *lines = part.splitlines()
        failed = head.startswith("error")
        answers.append(
            head if failed else dict(zip(program.wanted, map(array, lines), strict=True))
        )
    return answers


def literal(value: Any) -> str:
    """An array or a number as Julia reads it."""
    a = np.asarray(value)
    kinds = {"float64": "Float64", "float32": "Float32", "int64": "Int", "bool": "Bool"}
    kind = kinds[a.dtype.name]
    entries = ", ".join([repr(x).replace("inf", "Inf") for x in a.ravel(order="F").tolist()])
    entries = entries.replace("nan", "NaN").replace("True", "true").replace("False", "false")
    if not a.ndim:
        return f"{kind}({entries})"
    return f"reshape({kind}[{entries}], {', '.join(map(str, a.shape))})"


def array(line: str) -> np.ndarray:
    """An array that Julia has shown."""
    kind, shape, entries = line.split(";")
    found = np.array([float(x) for x in entries.split()])
    return found.reshape([int(n) for n in shape.split(",") if n], order="F").astype(kind.lower())
