"""The self-check of a CUDA program: C's, in memory that host and device share."""

from __future__ import annotations

import re

from .c_check import check_text as of_c
from .c_writer import Writer
from .cuda_module import functions
from .language import Check

_MANAGED = """
static void *managed(size_t size)
{
    void *found = 0;
    return cudaMallocManaged(&found, size) == cudaSuccess ? found : 0;
}
""".strip()
#: What a launcher may be given, and what makes it.
_HANDLES = {
    "stream": ["cudaStream_t stream = 0;"],
    "blas": ["cublasHandle_t blas;", "cublasCreate(&blas);"],
    "solver": ["cusolverDnHandle_t solver;", "cusolverDnCreate(&solver);"],
}


def check_text(language: Writer, check: Check, source: str) -> str:
    """A program's end."""
    text = of_c(language, check, source, functions()).replace("malloc(", "managed(")
    head, main = text.split("int main(void)\n{\n")
    data = re.compile(r"^ *static (\w+ \w+\[.*\];)\n", re.MULTILINE)
    arrays = [f"static __managed__ {found}" for found in data.findall(main)]
    names = re.findall(r"^int (\w+)\(", source, re.MULTILINE)
    waits = re.compile(rf"if \(((?:{'|'.join(names)})\(.*\))\)$", re.MULTILINE)
    main = waits.sub(r"if (\1 || cudaDeviceSynchronize())", data.sub("", main))
    used = [
        line
        for name, lines in _HANDLES.items()
        if re.search(rf"\b{name}\b", main)
        for line in lines
    ]
    start = "\n".join([*arrays, "", "int main(void)", "{", *[f"    {line}" for line in used], ""])
    return f"\n#ifndef __CUDACC_RTC__\n{head}{_MANAGED}\n\n{start}{main}\n#endif\n"
