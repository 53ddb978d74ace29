"""NumPy source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ...graph.extents import Shape
from .arrays import ArrayLanguage
from .infix import letters
from .language import Code


class NumPy(ArrayLanguage):
    """NumPy source."""

    name = "NumPy"
    library = "np"
    imports: ClassVar[Mapping[str, str]] = {
        "itertools": "import itertools",
        "math": "import math",
        "np": "import numpy as np",
        "linalg": "from scipy import linalg",
        "special": "from scipy import special",
    }
    words: ClassVar[Sequence[tuple[str, str]]] = [(r"\bnumpy\.", "np."), (r"\bscipy\.", "")]
    heads: ClassVar[Mapping[str, tuple[str, str]]] = {"dtype": ("{}.dtype", "np.float64")}

    def result(self, c: Code, shape: Shape) -> Code:
        made = super().result(c, shape)
        number = not shape and (c.weak or c.view)
        return Code(f"{made.text}[()]") if number else made

    def onto_diagonal(self, whole: Code, core: Code, word: Sequence[int]) -> None:
        names: dict[int, str] = {}
        places, kept = letters(word, names), letters(sorted(set(word)), names)
        where = f"np.einsum('{places}->{kept}', {whole.text})"
        self.scope.lines.append(f"{where}[...] = {core.text}")
