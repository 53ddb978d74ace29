"""C for whole matrices: a library for each precision, on the BLAS that SciPy brings.

It is compiled by itself, once for all functions that are generated later; these are given the
addresses of what they call.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from functools import cache
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import finalize

import numpy as np

from ...support.blas import OF_NUMPY, OF_SCIPY, one_thread
from ...support.c_text import SHARED, routines
from ...support.lapack import addresses
from .cache import closed
from .compiler import CONTRACTED, MOST, QUICK, loaded
from .outlining import outlined
from .pool import given
from .powers import FUNCTIONS as POWERS
from .rows import ENTRY_FUNCTIONS, REDUCTION_FUNCTIONS, RENAMED, VECTORS
from .sharing import NAME

#: Parts of one text, of which later ones use earlier ones.
C_SOURCES = (
    "blas.c", "pieces.c", "vectors.c", "products.c", "together.c", "triangles.c", "parted.c",
    "definite.c", "congruences.c", "halves.c", "grams.c", "factors.c", "lu.c", "general.c",
    "matrix_exponentials.c", "special.c", "distances.c", "crossed.c", "correlations.c", "columns.c",
)  # fmt: skip
#: What entries of doubles are made of, where a product and a sum are one instruction.
_EXPONENTIALS = f"""
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define EXPONENTIALS
{routines("exponentials.c")}
#endif
"""
#: What Python asks of the routines.
ROUTINES = (
    "tcalc_give", "tcalc_give_lapack", "tcalc_give_pool", "tcalc_try", "tcalc_routines",
)  # fmt: skip
#: Functions of BLAS and of LAPACK in the order in which the routines take them.
BLAS = ("gemm", "gemv", "syrk")
LAPACK = ("geqrf", "orgqr", "syevd", "getrf", "getrs", "getri", "gesdd")
#: Rows of square products that are measured, and how many more multiplications behave alike.
TRIED, BEYOND = (160, 480), 10.0

#: Characters from which on a program is compiled quickly.
LONG = 60_000

_LOCK = threading.Lock()

_PRELUDE = """
/* Registers of MMX, which GCC may pass numbers through where there is no AVX, are those of long
   double: the next of these in the process would be nan. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("no-mmx")
#endif
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef {real} real;
typedef double wide;
typedef {same} same;
/* Bytes of a vector: compilers keep wider ones than the processor's in memory. */
#if defined(__AVX512F__)
#define WIDTH 64
#define EACH(word, given) {each[64]}
#elif defined(__AVX__)
#define WIDTH 32
#define EACH(word, given) {each[32]}
#else
#define WIDTH 16
#define EACH(word, given) {each[16]}
#endif
typedef int (*Body)(char **, long, long);
#define INLINED inline __attribute__((always_inline))
#define F(name) {function}
"""
_VECTORS = """
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((simd("notinbranch")))
/* Functions of vectors take as long for all lanes as for half of them, which compilers prefer. */
#if defined(__AVX512DQ__)
#pragma GCC target("prefer-vector-width=512")
#endif
{vectors}
#if __GLIBC_PREREQ(2, 35)
{later}
#endif
{renamed}
#endif
"""
_RENAMED = """VECTOR __attribute__((const)) real {name}(real) __asm__("{symbol}");
#define {symbol} {name}"""


