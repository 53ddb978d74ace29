"""The compiler of CUDA that other tests ask: it gives code, and its log where there is none."""

from __future__ import annotations

import pytest

from tests import nvrtc

pytestmark = nvrtc.needed

SOURCE = """
extern "C" __global__ void twice(long long n, const double *x, double *out)
{
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 2 * x[i] + lgamma(x[i]);
}
"""


@pytest.mark.parametrize("arch", [*nvrtc.ARCHITECTURES, "sm_90"])
def test_a_kernel_compiles(arch: str) -> None:
    found = nvrtc.compile(SOURCE, arch=arch)
    assert b"twice" in found
    assert found.startswith(b"\x7fELF") == arch.startswith("sm_")
    assert (b".target sm_70" in found) == (arch == "compute_70")


@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [("2 * x[i]", "2 * y[i]", '"y" is undefined'), ("lgamma", "lgamma_of", "lgamma_of")],
)
def test_an_error_is_the_log(right: str, wrong: str, said: str, arch: str) -> None:
    with pytest.raises(nvrtc.CompileError, match=rf"wrong\.cu\(5\): error.*{said}"):
        nvrtc.compile(SOURCE.replace(right, wrong), "wrong.cu", arch)
