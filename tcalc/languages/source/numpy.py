"""NumPy source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ...graph.extents import Shape
from .array_operators import Template
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
    own_operators: ClassVar[Mapping[str, Template]] = {"logsumexp": "_logsumexp({0}, {axes})"}
    own_helpers: ClassVar[Sequence[str]] = (
        """
def _logsumexp(a, axis):
    top = a.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(a - top).sum(axis=axis, keepdims=True)) + top
    return found.squeeze(axis)
""",
    )
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
