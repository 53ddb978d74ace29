"""NVIDIA's run-time compiler, which needs no device: does generated CUDA compile, and to what?

It is loaded from the package nvidia-cuda-nvrtc-cu12; tests marked `needed` are skipped where that
is not installed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, files

import pytest

PACKAGE = "nvidia-cuda-nvrtc-cu12"
#: The oldest and the newest architecture that programs are promised for, as virtual ones: machine
#: code takes longer to make than the text that it is made of, and refuses nothing.
ARCHITECTURES = ("compute_70", "compute_90")


class CompileError(Exception):
    """Text that is no CUDA, with what the compiler says of it."""


def _library() -> str | None:
    """Where the compiler lies."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return None
    return next(
        (str(f.locate()) for f in listed if f.name.startswith("libnvrtc.so")),
        None,
    )


needed = pytest.mark.skipif(_library() is None, reason=f"{PACKAGE} is not installed")


@cache
def _nvrtc() -> ctypes.CDLL:
    path = _library()
    assert path is not None, f"{PACKAGE} is not installed"
    found = ctypes.CDLL(path)
    found.nvrtcGetErrorString.restype = ctypes.c_char_p
    return found


def _checked(status: int) -> None:
    if status:
        raise RuntimeError(_nvrtc().nvrtcGetErrorString(status).decode())


def _text(size: str, get: str, program: ctypes.c_void_p) -> bytes:
    """What two functions of the compiler tell: how many bytes, and these."""
    n = ctypes.c_size_t()
    _checked(getattr(_nvrtc(), size)(program, ctypes.byref(n)))
    buffer = ctypes.create_string_buffer(n.value)
    _checked(getattr(_nvrtc(), get)(program, buffer))
    return buffer.raw


def compile(
    source: str,
    name: str = "kernel.cu",
    arch: str = ARCHITECTURES[0],
    options: Sequence[str] = (),
) -> bytes:
    """PTX of a virtual architecture, machine code of a real one.

    Parameters
    ----------
    source : str
        Kernels; headers of the host are not there.
    name : str
        What the log calls the source.
    arch : str
        ``"compute_70"`` gives PTX, ``"sm_90"`` a cubin.
    options : sequence of str

    Raises
    ------
    CompileError
        The log, and the lines that it names.
    """
    nvrtc, program = _nvrtc(), ctypes.c_void_p()
    text = source.encode()
    _checked(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None))
    try:
        given = [f"--gpu-architecture={arch}".encode(), *[o.encode() for o in options]]
        array = (ctypes.c_char_p * len(given))(*given)
        if nvrtc.nvrtcCompileProgram(program, len(given), array):
            log = _text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program)
            raise CompileError(f"{name} for {arch}:\n{log.rstrip(bytes(1)).decode()}\n{source}")
        if arch.startswith("sm_"):
            return _text("nvrtcGetCUBINSize", "nvrtcGetCUBIN", program)
        return _text("nvrtcGetPTXSize", "nvrtcGetPTX", program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
