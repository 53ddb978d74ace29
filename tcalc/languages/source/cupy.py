"""CuPy source: on the device, and by the host where CuPy has no such function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .array_operators import Template
from .arrays import ArrayLanguage

#: SciPy's functions that CuPy does not have.
HOST = ("iv", "ive", "jv", "kv", "spherical_jn", "stdtr", "yv")


class CuPy(ArrayLanguage):
    """CuPy source."""

    name = "CuPy"
    library = "cp"
    imports: ClassVar[Mapping[str, str]] = {
        "itertools": "import itertools",
        "math": "import math",
        "cp": "import cupy as cp",
        "cupyx": "import cupyx",
        "numpy": "import numpy",
        "scipy.linalg": "import scipy.linalg",
        "scipy.special": "import scipy.special",
        "special": "from cupyx.scipy import special",
    }
    heads: ClassVar[Mapping[str, tuple[str, str]]] = {"dtype": ("{}.dtype", "cp.float64")}
    host = "cp.asnumpy"
    words: ClassVar[Sequence[tuple[str, str]]] = [
        (r"    with np\.errstate\(all=\"ignore\"\):\n        ", "    "),
        (r"np\.add\.at\(", "cupyx.scatter_add("),
        (r"np\.linalg\.LinAlgError", "numpy.linalg.LinAlgError"),
    ]
    own_operators: ClassVar[Mapping[str, Template]] = {
        **{name: f"_by_host(scipy.special.{name}, {{operands}})" for name in HOST},
    }
    own_helpers: ClassVar[Sequence[str]] = (
        '''
def _by_host(function, *arrays):
    """A function of entries that CuPy does not have, computed by the host."""
    host = [cp.asnumpy(a) for a in arrays]
    if function is scipy.special.spherical_jn:
        host[0] = host[0].astype(int)
    return cp.asarray(function(*host), arrays[-1].dtype)
''',
        '''
def _of_matrices(name, a):
    """Functions of matrices that CuPy does not have, computed by the host."""
    host = cp.asnumpy(a).reshape(-1, *a.shape[-2:])
    found = numpy.real(numpy.array([getattr(scipy.linalg, name)(m) for m in host]))
    return cp.asarray(found.reshape(a.shape), a.dtype)
''',
    )
