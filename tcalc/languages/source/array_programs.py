"""Python programs over an array module: their words, their functions, and what they import.

A language says which of NumPy's words it has otherwise: rewritings of the texts that all share, and
operators, helpers and methods of its own.
"""

from __future__ import annotations

import builtins
import keyword
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...graph.extents import Shape
from .array_helpers import DIFFERENCES, FLOATS, SHAPES, SOURCES
from .array_operators import Template
from .carried import carried
from .language import NUMBERS, Check, Code, FunctionText, Sample
from .scope import FunctionScope


class ArrayPrograms:
    """What programs over an array module are made of.

    Attributes
    ----------
    library : str
        The name of the array library in programs.
    imports : mapping
        What programs import where they use it, by name.
    words : sequence of (pattern, replacement)
        Rewritings of texts in NumPy's words, in this order; then ``np`` is the library.
    own_operators : mapping
        Templates of operators that the language has otherwise.
    own_helpers : sequence of str
        Helpers that the language has otherwise.
    floats : str
        The function that makes arrays of one dtype of all that programs are given.
    heads : mapping
        Names that bodies read: their text by an array, and without one.
    note : str
        What users must know, for the docstring of a function.
    setting : sequence of str
        What a self-check sets first.
    host : str
        How a self-check brings an array to NumPy.
    views : bool
        Do slices and transposes share memory?
    axis, array_of, as_array, cast, permute : str
        The words for an axis, for arrays of lists and of anything, and for two methods.
    places : str
        What follows the extent where all places along an axis are made.
    """

    name: str
    library: str
    imports: ClassVar[Mapping[str, str]]
    words: ClassVar[Sequence[tuple[str, str]]] = ()
    own_operators: ClassVar[Mapping[str, Template]] = {}
    own_helpers: ClassVar[Sequence[str]] = ()
    floats = FLOATS
    heads: ClassVar[Mapping[str, tuple[str, str]]]
    note = ""
    setting: ClassVar[Sequence[str]] = ()
    host = "np.asarray"
    views = True
    places = ""
    axis, array_of, as_array, cast, permute = "axis", "array", "asarray", "astype", "transpose"

    own_words: frozenset[str] = frozenset()
    reserved: frozenset[str]
    helpers: Mapping[str, str]
    start = ""
    width = 68

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "name"):
            return
        texts = [*[cls.spelled(text) for text in SOURCES], *cls.own_helpers]
        cls.helpers = {text.split("(")[0].removeprefix("\ndef "): text.strip() for text in texts}
        taken = {*[name.split(".")[0] for name in cls.imports], *cls.heads, *cls.helpers}
        cls.reserved = frozenset(taken | {"floats", "_check", *dir(builtins), *keyword.kwlist})

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.dtype = f"{self.library}.int64" if integers else "dtype"

    @classmethod
    def spelled(cls, text: str) -> str:
        """A text in NumPy's words in those of this language."""
        for pattern, replacement in cls.words:
            text = re.sub(pattern, replacement, text)
        return re.sub(r"(?<![\w.])np\.", f"{cls.library}.", text)

    def kind(self, dtype: str) -> str:
        """The last arguments of a function that makes an array of this dtype."""
        return dtype

    # --- results ---

    def result(self, c: Code, shape: Shape) -> Code:
        if c.weak:
            return Code(f"{self.library}.{self.array_of}({c.text}, {self.kind(self.dtype)})")
        return Code(self.copied(c)) if c.view and self.views else c

    def copied(self, c: Code) -> str:
        """A text that makes a copy."""
        return f"{self.library}.{self.array_of}({c.text})"

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(tuple_of([c.text for c in items]))

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        shown = [self.number(k).text if isinstance(k, float) else repr(k) for k, _ in items]
        pairs = [f"{key}: {c.text}" for key, (_, c) in zip(shown, items, strict=True)]
        return Code("{" + ", ".join(pairs) + "}")

    @abstractmethod
    def number(self, value: float) -> Code:
        """A number."""

    # --- functions ---

    def function(self, f: FunctionText) -> list[str]:
        integers = [p for p, v in f.parameters.items() if v.integral]
        arrays = [p for p in f.parameters if p not in integers]
        body = _body(f, self.scope.refused)
        lines = _described(f, self.note)
        lines += [self.given(arrays, body)] if arrays else []
        lines += [f"{p} = {self.library}.{self.as_array}({p})" for p in integers]
        for name, (of_array, alone) in self.heads.items():
            if any(re.search(rf"(?<!\.)\b{name}\b(?!=)", line) for line in body):
                first = [*arrays, *integers][:1] if name != "dtype" else arrays[:1]
                lines.append(f"{name} = {of_array.format(*first) if first else alone}")
        return _defined(f, [*lines, *body])

    def given(self, arrays: Sequence[str], body: Sequence[str]) -> str:
        """The statement that makes all arrays of one dtype."""
        return f"{', '.join(arrays)} = floats({', '.join(arrays)})"

    def nested(self, f: FunctionText) -> list[str]:
        return _defined(f._replace(free=()), _body(f))

    def module(self, functions: Sequence[list[str]]) -> str:
        """The program: these functions, and all that they need."""
        texts = ["\n".join(lines) for lines in functions]
        text = "\n\n\n".join([self.spelled(self.floats).strip(), *self.called(texts), *texts])
        return self.importing(text) + f"\n\n\n{text}\n"

    def called(self, texts: Sequence[str]) -> list[str]:
        """The helpers that texts call, and those that these call."""
        return carried(texts, self.helpers, r"\w+", r'(?ms)^ *""".*?"""$')

    def importing(self, text: str) -> str:
        """The imports of a text."""
        used = [
            line
            for name, line in self.imports.items()
            if name == self.library or re.search(rf"(?<![\w.]){re.escape(name)}\b", text)
        ]
        return "\n".join(used)

    # --- the self-check ---

    def check(self, check: Check) -> str:
        lines = ["", "", "def _check(computed, before):", "    import numpy as np", ""]
        lines += [f"    {line}" if line else "" for line in self.setting]
        lines += ["    rng = np.random.default_rng(0)", "    values = {}"]
        lines += [f"    {name} = {alone}" for name, (_, alone) in self.heads.items()]
        for sample in check.samples:
            shape = tuple_of([str(n) for n in sample.shape])
            numbers = f"rng.uniform(0.5, 1.5, {shape})"
            lines.append(f"    {NUMBERS} = {self.library}.{self.as_array}({numbers})")
            lines.append(f'    values["{sample.name}"] = {self.each(sample)}')
        found, difference = f"computed(**values{_given(check.sizes)})", check.difference
        names = f"{check.function}, {difference.before if difference else None}"
        end = f'\n\nif __name__ == "__main__":\n    _check({names})\n'
        if difference is None:
            shapes = ", ".join([tuple_of([str(n) for n in shape]) for shape in check.shapes])
            lines += [f"    found = {found}", f"    shapes = [{shapes}]"]
            return "\n".join(lines) + SHAPES + end
        lines.append(f"    found = {self.host}({found})")
        text = DIFFERENCES.format(
            x=difference.direction.name,
            direction=self.each(difference.direction),
            extra=_given(difference.sizes),
            numbers=NUMBERS,
            asarray=f"{self.library}.{self.as_array}",
            host=self.host,
        )
        return "\n".join(lines) + text + end

    def each(self, sample: Sample) -> str:
        """The data of a sample: one matrix, or a stack of them."""
        text = sample.value.text
        if sample.integral:
            text = f"{self.library}.floor({text}).{self.cast}({self.library}.int64)"
        for _ in range(sample.stack):
            text = f"{self.library}.stack([{text} for {NUMBERS} in {NUMBERS}])"
        return text


