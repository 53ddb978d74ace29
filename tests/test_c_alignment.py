"""Loops over few entries that are summed and stored at once: vectors on the stack are aligned."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tcalc.backends.c.compiler import MOST, QUICK
from tests.c_programs import needs_compiler

PROGRAM = """
import ctypes
import numpy as np
from tcalc.backends.c.compiler import ROUNDED, loaded

n, real, level = {n}, "{real}", "{level}"
source = '''
typedef REAL real;
__attribute__((noinline)) static void nest(real *p, real *s, real *x, real *y, real *z)
{{
    for (long i = 0; i < N; i++) for (long j = 0; j < N; j++) p[i * NL + j] = 0;
    for (long b = 0; b < 4; b++) for (long i = 0; i < N; i++) {{
        real sum = 0;
        #pragma omp simd reduction(+: sum)
        for (long j = 0; j < N; j++) {{
            sum += x[b * NL + j] * y[b * N * NL + i + j * NL];
            p[i * NL + j] += z[b * N * NL + i * NL + j];
        }}
        s[b * NL + i] = sum;
    }}
}}
void run(real *p, real *s, real *x, real *y, real *z) {{ nest(p, s, x, y, z); }}
'''.replace("NL", f"{{n}}L").replace("N", str(n)).replace("REAL", real)
library = loaded(source, ["run"], ROUNDED, level)
dtype = np.float64 if real == "double" else np.float32
rng = np.random.default_rng(0)
x, y, z = (rng.normal(size=s).astype(dtype) for s in ((4, n), (4, n, n), (4, n, n)))
p, s = np.empty((n, n), dtype), np.empty((4, n), dtype)
library.run(*[ctypes.c_void_p(a.ctypes.data) for a in (p, s, x, y, z)])
np.testing.assert_allclose(p, z.sum(0), rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(s, np.einsum("bj,bji->bi", x, y), rtol=1e-5, atol=1e-6)
"""


@needs_compiler
@pytest.mark.parametrize("level", [MOST, QUICK])
@pytest.mark.parametrize(("n", "real"), [(3, "double"), (5, "float"), (6, "float"), (7, "float")])
def test_few_entries(n: int, real: str, level: str) -> None:
    """In a process of its own, which a wrong address ends."""
    program = PROGRAM.format(n=n, real=real, level=level)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
