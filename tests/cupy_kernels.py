"""Kernels of the stand-in for CuPy: their bodies run through the system's C compiler.

Bodies are C and CUDA C++ alike. All kernels that exist by the time that one is first called are
compiled together.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

HEAD = """
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#define __device__
typedef double float64;
typedef float float32;
typedef int int32;
typedef long long int64;
"""
ENTRYWISE = """
void {name}(long n, char **arrays) {{
    for (long i = 0; i < n; i++) {{
        {loads}
        {operation};
        {stores}
    }}
}}
"""
REDUCED = """
void {name}(long n, char **arrays, long m) {{
    for (long i = 0; i < n; i++) {{
        {kind} total = {identity};
        for (long j = 0; j < m; j++) {{
            const long k = i * m + j;
            {loads}
            const {kind} a = total, b = {mapped};
            total = {reduced};
        }}
        const {kind} a = total;
        {out};
    }}
}}
"""


KINDS = ("float64", "float32", "int64", "int32", "bool")


class Parameter(NamedTuple):
    """One of a kernel."""

    kind: str
    name: str


def parameters(text: str) -> list[Parameter]:
    found = [Parameter(*one.split()) for one in text.split(",") if one.strip()]
    assert all(p.kind in KINDS for p in found), text
    return found


class Library:
    """Functions of C by their text.

    Attributes
    ----------
    texts : list of str
        All that were compiled.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._made: dict[str, Any] = {}

    def ask(self, preamble: str, text: str) -> None:
        key = preamble + text
        if key not in self._made:
            self._waiting[key] = text

    def function(self, preamble: str, text: str) -> Any:
        key = preamble + text
        if key not in self._made:
            self._waiting[key] = text
            self._compile()
        return self._made[key]

    def _compile(self) -> None:
        waiting, self._waiting = self._waiting, {}
        with tempfile.TemporaryDirectory() as folder:
            parts: dict[str, list[tuple[str, str]]] = {}
            for number, (key, text) in enumerate(waiting.items()):
                parts.setdefault(key.removesuffix(text), []).append((key, f"f{number}"))
            names = {key: name for several in parts.values() for key, name in several}
            files = []
            for number, (preamble, several) in enumerate(parts.items()):
                body = [waiting[key].replace("FUNCTION", name) for key, name in several]
                path = Path(folder) / f"k{number}.c"
                path.write_text("\n".join([HEAD, preamble, *body]), encoding="utf-8")
                files.append(str(path))
            made = Path(folder) / "k.so"
            told = subprocess.run(
                ["cc", "-O1", "-fwrapv", "-shared", "-fPIC", "-o", str(made), *files, "-lm"],
                capture_output=True,
                text=True,
            )
            assert not told.returncode, told.stderr
            library = ctypes.CDLL(str(made))
            for key, name in names.items():
                self._made[key] = getattr(library, name)


LIBRARY = Library()


def pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


def checked(given: Sequence[Any], wanted: Sequence[Parameter]) -> list[np.ndarray]:
    """Arguments, whose dtypes must be those of the parameters."""
    assert len(given) == len(wanted)
    for a, p in zip(given, wanted, strict=True):
        assert isinstance(a, np.ndarray), "kernels take arrays of the device"
        assert a.dtype == np.dtype(p.kind), (a.dtype, p)
    return list(given)


class ElementwiseKernel:
    """As CuPy's, of parameters of stated types."""

    made: ClassVar[list[ElementwiseKernel]] = []

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str = "kernel",
        preamble: str = "", return_tuple: bool = False,
    ) -> None:  # fmt: skip
        self.ins, self.outs, self.name = parameters(in_params), parameters(out_params), name
        self.preamble, self.operation, self.tuple = preamble, operation, return_tuple
        both = list(enumerate([*self.ins, *self.outs]))
        loads = [f"const {p.kind} {p.name} = ((const {p.kind} *)arrays[{k}])[i];"
                 for k, p in both[: len(self.ins)]]  # fmt: skip
        loads += [f"{p.kind} {p.name};" for _, p in both[len(self.ins) :]]
        stores = [f"(({p.kind} *)arrays[{k}])[i] = {p.name};" for k, p in both[len(self.ins) :]]
        self.text = ENTRYWISE.format(
            name="FUNCTION", loads=" ".join(loads), operation=operation, stores=" ".join(stores)
        )
        LIBRARY.ask(preamble, self.text)
        self.made.append(self)

    def __call__(self, *args: Any) -> Any:
        given = checked(args, self.ins)
        shape = np.broadcast_shapes(*[a.shape for a in given])
        held = [np.ascontiguousarray(np.broadcast_to(a, shape)) for a in given]
        out = [np.full(shape, np.nan, p.kind) for p in self.outs]
        function = LIBRARY.function(self.preamble, self.text)
        function(ctypes.c_long(out[0].size), pointers([*held, *out]))
        return tuple(out) if self.tuple or len(out) > 1 else out[0]


class ReductionKernel:
    """As CuPy's, of one result of a stated type."""

    made: ClassVar[list[ReductionKernel]] = []

    def __init__(
        self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str,
        identity: str, name: str = "reduce_kernel", reduce_type: str | None = None,
        preamble: str = "",
    ) -> None:  # fmt: skip
        self.ins, (self.out,), self.preamble = (
            parameters(in_params),
            parameters(out_params),
            preamble,
        )
        self.name, self.map = name, map_expr
        loads = [f"const {p.kind} {p.name} = ((const {p.kind} *)arrays[{k}])[k];"
                 for k, p in enumerate(self.ins)]  # fmt: skip
        target = f"(({self.out.kind} *)arrays[{len(self.ins)}])[i]"
        assert post_map_expr.startswith(f"{self.out.name} = ")
        self.text = REDUCED.format(
            name="FUNCTION", kind=reduce_type or self.out.kind, identity=identity,
            loads=" ".join(loads), mapped=map_expr, reduced=reduce_expr,
            out=target + post_map_expr.removeprefix(self.out.name),
        )  # fmt: skip
        LIBRARY.ask(preamble, self.text)
        self.made.append(self)

    def __call__(self, *args: Any, axis: Any = None) -> Any:
        given = checked(args, self.ins)
        shape = np.broadcast_shapes(*[a.shape for a in given])
        axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = sorted([k % len(shape) for k in axes])
        kept = [k for k in range(len(shape)) if k not in axes]
        held = [
            np.ascontiguousarray(np.broadcast_to(a, shape).transpose([*kept, *axes])) for a in given
        ]
        out = np.full([shape[k] for k in kept], np.nan, self.out.kind)
        count = int(np.prod([shape[k] for k in axes], dtype=int))
        function: Callable[..., Any] = LIBRARY.function(self.preamble, self.text)
        function(ctypes.c_long(out.size), pointers([*held, out]), ctypes.c_long(count))
        return out