def tuple_of(items: Sequence[str]) -> str:
    """A tuple of Python."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _body(f: FunctionText, refused: Sequence[str] = ()) -> list[str]:
    sizes = [f"{name} = {array}.shape[{axis}]" for name, (array, axis) in f.bound.items()]
    return [*sizes, *refused, *f.body, f"return {f.result.text}"]


def _described(f: FunctionText, note: str) -> list[str]:
    """The docstring: what is returned, as a formula too, and the shapes of the parameters."""
    doc = f"{f.doc} {note}" if note else f.doc
    if not f.formulas:
        return [f'"""{doc}"""']
    shapes = [
        f"{p}: {' x '.join(map(str, v.shape)) or 'a number'}" for p, v in f.parameters.items()
    ]
    formulas = [f"    {line}" for text in f.formulas for line in text.splitlines()]
    told = ["", *formulas, *(["", f"with {', '.join(shapes)}."] if shapes else [])]
    escaped = [line.replace("\\", r"\\").replace('"', r"\"") for line in told]
    return [f'"""{doc}', *escaped, '"""']


def _defined(f: FunctionText, lines: Sequence[str]) -> list[str]:
    head = f"def {f.name}({', '.join([*f.parameters, *f.free])}):"
    return [head, *[f"    {line}" if line else "" for line in lines]]


def _given(sizes: Mapping[str, int]) -> str:
    """Further arguments, behind others."""
    return "".join([f", {name}={size}" for name, size in sizes.items()])
