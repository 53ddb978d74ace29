"""Autograd's own examples on tcalc and on autograd, compared by all that they print and hold.

Each script of a checkout runs twice in a process of its own, once with other import lines. Both
find equal surroundings: a seeded generator, figures that nobody sees, optimizers that stop early,
and a small set of images where theirs would be downloaded to.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import math
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from tests.peer_imports import changed

ROOT = Path(__file__).resolve().parent.parent
#: Iterations of an optimizer, images, and seconds of one script.
ITERATIONS, IMAGES, PATIENCE = 3, 40, 150
#: How far numbers may be apart, relative to 1 and their size.
TOLERANCE = 1e-9
#: Files of the folder that are no scripts.
MODULES = ("__init__.py", "data.py", "data_mnist.py")
#: Where the optimizers stand, by the library.
OPTIMIZERS = {"autograd": "autograd.misc.optimizers", "tcalc": "tcalc.autograd.optimizers"}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


# --- one script, in a process of its own ----------------------------------------------------------


def run_script(library: str, script: str, result: str) -> None:
    """Run a script as main; what it printed and the numbers it holds are pickled."""
    sys.dont_write_bytecode = True
    _same_surroundings(library)
    folder = str(Path(script).parent)
    os.chdir(folder)
    sys.path.insert(0, folder)
    out = io.StringIO()
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    read = SourceFileLoader.get_data

    def changed_source(self: SourceFileLoader, path: str) -> bytes:
        source = read(self, path)
        return with_other_imports(source) if Path(path).is_relative_to(folder) else source

    if library == "tcalc":
        SourceFileLoader.get_data = changed_source  # type: ignore[method-assign, assignment]
    source = SourceFileLoader("__main__", script).get_data(script)
    with contextlib.redirect_stdout(out):
        exec(compile(source, script, "exec"), main.__dict__)
    held = vars(main)
    numbers = {
        name: value
        for key, given in held.items()
        if not key.startswith("__")
        for name, value in _numbers(key, given)
    }
    Path(result).write_bytes(pickle.dumps((out.getvalue(), numbers)))


def with_other_imports(source: bytes) -> bytes:
    """The source with other import lines."""
    return "".join(map(changed, source.decode().splitlines(keepends=True))).encode()


def _same_surroundings(library: str) -> None:
    import matplotlib
    import scipy.optimize
    from matplotlib import pyplot

    matplotlib.use("Agg")
    for name in ("show", "pause", "draw", "savefig"):
        setattr(pyplot, name, lambda *args, **options: None)
    os.system = lambda command: 0  # type: ignore[assignment]

    class Seeded(np.random.RandomState):
        def __init__(self, seed: Any = 0) -> None:
            super().__init__(seed)

    np.random.RandomState = Seeded  # type: ignore[misc]
    np.random.seed(0)
    optimizers = importlib.import_module(OPTIMIZERS[library])
    for name in ("adam", "sgd", "rmsprop"):
        setattr(optimizers, name, _stopped_early(getattr(optimizers, name)))
    minimize = scipy.optimize.minimize

    def few_iterations(*args: Any, **options: Any) -> Any:
        return minimize(*args, **{**options, "options": {"maxiter": ITERATIONS}})

    scipy.optimize.minimize = few_iterations


def _stopped_early(optimizer: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        return optimizer(*args, **{**options, "num_iters": ITERATIONS})

    return run


def _numbers(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of real numbers in a nest, by the path to each."""
    if isinstance(value, list | tuple):
        for k, part in enumerate(value):
            yield from _numbers(f"{name}[{k}]", part)
    elif isinstance(value, dict):
        for k, part in value.items():
            yield from _numbers(f"{name}[{k!r}]", part)
    elif isinstance(value, float | np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            yield name, array


# --- both libraries -------------------------------------------------------------------------------


def _with_images(checkout: Path, target: Path) -> None:
    """A copy of the folder of examples, with a few images where it looks for them."""
    shutil.copytree(checkout / "examples", target)
    (target / "data").mkdir()
    random = np.random.default_rng(0)
    for name in ("train", "t10k"):
        images = random.integers(0, 256, (IMAGES, 28, 28), dtype=np.uint8)
        labels = random.integers(0, 10, IMAGES, dtype=np.uint8)
        for file, head, array in (
            ("images-idx3", struct.pack(">IIII", 2051, IMAGES, 28, 28), images),
            ("labels-idx1", struct.pack(">II", 2049, IMAGES), labels),
        ):
            packed = gzip.compress(head + array.tobytes())
            (target / "data" / f"{name}-{file}-ubyte.gz").write_bytes(packed)


def _outcome(library: str, script: Path) -> Any:
    """What a script printed and held, or the last line of its error."""
    result = script.with_suffix(".pickle")
    command = [sys.executable, "-W", "ignore", "-m", "tests.peer_examples", library, script, result]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{library} runs longer than {PATIENCE} s"
    if done.returncode:
        return f"{library}: {(done.stderr.strip().splitlines() or ['killed'])[-1]}"
    return pickle.loads(result.read_bytes())


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance relative to 1 and the size of the numbers; 0 where both are nan."""
    if one.shape != other.shape:
        return math.inf
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(one - other) / (1 + np.abs(other)))
    return float(np.max(np.where(np.isnan(apart), np.inf, apart), initial=0.0))


def _words(text: str) -> list[str]:
    """The words of a text: neither numbers, nor how NumPy shows arrays and Python shows nests."""
    return re.sub(rf"np\.float64|array|{NUMBER.pattern}|[][(),]", " ", text).split()


def compared(ours: Any, theirs: Any) -> str:
    """Nothing where two outcomes agree; else what they differ in."""
    for outcome in (theirs, ours):
        if isinstance(outcome, str):
            return outcome
    (text, held), (their_text, their_held) = ours, theirs
    words = zip_longest(_words(text), _words(their_text))
    for word, their_word in words:
        if word != their_word:
            return f"prints {word!r}, not {their_word!r}"
    printed = [
        np.array(NUMBER.findall(each.replace("np.float64", "")), dtype=float)
        for each in (text, their_text)
    ]
    if not _distance(*printed) <= TOLERANCE:
        return f"prints numbers that are {_distance(*printed):.1e} apart"
    if held.keys() != their_held.keys():
        return f"holds other names: {sorted(held.keys() ^ their_held.keys())[:3]}"
    apart = {name: _distance(held[name], their_held[name]) for name in held}
    worst = max(apart, key=apart.__getitem__, default="")
    if worst and not apart[worst] <= TOLERANCE:
        return f"{worst} is {apart[worst]:.1e} apart"
    return ""


def compare(checkout: Path, names: Iterable[str]) -> None:
    """Print how each example does, and how many agree."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "examples")
        _with_images(checkout, target)
        scripts = [
            path
            for path in sorted(target.rglob("*.py"))
            if path.name not in MODULES and (not names or path.stem in names)
        ]

        def one(script: Path) -> str:
            return compared(_outcome("tcalc", script), _outcome("autograd", script))

        agreeing = 0
        with ThreadPoolExecutor(max_workers=2) as pool:
            for script, said in zip(scripts, pool.map(one, scripts), strict=True):
                agreeing += not said
                print(f"{script.stem:34}{said or 'agrees':.120}", flush=True)
    print(f"{agreeing:6} of {len(scripts)} agree to {TOLERANCE}")


if __name__ == "__main__":
    run_script(*sys.argv[1:])
