"""A file of CUDA: declarations, functions of the device, kernels, and the host's launchers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from .c_header import declared_lines
from .c_module import (
    Prepared,
    called,
    comment,
    headed,
    loaded,
    parameter,
    prepared,
    routines,
    storage_text,
)
from .c_nests import Array
from .c_words import KEYWORDS
from .c_words import LIBRARY as C_LIBRARY
from .c_writer import Writer
from .cuda_kernels import named
from .cuda_launches import Launches
from .cuda_rows import BLOCKWISE, LIBRARY
from .language import FunctionText

#: Files of `routines/cuda/`: before C's routines, in place of some of them, and behind them. One
#: thread has little memory, and little room for recursion.
FIRST = ("cuda/complex.cu", "cuda/block.cu")
INSTEAD = ("cuda/thread.cu",)
LAST = ("cuda/library.cu",)
#: Functions that CUDA has too, where a file may not have others of their names.
OWN = frozenset(["erfinv", "erfcinv"])
WORDS = frozenset([
    "alignas", "and", "auto", "bitand", "bitor", "catch", "class", "compl", "concept",
    "const_cast", "constexpr", "decltype", "delete", "dynamic_cast", "explicit", "export",
    "friend", "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or",
    "private", "protected", "public", "reinterpret_cast", "requires", "static_cast",
    "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t",
    "xor", "and_eq", "or_eq", "xor_eq", "not_eq", "std", "threadIdx", "blockIdx", "blockDim",
    "gridDim", "warpSize", "dim3", "rsqrt", "norm", "min", "max", "sinpi", "cospi", "rhypot",
    "normcdf", "normcdfinv", "erfcx", "erfinv", "erfcinv", "j0", "j1", "jn", "y0", "y1", "yn",
    "exp10", "assert", "clock64", "saturate", "signbit", "rnorm", "real", "work", "stream",
    "blas", "solver", "on", "sums", "failed", "space", "entry", "row", "blocks", "number_at",
    "finished", "Device", "Complex", "FUNCTION", "THREADS", "BLOCKS", "LAUNCH", "GRID_STRIDE",
    "BLOCK_STRIDE", "THREAD_STRIDE", "SINGLE", "REAL", "REAL_EPSILON", "COMPLEX",
])  # fmt: skip


def device_text(text: str) -> str:
    """A routine of C as a function of the device and of the host."""
    text = re.sub(
        r"^static (?:inline )?(?!(?:inline )?const\b)", "FUNCTION ", text, flags=re.MULTILINE
    )
    text = re.sub(r"\b(double|float) complex\b", r"Complex<\1>", text)
    text = re.sub(r"\bI\b(?=\)| )", "Complex<double>(0, 1)", text) if "Complex<" in text else text
    return re.sub(r"^#pragma.*\n", "", text, flags=re.MULTILINE)


@cache
def functions() -> dict[str, str]:
    """The functions that programs carry along, by name, in an order in which they can stand."""
    of_threads = {name: device_text(text) for name, text in routines().items()}
    del of_threads["REAL_EPSILON"]  # its files of the host have no place here
    for name in OWN & of_threads.keys():
        of_threads[name] = f"#define {name} carried_{name}\n{of_threads[name]}"
    return {**loaded(FIRST), **of_threads, **loaded(INSTEAD), **loaded(LAST)}


RESERVED = WORDS.union(KEYWORDS, C_LIBRARY, LIBRARY, BLOCKWISE, routines(), loaded((*FIRST, *LAST)))

_HEAD = """
/* nvcc -O3; kernels alone are read by NVRTC too. The last ones add up in an order that only extents
   decide: results are the same bits every time. */
""".strip()
_TYPES = """
#ifdef __CUDACC_RTC__
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#else
{includes}
#endif

