"""The languages of source code by name: one row each."""

from __future__ import annotations

from ...support.late_rows import LateRows
from .language import Language

LANGUAGES: LateRows[type[Language]] = LateRows(
    __package__,
    {
        "numpy": ".numpy:NumPy",
        "cupy": ".cupy:CuPy",
        "jax": ".jax:Jax",
        "torch": ".torch:Torch",
        "c": ".c:C",
        "cuda": ".cuda:Cuda",
        "julia": ".julia:Julia",
        "matlab": ".matlab:Matlab",
    },
)
