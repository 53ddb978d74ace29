"""CUDA C source: a kernel for every run of nests that is fused, and a launcher of them.

What is computed, and how its nests are fused, is C's. A kernel runs the entries of a nest by a
loop over the grid, or its rows by blocks where sums inside are long; products are cuBLAS's,
factorisations cuSOLVER's. No two threads write to one place, and nothing is atomic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ...graph.extents import Extent
from .c import C
from .c_contractions import by_product
from .c_nests import Array, Loop, Node, atom, nest, place
from .c_orders import as_spelled, as_they_lie
from .c_values import Value
from .cuda_check import check_text
from .cuda_module import RESERVED, function_lines, module_text
from .cuda_places import segment_sum
from .cuda_products import by_batches
from .cuda_rows import ROUTINES
from .language import Check, Code, FunctionText


class Cuda(C):
    """CUDA C source, arrays row by row in the memory of the device."""

    name = "CUDA"
    reserved = RESERVED
    quick: ClassVar[Mapping[str, str]] = {}
    own_words = C.own_words - {"congruence", "lu"}
    forms = (by_product, by_batches)
    routines = ROUTINES

    # --- loops ---

    def ordered(
        self, body: str, target: str, out: Sequence[str], summed: Sequence[str],
        over: Mapping[str, str],
    ) -> list[str]:  # fmt: skip
        """Entries of the result outside: threads share them."""
        spelled = as_spelled(body, out, summed)
        return [*out, *[i for i in spelled if i not in out]] if out else spelled

    def turned(
        self, body: str, inner: str, over: Mapping[str, str], made: Mapping[str, Value]
    ) -> str:
        as_they_lie(self, made)
        return body

    def scratch(
        self, stack: Sequence[str], size: str, kind: str, index: Sequence[str]
    ) -> tuple[Array, str]:
        """Items of a stack are worked on at once: each has its own."""
        array, _ = self.storage((*stack, size), kind=kind)
        if not stack:
            return array, array.name
        return array, f"{array.name} + {atom(place(index, stack))} * {atom(size)}"

    def listed(self, kind: str, items: Sequence[str]) -> str:
        return f"Listed<{kind}>{{{{{', '.join(items)}}}}}"

    def stacked(
        self, index: Sequence[str], stack: Sequence[str], body: list[Node]
    ) -> Sequence[Node]:
        """A routine's loops stay its own: a block, or the host, may run it."""
        nodes = nest(index, stack, body)
        return [replace(n, plain=False) if isinstance(n, Loop) else n for n in nodes]

    # --- places ---

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return segment_sum(self, c, index, extent)

    # --- the module ---

    def function(self, f: FunctionText) -> list[str]:
        return function_lines(self, f)

    def module(self, functions: Sequence[list[str]]) -> str:
        self.text = module_text(functions)
        return self.text

    def check(self, check: Check) -> str:
        return check_text(self, check, self.text)
