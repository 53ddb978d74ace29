"""NumPy's words for results that take the place of an operand: `+=`, `*=`, ``out=``."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from ...graph.extents import Extent, Shape
from . import infix
from .arrays import ArrayLanguage
from .infix import operand
from .language import ATOM, PRODUCT, Code, FunctionText, Operator
from .scope import unlike

#: Arrays that nothing reads any more, of which a function deletes so many at a time, but a large
#: one at once. Functions of so few statements delete none, the last ones of others large ones only.
FORGOTTEN = 8


class InPlace(ArrayLanguage):
    """An array language whose arrays are overwritten where nothing reads them any more."""

    embedding_axes = 3  # a matrix with a diagonal is a sum with np.diag

    def add(self, terms: Sequence[Code]) -> Code:
        whole = [c for c in terms if c.fresh]
        others = [c for c in terms if not c.core]
        if not whole and len(others) < len(terms):
            total = super().add(others) if others[1:] else others[0]
            terms = [c for c in terms if c.core]
            copied = total.name or total.view
            copy = replace(total, text=f"{operand(total)}.copy()") if copied else total
            whole = [replace(copy, name=False)]
        if not whole or len(terms) + len(whole) < 2:
            return super().add(terms)
        own = min(whole, key=lambda c: (not c.name, c.level != ATOM))
        rest = [c for c in terms if c is not own]
        if own.negated:
            inner = replace(own, text=own.negated, negated="", name=own.negated.isidentifier())
            target, first = self.held(inner), rest.pop(0)
            self.scope.lines.append(f"np.subtract({first.text}, {target}, out={target})")
        else:
            target = self.held(own)
        for c in rest:
            if c.core and not c.name:
                self.scope.lines.append(f"{target}.flat[:: len({target}) + 1] += {c.core}")
                continue
            below = c.level == PRODUCT and c.text.startswith("-")
            shown = (c.negated or c.text[1:]) if below else c.text
            self.scope.lines.append(f"{target} {'-' if below else '+'}= {shown}")
        return Code(target, name=True, fresh=True)

    def multiply(self, factors: Sequence[Code]) -> Code:
        own = next((c for c in factors if c.fresh), None)
        if own is None or len(factors) < 2:
            return super().multiply(factors)
        rest, target = [c for c in factors if c is not own], self.held(own)
        numbers = [c for c in rest if c.weak]
        others = [c for c in rest if not c.weak]
        if numbers:
            others[:1] = [infix.product([*numbers, *others[:1]])]
        self.scope.lines += [f"{target} *= {c.text}" for c in others]
        return Code(target, name=True, fresh=True)

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        found = super().embed(c, out, shape)
        return replace(found, core=c.text) if tuple(out) == (0, 0) else found

    def overwritable(self, total: Code, shape: Shape, several: bool) -> Code | None:
        new = several and not (total.name or total.view or total.weak)
        return Code(self.held(total), name=True) if total.fresh or new else None

    def embed_onto(self, onto: Code, c: Code, out: Sequence[int]) -> None:
        labels = {label: k for k, label in enumerate(dict.fromkeys(out))}
        sign, shown = ("-=", c.negated) if c.negated else ("+=", c.text)
        where = self.on_diagonal(onto, [labels[label] for label in out])
        self.scope.lines.append(f"{where}[...] {sign} {shown}")

    def negate(self, c: Code) -> Code:
        found = super().negate(c)
        return replace(found, negated=operand(c, PRODUCT), fresh=True) if c.fresh else found

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        own = next((k for k, c in enumerate(args) if c.fresh), None)
        if own is not None and op.name == "cholesky":
            return Code(f"_cholesky({self.held(args[own])}, overwrite=True)")
        name = self.overwriting(op, len(args))
        if own is None or not name:
            return super().call(op, args)
        target = self.held(args[own])
        shown = [target if k == own else c.text for k, c in enumerate(args)]
        self.scope.lines.append(f"{name}({', '.join(shown)}, out={target})")
        return Code(target, name=True, fresh=True)

    def by_columns(self, c: Code) -> Code:
        return Code(f"np.ascontiguousarray({self.transpose(c, [1, 0]).text})")

    def blocks(
        self,
        step: str,
        args: Sequence[tuple[Code, int | None]],
        axis: int | None,
        shape: Shape,
        cut: Sequence[Extent],
    ) -> Code:
        target, rows = self.scope.fresh(), unlike("rows", self.scope.taken, "_")
        made = "zeros" if axis is None else "empty"
        made = f"np.{made}({self.shape(shape)}, {self.dtype})" if shape else f"{self.dtype}.type(0)"
        read = [c.text + ("" if k is None else f"[{':, ' * k}{rows}]") for c, k in args]
        part = target if axis is None else f"{target}[{':, ' * axis}{rows}]"
        count, *row = [self.size(n).text for n in cut]
        self.scope.lines += [
            f"{target} = {made}",
            f"for {rows} in _blocks({count}, {' * '.join(row)}):",
            f"    {part} {'+=' if axis is None else '='} {step}({', '.join(read)})",
        ]
        return Code(target, name=True, fresh=bool(shape))

    def function(self, f: FunctionText) -> list[str]:
        f = f._replace(body=_inverted_last(f))
        return super().function(f._replace(body=_forgotten(f, self.scope.large)))

    def nested(self, f: FunctionText) -> list[str]:
        return super().nested(f._replace(body=_inverted_last(f)))

    def overwriting(self, op: Operator, count: int) -> str:
        """The function of numbers to numbers that the operator is called by; "" for any other."""
        template = self.template(op) or ""
        call = template.removesuffix("({operands})")
        module, _, name = call.partition(".")
        function = getattr(np, name, None) if module == "np" else None
        of_numbers = isinstance(function, np.ufunc) and "d" * count + "->d" in function.types
        return call if call != template and (of_numbers or module == "special") else ""

    def held(self, c: Code) -> str:
        """The name of an array that will be overwritten."""
        if c.name:
            return c.text
        if c.negated.isidentifier():
            self.scope.lines.append(f"np.negative({c.negated}, out={c.negated})")
            return c.negated
        return self.assign(self.scope.fresh(), c).text


def _inverted_last(f: FunctionText) -> list[str]:
    """The statements, where a factor that nothing reads any more becomes the inverse."""
    lines, after = list(f.body), f.result.text
    for k in reversed(range(len(lines))):
        found = re.search(r"_inverse_definite\((\w+)\)", lines[k])
        if found and len(re.findall(rf"\b{found[1]}\b", lines[k] + after)) == 1:
            called = f"_inverse_definite({found[1]}, overwrite=True)"
            lines[k] = lines[k].replace(found[0], called)
        after += "\n" + lines[k]
    return lines


def _forgotten(f: FunctionText, large: Set[str]) -> list[str]:
    """The statements of a long function, which deletes arrays that nothing reads any more."""
    if len(f.body) <= FORGOTTEN:
        return list(f.body)
    words = [set(re.findall(r"\w+", line)) for line in f.body]
    last = {name: k for k, line in enumerate(words) for name in line}
    kept = {*re.findall(r"\w+", f.result.text), *f.parameters}
    lines, held = list[str](), list[str]()
    for k, line in enumerate(f.body):
        dead = [name for name in held if last[name] < k]
        many = len(dead) >= FORGOTTEN and k <= len(words) - FORGOTTEN
        if (many or not large.isdisjoint(dead)) and not line.startswith(" "):
            lines.append(f"del {', '.join(dead)}")
            held = [name for name in held if name not in dead]
        lines.append(line)
        made = re.match(r"(\w+) = ", line)
        if made and made[1] not in (*held, *kept):
            held.append(made[1])
    return lines
