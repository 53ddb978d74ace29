"""Printed C as functions of arrays: built as users build it, on the BLAS that plans multiply by."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from . import nests

#: The flags that a printed program and the documentation name, for a library.
FLAGS = (
    "-std=c99", "-O3", "-march=native", "-fno-math-errno", "-fopenmp-simd", "-shared", "-fPIC",
)  # fmt: skip
NUMBERS = """
enum { CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans = 112, CblasUpper = 121,
       CblasLower = 122 };
"""
#: What programs call of CBLAS, in one precision, and what is tried to find one.
PROTOTYPES = """
#define cblas_{p}dot scipy_cblas_{p}dot
#define cblas_{p}gemm scipy_cblas_{p}gemm
#define cblas_{p}syrk scipy_cblas_{p}syrk
{real} cblas_{p}dot(int, const void *, int, const void *, int);
void cblas_{p}gemm(int, int, int, int, int, int, {real}, const void *, int, const void *, int,
                   {real}, void *, int);
void cblas_{p}syrk(int, int, int, int, int, {real}, const void *, int, {real}, void *, int);
"""


def scipy_cblas(folder: Path) -> list[str]:
    """Flags for the BLAS that SciPy brings, whose names have a prefix, and a header for it.

    No flags where SciPy has no library with CBLAS beside it.
    """
    libraries = sorted(Path(scipy.__file__).parent.parent.glob("scipy.libs/libscipy_openblas*"))
    if not libraries:
        return []
    kinds = [PROTOTYPES.format(p=p, real=real) for p, real in (("d", "double"), ("s", "float"))]
    (folder / "cblas.h").write_text("".join([NUMBERS, *kinds]), encoding="utf-8")
    return [f"-I{folder}", str(libraries[0]), f"-Wl,-rpath,{libraries[0].parent}"]


def declared(source: str, name: str) -> list[str]:
    """The parameters of a function."""
    found = re.search(rf"^int {name}\(([^)]*)\);", source, re.MULTILINE)
    assert found is not None
    plain = found.group(1).replace("*restrict", "*").replace("*", "* ")
    return [" ".join(p.split()) for p in plain.split(",")]


def address(array: Any) -> ctypes.c_void_p:
    """Of NumPy's arrays, or of CuPy's."""
    return ctypes.c_void_p(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def arguments(
    parameters: Iterable[str],
    arrays: Mapping[str, Any],
    sizes: Mapping[str, int],
    results: Iterable[Any],
    real: Any = np.float64,
    place: Callable[[np.ndarray], Any] = np.asarray,
) -> tuple[list[Any], list[Any], list[Any]]:
    """What a function is called with before its workspace, the sizes in it, and what must live.

    Results lie already where `place` brings arguments.
    """
    waiting, given, extents, kept = iter(results), list[Any](), list[Any](), list[Any]()
    number = ctypes.c_double if real is np.float64 else ctypes.c_float
    for p in parameters:
        word = p.split()[-1]
        if p.startswith("const"):
            kind = np.int64 if "ptrdiff_t" in p else real
            kept.append(place(np.ascontiguousarray(arrays[word], kind)))
            given.append(address(kept[-1]))
        elif p.startswith("real *"):
            given.append(address(next(waiting)))
        elif p.startswith("real"):
            given.append(number(float(arrays[word])))
        elif p.startswith("ptrdiff_t"):
            size = word not in arrays
            given.append(ctypes.c_ssize_t(int(sizes[word] if size else arrays[word])))
            extents += [given[-1]] if size else []
    return given, extents, kept


@dataclass
class CProgram:
    """A function of C with its data; a call computes the results, the same arrays every time.

    Attributes
    ----------
    function : callable
    given : list
        What it is called with.
    results : list of array
    kept : list of array
        What pointers among `given` point to.
    """

    source: str
    function: Any
    given: list[Any]
    results: list[np.ndarray]
    kept: list[np.ndarray]

    @classmethod
    def of(
        cls, source: str, arrays: Mapping[str, Any], sizes: Mapping[str, int], like: Any
    ) -> CProgram:
        """A source, compiled; results are arrays as the nest `like` has them."""
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "f.c")
            path.write_text(source, encoding="utf-8")
            blas = scipy_cblas(Path(place))
            line = [os.environ.get("CC", "cc"), *FLAGS, *(["-DCBLAS"] if blas else []), str(path)]
            subprocess.run([*line, "-o", str(path.with_suffix(".so")), *blas, "-lm"], check=True)
            library = ctypes.CDLL(str(path.with_suffix(".so")))
        results = [np.empty(np.shape(leaf)) for leaf in nests.leaves(like)]
        given, extents, kept = arguments(declared(source, "f"), arrays, sizes, results)
        library.f_workspace.restype = ctypes.c_size_t
        work = np.empty(library.f_workspace(*extents) + 1, np.uint8)
        given.append(address(work))
        return cls(source, library.f, given, results, [*kept, work])

    def __call__(self) -> tuple[np.ndarray, ...]:
        if self.function(*self.given):
            raise ArithmeticError("a factorisation failed")
        return tuple(self.results)

    @property
    def held(self) -> int:
        """Bytes of the results and the workspace."""
        return sum([array.nbytes for array in (*self.results, self.kept[-1])])
