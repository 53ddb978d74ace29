"""Lines of files written for autograd, with the imports that they need here."""

from __future__ import annotations

import re

#: What an import of autograd becomes, the longest names first.
IMPORTS = {
    "autograd.numpy": "tcalc.numpy",
    "autograd.scipy": "tcalc.scipy",
    "autograd.test_util": "tcalc.autograd.test_util",
    "autograd.misc.optimizers": "tcalc.autograd.optimizers",
    "autograd.misc.flatten": "tcalc.autograd.flattening",
    "autograd.misc.fixed_points": "tcalc.autograd.fixed_points",
    "autograd.misc": "tcalc.autograd",
    "autograd.builtins": "tcalc.autograd",
    "autograd.tracer import isbox": "tcalc.autograd import isbox",
    "autograd.tracer import primitive": "tcalc.autograd.extend import primitive",
    "autograd.core import primitive_vjps": "tcalc.autograd.extend import primitive_vjps",
    "autograd.core import vspace": "tcalc.autograd.extend import vspace",
    "autograd": "tcalc.autograd",
}


def changed(line: str) -> str:
    """A line of a file, with other imports and the names that they bring."""
    if not re.match(r"\s*(from|import)\s+autograd\b", line):
        return re.sub(r"\bautograd\.scipy\.", "tcalc.scipy.", line)
    # Distributions are objects here, as in SciPy, where autograd has modules.
    line = re.sub(r"import (autograd\.scipy\.stats)\.(\w+) as", r"from \1 import \2 as", line)
    name = next(name for name in IMPORTS if re.search(rf"\b{re.escape(name)}\b", line))
    return re.sub(rf"\b{re.escape(name)}\b", IMPORTS[name], line, count=1)
