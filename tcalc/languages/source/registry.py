"""The languages of source code by name: one row each."""

from __future__ import annotations

from .language import Language
from .matlab import Matlab
from .numpy import NumPy

LANGUAGES: dict[str, type[Language]] = {
    "numpy": NumPy,
    "matlab": Matlab,
}
