"""The languages of source code by name: one row each."""

from __future__ import annotations

from .c import C
from .cuda import Cuda
from .cupy import CuPy
from .jax import Jax
from .julia import Julia
from .language import Language
from .matlab import Matlab
from .numpy import NumPy
from .torch import Torch

LANGUAGES: dict[str, type[Language]] = {
    "numpy": NumPy,
    "cupy": CuPy,
    "jax": Jax,
    "torch": Torch,
    "c": C,
    "cuda": Cuda,
    "julia": Julia,
    "matlab": Matlab,
}
