"""Runs of entrywise steps as one kernel, and with a sum behind them as one reduction.

An entry is spelled as backend "c" spells it. What steps of a run hand to each other is a number of
the kernel; only what others read is an array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...plan.steps import Step
from ...support.arrays import Sizes
from ...support.records import NamedTuple
from ..c.rows import ENTRY_FUNCTIONS
from ..c.spelling import entry_of
from .conditions import Conditions
from .library import CuPy
from .pieces import Layout, Values

#: Arrays and statements of one kernel, and pieces that are looked through for one to join.
MOST_ARRAYS, MOST_STEPS, REACH = 24, 200, 64
#: What entries call, as functions of the device: C++, and C for who defines the word away.
FUNCTIONS = ENTRY_FUNCTIONS.replace("static INLINED", "static inline __device__")
#: What stands before a kernel, behind CuPy's headers, which have a function called `real`; NVRTC
#: has none of C's.
PREAMBLE = """
#define real {real}
#define F(name) {function}
#ifdef __CUDACC_RTC__
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#endif
#ifndef NAN
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif
#endif
"""
REALS = {
    "d": {"real": "double", "function": "name"},
    "f": {"real": "float", "function": "name##f"},
}
#: A kernel by itself, as CuPy would write it: for compilers that only look whether it is CUDA.
ALONE = """{preamble}
extern "C" __global__ void {name}(long long n{parameters})
{{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {{
        {loads}
        {operation};
        {stores}
    }}
}}
"""


class KernelText(NamedTuple):
    """One kernel.

    Attributes
    ----------
    ins, outs : tuple of str
        Names of the arrays that it reads and writes.
    kind : str
        Their dtype.
    preamble, operation : str
        What stands before the kernel, and statements for one entry.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    kind: str
    preamble: str
    operation: str

    def parameters(self, names: Sequence[str]) -> str:
        return ", ".join([f"{self.kind} {name}" for name in names])

    def alone(self, name: str) -> str:
        """The kernel as a file of CUDA, over arrays of one shape."""
        parameters = [f", const real *p{x}" for x in self.ins]
        parameters += [f", real *p{y}" for y in self.outs]
        return ALONE.format(
            preamble=self.preamble,
            name=name,
            parameters="".join(parameters),
            loads=" ".join([f"const real {x} = p{x}[i];" for x in self.ins])
            + " ".join([f" real {y};" for y in self.outs]),
            operation=self.operation,
            stores=" ".join([f"p{y}[i] = {y};" for y in self.outs]),
        )


class FusedSteps:
    """Entrywise steps of one shape, in order."""

    def __init__(self, layout: Layout, shape: Sizes, dtype: np.dtype[Any], xp: CuPy) -> None:
        self.shape, self._layout, self._dtype, self._xp = shape, layout, dtype, xp
        self.steps: list[Step] = []
        self.stored: list[int] = []

    @property
    def step(self) -> Step:
        return self.steps[-1]

    @property
    def all_made(self) -> set[int]:
        return {step.out for step in self.steps}

    @property
    def makes(self) -> Collection[int]:
        return self.stored

    @property
    def operands(self) -> list[int]:
        """Slots that are read of what others make."""
        made = self.all_made
        return list(dict.fromkeys([a for step in self.steps for a in step.args if a not in made]))

    @cached_property
    def _read(self) -> list[Callable[[Values], Any]]:
        """What reads each of them, one of which has all axes, once all steps are there."""
        read, slots = self._layout.reader, self.operands
        found = [read(self._xp, slot) for slot in slots]
        shapes = [self._layout.plan.shapes[a] for a in slots]
        if np.broadcast_shapes(*shapes) != self.shape:
            first, to = found[0], self._xp.broadcast_to
            found[0] = lambda values: to(first(values), self.shape)
        return found

    @property
    def reads(self) -> Collection[int]:
        return {self._layout.holder(a) for a in self.operands}

    def takes(self, step: Step) -> bool:
        """Is there room for the step, whose shape is that of the others?"""
        if len(self.steps) >= MOST_STEPS:
            return False
        return len({*self.operands, *step.args, *self.all_made}) <= MOST_ARRAYS + len(self.steps)

    # --- text -------------------------------------------------------------------------------------

    def statements(self) -> str:
        """Numbers `t` of the steps, from entries `x` of the operands."""
        suffix, made = "f" if self._dtype.char == "f" else "", self.all_made
        lines = []
        for step in self.steps:
            entry = entry_of(step, suffix)
            names = [f"t{a}" if a in made else f"x{a}" for a in step.args]
            lines.append(f"const real t{step.out} = {entry.format(*names)};")
        return " ".join(lines)

    def text(self) -> KernelText:
        names = [f"y{slot}" for slot in self.stored]
        stores = "; ".join([f"{y} = t{y[1:]}" for y in names])
        return KernelText(
            tuple([f"x{a}" for a in self.operands]), tuple(names), self._dtype.name,
            PREAMBLE.format(**REALS[self._dtype.char]) + FUNCTIONS, f"{self.statements()} {stores}",
        )  # fmt: skip

    @cached_property
    def kernel(self) -> Any:
        text = self.text()
        return self._xp.ElementwiseKernel(
            text.parameters(text.ins), text.parameters(text.outs), text.operation,
            name="tcalc_entries", preamble=text.preamble, return_tuple=True,
        )  # fmt: skip

    # --- calls ------------------------------------------------------------------------------------

    def arrays(self, values: Values) -> list[Any]:
        """The operands, one of which has all axes."""
        return [read(values) for read in self._read]

    def run(self, values: Values, conditions: Conditions) -> None:
        for slot, array in zip(self.stored, self.kernel(*self.arrays(values)), strict=True):
            values[slot] = array


class FusedSum:
    """The sum of a step's operand, or of two operands' product, over axes, and what is before it.

    Parameters
    ----------
    before : FusedSteps
        The steps of which the last one's entries are summed.
    """

    def __init__(self, step: Step, before: FusedSteps, axes: tuple[int, ...]) -> None:
        self.step, self.before, self.axes = step, before, axes
        self.makes = {step.out}

    @property
    def reads(self) -> Collection[int]:
        return self.before.reads

    def text(self) -> KernelText:
        """A function of the entries in front of a reduction that calls it."""
        before = self.before
        found, last = before.text(), before.steps[-1].out
        given = ", ".join([f"real {x}" for x in found.ins])
        mapped = (
            f"static inline __device__ real _mapped({given}) "
            f"{{ {before.statements()} return t{last}; }}\n"
        )
        called = f"_mapped({', '.join(found.ins)})"
        return found._replace(
            outs=("y",), preamble=found.preamble + mapped, operation=f"y = {called}"
        )

    @cached_property
    def kernel(self) -> Any:
        text = self.text()
        return self.before._xp.ReductionKernel(
            text.parameters(text.ins), text.parameters(text.outs),
            text.operation.removeprefix("y = "), "a + b", "y = a", "0", name="tcalc_sum",
            reduce_type="double", preamble=text.preamble,
        )  # fmt: skip

    def run(self, values: Values, conditions: Conditions) -> None:
        found = self.before._xp.reduced(self.kernel, self.before.arrays(values), self.axes)
        values[self.step.out] = found