#ifndef REAL
#define REAL
#ifdef SINGLE /* the same in single precision */
typedef float real;
#else
typedef double real;
#endif
#endif
""".strip()
_MACROS = """
#ifndef THREADS /* of a block: a power of two */
#define THREADS 256
#endif
#ifndef BLOCKS /* at most */
#define BLOCKS 1024
#endif
#ifdef SINGLE
#define REAL_EPSILON 1.1920928955078125e-7f
#else
#define REAL_EPSILON 2.220446049250313e-16
#endif
#define FUNCTION static inline __host__ __device__
/* Turns of a loop, shared by all threads; by blocks; by the threads of a block. */
#define GRID_STRIDE(i, n) \\
    for (ptrdiff_t i = (ptrdiff_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \\
         i += (ptrdiff_t)gridDim.x * blockDim.x)
#define BLOCK_STRIDE(i, n) for (ptrdiff_t i = blockIdx.x; i < (n); i += gridDim.x)
#define THREAD_STRIDE(i, n) for (ptrdiff_t i = threadIdx.x; i < (n); i += blockDim.x)
""".strip()
_HOST = """
#ifndef LAUNCH
#define LAUNCH(kernel, blocks, threads, stream, ...) \\
    kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#endif

/* How many blocks share so many turns, each of which takes so many. */
static inline int blocks(ptrdiff_t count, ptrdiff_t each)
{
    const ptrdiff_t found = (count + each - 1) / each;
    return (int)(found < 1 ? 1 : found < BLOCKS ? found : BLOCKS);
}
""".strip()
_READ = """
/* A number of the device: the host waits for it. */
template <typename T> static T number_at(cudaStream_t stream, const T *number)
{
    T found = 0;
    cudaMemcpyAsync(&found, number, sizeof(T), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return found;
}
""".strip()
_FINISHED = """
/* 0; 1 where a matrix was refused, which the host waits for; 2 where CUDA failed. */
static inline int finished(cudaStream_t stream, const int *failed)
{
    int found = 0;
    if (cudaMemcpyAsync(&found, failed, sizeof(int), cudaMemcpyDeviceToHost, stream) != cudaSuccess)
        return 2;
    return cudaStreamSynchronize(stream) == cudaSuccess ? found : 2;
}
""".strip()
#: Functions of libraries, by what they are called in files of `routines/`: in single and double.
_NAMES = {
    "CUBLAS_GEMM": "cublas{}gemm", "CUBLAS_GEMM_STACK": "cublas{}gemmStridedBatched",
    "CUBLAS_TRSM": "cublas{}trsm",
    **{f"CUSOLVER_{name}{size and '_SIZE'}": f"cusolverDn{{}}{name.lower()}{size}"
       for name in ("POTRF", "GETRF", "GETRS", "SYEVD", "GESVD", "GEQRF", "ORGQR")
       for size in ("", "_bufferSize") if (name, size) != ("GETRS", "_bufferSize")},
}  # fmt: skip


def library_names(text: str) -> str:
    """Definitions of the names of libraries' functions that stand in a text."""
    used = {name: shown for name, shown in _NAMES.items() if re.search(rf"\b{name}\b", text)}
    if not used:
        return ""
    lines = ["#ifdef SINGLE", *[f"#define {name} {s.format('S')}" for name, s in used.items()]]
    lines += ["#else", *[f"#define {name} {s.format('D')}" for name, s in used.items()], "#endif"]
    return "\n".join(lines)


def function_lines(language: Writer, f: FunctionText) -> list[str]:
    """The kernels of a function, what tells its workspace, and its launcher."""
    p = prepared(language, f, alone=False)
    known = {n: _kind(parameter(n, v)) for n, v in f.parameters.items()}
    known |= dict.fromkeys(p.sizes, "ptrdiff_t") | dict.fromkeys(p.outputs, "real *")
    known |= {a.name: f"{a.kind} *" for a in p.stored}
    launches = Launches(f.name, known, language.lengths, language.scope.fresh)
    body = launches.written(p.nodes)
    words = named(body)
    blas = bool(re.search(r"CUBLAS_", _carried(body)))
    solver = bool(re.search(r"CUSOLVER_", _carried(body)))
    handles = [f"cublasHandle_t {n}" for n in ("blas",) if blas]
    handles += [f"cusolverDnHandle_t {n}" for n in ("solver",) if solver]
    stored = [*p.stored, *launches.copied]
    stored = [a for a in stored if a.name not in launches.tables or a in launches.copied]
    stored += [Array(n, ("1",), kind) for n, kind in launches.numbers.items() if n not in p.outputs]
    if launches.sums:
        stored.append(Array("sums", (str(launches.sums), "BLOCKS"), "ptrdiff_t"))
    noted = launches.fails or solver
    if noted:
        stored.append(Array("flags", ("1",), "ptrdiff_t"))
    if launches.spaces:
        stored.append(Array("space", (_largest(launches.spaces),), "real"))
    storage, total = storage_text(stored)
    extents = [f"ptrdiff_t {n}" for n in p.sizes]
    asked = [*extents, *[h for h in handles if h.endswith("solver")]]
    head = [_plain(parameter(n, v)) for n, v in f.parameters.items()] + extents
    head += [f"real *{out}" for out in p.outputs] + ["void *work", "cudaStream_t stream", *handles]
    start = ["int *failed = (int *)flags;"] if noted else []
    start += ["cudaMemsetAsync(failed, 0, sizeof *flags, stream);"] if noted else []
    start += ["cublasSetStream(blas, stream);"] if blas else []
    start += ["cusolverDnSetStream(solver, stream);"] if solver else []
    if "on" in words:
        given = ["blas" if blas else "0", "solver" if solver else "0", "failed" if noted else "0"]
        given.append("space" if launches.spaces else "0")
        start.append(f"const Device on = {{stream, {', '.join(given)}}};")
    end = "finished(stream, failed)" if noted else "cudaGetLastError() == cudaSuccess ? 0 : 2"
    mentioned = named([*storage, *start, *body])
    unused = sorted({*f.parameters, *p.sizes, "work"} - mentioned)
    return [
        *[device_text(line) for inner in language.scope.functions for line in [*inner, ""]],
        *[line for n, t in launches.tables.items() if t for line in [t, ""]],
        *[line for kernel in launches.kernels for line in [*kernel, ""]],
        "#ifndef __CUDACC_RTC__",
        "",
        *comment([p.effect(language.scope.refused, "2 where CUDA failed"), *p.about, _work(p)]),
        *headed(f"size_t {f.name}_workspace", asked or ["void"]),
        "{",
        *[f"    (void){n.split()[-1]};" for n in asked if n.split()[-1] not in named([total])],
        f"    return {total};",
        "}",
        "",
        *headed(f"int {f.name}", head),
        "{",
        *[f"    {_cast(line)}" for line in storage],
        *[f"    (void){n};" for n in unused],
        *[f"    {line}" for line in [*language.scope.refused, *start, *body]],
        f"    return {end};",
        "}",
        "",
        "#endif",
    ]


def _cast(line: str) -> str:
    """A pointer into the workspace as C++ wants it."""
    return re.sub(r"^(\w+ \*)(\w+) = work;", r"\1\2 = (\1)work;", line)


def _work(p: Prepared) -> str:
    return f"Arrays of the device; work: {p.f.name}_workspace bytes of it."


def _carried(body: Sequence[str]) -> str:
    return "\n".join(called(body, functions()))


def _largest(sizes: Sequence[str]) -> str:
    found, *others = dict.fromkeys(sizes)
    for size in others:
        found = f"index_max({found}, {size})"
    return found


def _plain(text: str) -> str:
    return text.replace("*restrict ", "*")


def _kind(text: str) -> str:
    """The type in a declaration of a parameter."""
    head = _plain(text).rpartition(" ")[0]
    return f"{head} *" if "*" in text else head


def module_text(functions_: Sequence[list[str]]) -> str:
    """The file."""
    bodies = ["\n".join(lines) for lines in functions_]
    carried = called(bodies, functions())
    device = [text for text in carried if not _of_host(text)]
    host = [text for text in carried if _of_host(text)]
    whole = "\n".join([*host, *bodies])
    includes = ["#include <cuda_runtime.h>", "#include <math.h>", "#include <string.h>"]
    includes += ["#include <cublas_v2.h>"] if "cublasHandle_t" in whole else []
    includes += ["#include <cusolverDn.h>"] if "cusolverDnHandle_t" in whole else []
    parts = [_HEAD, _TYPES.format(includes="\n".join(sorted(includes)))]
    heads = [declared_lines(lines) for lines in functions_]
    declared = "\n".join(["#ifndef __CUDACC_RTC__", 'extern "C" {', *heads, "}", "#endif"])
    names = library_names(whole)
    device_names = [n for n in [names, _device(whole)] if n]
    top = [_HOST, *[t for t in (_READ, _FINISHED) if _name(t) in whole], *device_names, *host]
    parts += [declared, _MACROS, *device]
    parts += ["#ifndef __CUDACC_RTC__", *top, "#endif", *bodies]
    return "\n\n".join(parts) + "\n"


def _name(text: str) -> str:
    found = re.search(r"(\w+)\(cudaStream_t", text)
    assert found is not None
    return found.group(1)


def _of_host(text: str) -> bool:
    return bool(re.search(r"^static (?:int|size_t) ", text, re.MULTILINE))


def _device(text: str) -> str:
    """What functions of libraries are handed."""
    if "Device on" not in text:
        return ""
    blas = "cublasHandle_t" if "cublasHandle_t" in text else "void *"
    solver = "cusolverDnHandle_t" if "cusolverDnHandle_t" in text else "void *"
    fields = ["cudaStream_t stream;", f"{blas} blas;", f"{solver} solver;", "int *failed;",
              "real *space;"]  # fmt: skip
    return "\n".join(["struct Device {", *[f"    {line}" for line in fields], "};"])
