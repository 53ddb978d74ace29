"""CuPy's names and signatures as a table, by which tests without a device check programs.

``python -m tests.cupy_table`` writes it where a CuPy is installed (``pip install cupy-cuda12x``; no
device is needed, but CUDA's libraries are); with ``--show`` it prints what can be imported.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent / "cupy_api.json"
MODULES = (
    "cupy", "cupy.linalg", "cupy.lib.stride_tricks", "cupyx", "cupyx.scipy.special",
    "cupyx.scipy.linalg", "cupyx.scipy.sparse", "cupy.cuda",
)  # fmt: skip
#: Classes of arrays, by the module that has them.
ARRAYS = {
    "cupy": ("ndarray",),
    "cupyx.scipy.sparse": ("csr_matrix", "csc_matrix", "coo_matrix"),
}
#: Classes whose arguments the first line of the docstring has.
CLASSES = ("ElementwiseKernel", "RawKernel", "ReductionKernel")


def described(found: Any) -> str:
    """The signature of a function; of a ufunc how many operands it has; else its kind."""
    if getattr(found, "__name__", "") in CLASSES:
        return _shown(found)
    if hasattr(found, "nin"):
        return f"ufunc {found.nin}"
    if isinstance(found, type) or not callable(found):
        return "value"
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:  # compiled: the first line of the docstring has it
        return _shown(found)
    bare = inspect.Parameter.empty
    plain = [
        p.replace(annotation=bare, default=bare if p.default is bare else None) for p in parameters
    ]
    return str(inspect.Signature(plain))


def _shown(found: Any) -> str:
    """The signature that a docstring begins with; of C's types the names alone."""
    shown = re.match(r"[\w.]+(\(.*\))", (found.__doc__ or "").split("\n")[0])
    if shown is None:
        return "value"
    plain = re.sub(r"=(\(\)|[^,)]+)", "=None", shown.group(1))
    return re.sub(r"(?<=[(,])( ?\*?,? ?)\w+ (?=\w)", r"\1", plain)


def names(module: Any) -> dict[str, str]:
    """What is public in a module or a class."""
    return {n: described(getattr(module, n)) for n in dir(module) if not n.startswith("_")}


def table(partly: bool) -> dict[str, Any]:
    """The table of the CuPy that is installed; `partly`: without what CUDA's libraries lack for."""
    import cupy

    modules = {}
    for name in MODULES:
        try:
            modules[name] = names(importlib.import_module(name))
        except ImportError:
            if not partly:
                raise
    for name, kinds in ARRAYS.items():
        for kind in kinds if name in modules else ():
            modules[f"{name}.{kind}"] = names(getattr(importlib.import_module(name), kind))
    return {"version": cupy.__version__, **modules}


if __name__ == "__main__":
    shown = sys.argv[1:] == ["--show"]
    text = json.dumps(table(partly=shown), indent=1, sort_keys=True) + "\n"
    if shown:
        sys.stdout.write(text)
    else:
        TABLE.write_text(text, encoding="utf-8")
