"""NumPy source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ...graph.extents import Extent, Shape
from . import correlations
from .array_operators import Template
from .in_place import InPlace
from .infix import letters
from .language import Code
from .solves import WORDS


class NumPy(InPlace):
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
    own_operators: ClassVar[Mapping[str, Template]] = {
        "logsumexp": "_logsumexp({0}, {axes})",
        "softplus": "np.logaddexp(0, {0})",
        "cholesky": "_cholesky({0})",
        "inverse_definite_of_factor": "_inverse_definite({0})",
        "logdet_definite_of_factor": "2 * np.log(np.diagonal({0})).sum()",
        "solve_definite": "_solve_definite({0}, {1})",
        "solve_lower": "_solve_lower({0}, {1}, {p[0]})",
        "solve": "np.linalg.solve({0}, {1})",
    }
    own_helpers: ClassVar[Sequence[str]] = (
        *correlations.HELPERS,
        """
def _pad(a, margins):
    found = np.zeros([n + sum(ends) for n, ends in zip(a.shape, margins)], a.dtype)
    found[tuple([slice(first, first + n) for n, (first, _) in zip(a.shape, margins)])] = a
    return found
""",
        """
def _blocks(count, width):  # of so many rows as stay in cache
    step = max(1, 2**15 // max(1, width))
    return [slice(low, low + step) for low in range(0, count, step)]
""",
        """
def _lapack(name, a):
    return getattr(linalg.lapack, ("s" if a.dtype == np.float32 else "d") + name)
""",
        """
def _cholesky(a, overwrite=False):
    if a.ndim > 2 or not a.size:
        return np.linalg.cholesky(a)
    factor, failed = _lapack("potrf", a)(a.T, lower=0, overwrite_a=overwrite)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return factor.T
""",
        """
def _inverse_definite(factor, overwrite=False):
    if not factor.size:
        return factor
    triangle, _ = _lapack("potri", factor)(factor.T, lower=0, overwrite_c=overwrite)
    inverse = triangle.T  # one triangle, and zeros
    for k in range(0, len(inverse), 64):
        inverse[k : k + 64, k + 64 :] = inverse[k + 64 :, k : k + 64].T
        corner = inverse[k : k + 64, k : k + 64]
        corner += np.tril(corner, -1).T
    return inverse
""",
        """
def _solve_definite(factor, b):
    return _lapack("potrs", factor)(factor.T, b, lower=0)[0] if b.size else b.copy()
""",
        """
def _solve_lower(a, b, transposed):
    if not b.size:
        return b.copy()
    x, failed = _lapack("trtrs", a)(a.T, b, lower=0, trans=not transposed)
    if failed:
        raise np.linalg.LinAlgError("a zero on the diagonal")
    return x
""",
        """
def _logsumexp(a, axis):
    top = a.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(a - top).sum(axis=axis, keepdims=True)) + top
    return found.squeeze(axis)
""",
    )
    words: ClassVar[Sequence[tuple[str, str]]] = [(r"\bnumpy\.", "np."), (r"\bscipy\.", "")]
    own_words = WORDS
    heads: ClassVar[Mapping[str, tuple[str, str]]] = {"dtype": ("{}.dtype", "np.float64")}

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        return Code(super().pad(c, shape, margins).text.replace("np.pad(", "_pad(", 1))

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        first = next((k for k, c in enumerate(factors) if c.overlaps), None)
        if first is None or len(factors) != 2:
            return super().einsum(factors, words, out)
        windows, other = factors[first], factors[1 - first]
        word, right = words[first], words[1 - first]
        own, summed = [k for k in word if k in out], [k for k in word if k not in out]
        left = [k for k in right if k not in word]
        if not own or not summed or not _once(word, right, left + summed):
            return super().einsum(factors, words, out)
        views = self.transpose(windows, [word.index(k) for k in own + summed])
        rights = self.transpose(other, [right.index(k) for k in left + summed])
        found = Code(f"_correlate({views.text}, {rights.text}, {len(own)})")
        return Code(self.transpose(found, [(left + own).index(k) for k in out]).text)

    def result(self, c: Code, shape: Shape) -> Code:
        made = super().result(c, shape)
        number = not shape and (c.weak or c.view)
        return Code(f"{made.text}[()]") if number else made

    def on_diagonal(self, whole: Code, word: Sequence[int]) -> str:
        names: dict[int, str] = {}
        places, kept = letters(word, names), letters(sorted(set(word)), names)
        return f"np.einsum('{places}->{kept}', {whole.text})"


def _once(word: Sequence[int], right: Sequence[int], labels: Sequence[int]) -> bool:
    """Are no labels repeated, and those of the right side just these?"""
    return len({*word}) == len(word) and sorted(right) == sorted(labels)