@cache
def prelude(char: str) -> str:
    """Types, for a dtype of NumPy by its character."""
    real, function = ("float", "name##f") if char == "f" else ("double", "name")
    each = {
        width: ", ".join(f"word({lane}, given)" for lane in range(width // np.dtype(char).itemsize))
        for width in (16, 32, 64)
    }
    same = "int" if char == "f" else "long long"
    return _PRELUDE.format(real=real, function=function, same=same, each=each)


@cache
def _source() -> str:
    return "\n".join(map(_text, C_SOURCES))


def _text(name: str) -> str:
    if name in SHARED:
        return routines(name)
    return (Path(__file__).with_name("routines") / name).read_text(encoding="utf-8")


def _names() -> list[str]:
    """The routines in the order of their table."""
    _, _, table = _source().partition("tcalc_routines[] = {")
    return re.findall(r"\w+", table)


@cache
def heading(char: str) -> str:
    """What stands before every generated function."""
    defined = re.findall(r"^static (\w+) (\w+)(\([^)]*\))\n{", _source(), re.MULTILINE)
    heads = {name: (kind, given) for kind, name, given in defined}
    declared, taken = [], []
    for k, name in enumerate(_names()):
        kind, given = heads[name]
        declared.append(f"static {kind} (*{name}){given};")
        taken.append(f"    memcpy(&{name}, found + {k}, sizeof {name});")
    declared.append("static long (*spread)(Body, char **, long, long, int);")
    taken.append("    memcpy(&spread, &threads, sizeof spread);")
    bind = ["void tcalc_bind(void **found, void *threads)", "{", *taken, "}\n"]
    vectors = [
        "\n".join([
            *[f"VECTOR real F({name})(real);" for name in single],
            *[f"VECTOR real F({name})(real, real);" for name in pairs],
        ])
        for single, pairs in VECTORS
    ]  # fmt: skip
    suffix = "f" if char == "f" else ""
    renamed = [_RENAMED.format(name=name, symbol=f + suffix) for f, name in RENAMED.items()]
    vectored = _VECTORS.format(vectors=vectors[0], later=vectors[1], renamed="\n".join(renamed))
    entries = (_EXPONENTIALS if char == "d" else "") + ENTRY_FUNCTIONS
    written = prelude(char) + vectored + entries + REDUCTION_FUNCTIONS + POWERS
    return written + "\n".join([*declared, *bind])


def functions(texts: Sequence[str], char: str, pointers: int) -> list[Any]:
    """Functions ``int (int, ...)`` of generated C, all as one library.

    Parameters
    ----------
    texts : sequence of str
        Their parameters and bodies, behind the name that stands for theirs; and before it the
        functions that threads share.
    char : str
        The dtype, as NumPy's character.
    pointers : int
        How many each takes besides.
    """
    if not texts:
        return []
    names = [f"run{k}" for k in range(len(texts))]
    whole = [text.replace(NAME, name) for name, text in zip(names, texts, strict=True)]
    program = heading(char) + outlined("\n".join(whole))
    level = QUICK if len(program) > LONG else MOST
    library = loaded(program, ("tcalc_bind", *names), level=level)
    # What nobody calls any more is closed, as a process can only hold so many libraries.
    finalize(library, closed, library._handle).atexit = False
    with _LOCK:
        routines = _routines(char)
    library.tcalc_bind.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.tcalc_bind(routines, given()[0])
    found = [library[name] for name in names]
    for run in found:
        run.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * pointers]
        run.restype = ctypes.c_int
    return found


@cache
def _routines(char: str) -> Any:
    """Addresses of the routines, which have been told what they need."""
    library = loaded(prelude(char) + _source(), ROUTINES, CONTRACTED)
    blas, lapack, pool = [
        (ctypes.c_void_p * len(found))(*found) for found in (*_scipys(char), given())
    ]
    library.tcalc_give_pool.argtypes = [ctypes.c_void_p]
    library.tcalc_give_pool(pool)
    library.tcalc_give_lapack.argtypes = [ctypes.c_void_p]
    library.tcalc_give_lapack(lapack)
    library.tcalc_give.argtypes = [ctypes.c_void_p, ctypes.c_double]
    library.tcalc_give(blas, 0.0)
    with one_thread(OF_NUMPY, OF_SCIPY):
        until = _pieces_until(library, char)
    library.tcalc_give(blas, until)
    return (ctypes.c_void_p * len(_names())).in_dll(library, "tcalc_routines")


def _pieces_until(library: ctypes.CDLL, char: str) -> float:
    """Multiplications up to which this machine's BLAS is slower than a product by small pieces."""
    library.tcalc_try.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_long, ctypes.c_int]
    rows = 1
    for n in TRIED:
        arrays = np.ones((3, n, n), char)
        places = [a.ctypes.data for a in arrays]
        times = [inf, inf]
        for kind in (0, 1) * 4:
            start = perf_counter()
            library.tcalc_try(*places, n, kind)
            times[kind] = min(times[kind], perf_counter() - start)
        if times[1] > times[0]:
            break
        rows = n
    return BEYOND * rows**3


def _scipys(char: str) -> tuple[list[int], list[int]]:
    """Addresses of the functions of BLAS and of LAPACK that SciPy brings."""
    precision = "s" if char == "f" else "d"
    return (
        addresses("blas", [precision + name for name in BLAS]),
        addresses("lapack", [precision + name for name in LAPACK]),
    )
