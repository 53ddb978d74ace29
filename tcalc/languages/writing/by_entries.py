"""Arrays by their entries, as typeset formulas give those that matrix notation has no word for.

Under the letters of another array's axes an entry is written instead: of a sum in brackets the sum
itself, of a difference with such an array the difference of entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from ...graph.extents import Extent
from ...integers.affine import Affine, Congruence, Guard
from .marks import Marks
from .notation import (
    ATOM,
    POINTWISE,
    POWER,
    EinsumSpec,
    Fragment,
    Rope,
    fragment_size,
    index_letters,
    join_ropes,
)

#: Tokens of an array given by its entries, above which it is not written once for each index form.
LONG = 200


class ByEntries(Marks):
    """The part of typeset notation that has indices."""

    def extent(self, extent: Extent) -> Rope:
        """An extent, names in it by their symbols."""
        return str(extent)

    def einsum(self, spec: EinsumSpec, args: Sequence[Fragment]) -> Fragment:
        """Sum and product over indices, deltas for indices that repeat in the result."""

        def entry(out: str, taken: str) -> Fragment:
            names: dict[str, str] = {}
            deltas = []
            for letter, shown in zip(spec.out, out, strict=True):
                if names.setdefault(letter, shown) != shown:
                    pair = self.indices(names[letter] + shown)
                    deltas.append(self.subscript(self.symbols.pretty("delta"), pair))
            known = {*out, *taken, *self.reserved}
            fresh = (letter for letter in index_letters() if letter not in known)
            for letter in "".join(spec.words):
                if letter not in names:
                    names[letter] = next(fresh)
            summed = "".join([names[k] for k in names if k not in spec.out])
            words = ["".join([names[k] for k in word]) for word in spec.words]
            every = taken + out + summed
            factors = [self.entry(p, word, every) for word, p in zip(words, args, strict=True)]
            body = self.beside([*factors, *deltas] or ["1"])
            if summed:
                body = (self.summation(summed), " ", body)
            size, flips = fragment_size(args, 4 + len(deltas))
            return Fragment(body, POINTWISE, size, flips, joins=True)

        return self.bracketed(len(spec.out), entry) if spec.out else entry("", "")

    def indicator(self, params: tuple[Any, ...]) -> Fragment:
        """Iverson's bracket of the conditions, its entry under the letters of the axes."""
        guards = [str(guard.form) for guard in params[1]]
        self.reserved |= set("".join(guards)) - set("#")

        def entry(out: str, taken: str) -> Fragment:
            names = {f"#{axis}": letter for axis, letter in enumerate(out)}
            held = [self.condition(guard.substitute(names)) for guard in params[1]]
            return Fragment(self.fenced("[", join_ropes(", ", held), "]"), size=4)

        out = self.letters(len(params[0]))
        text = self.subscript(entry(out, out).text, self.indices(out))
        return Fragment(text, POWER, 4 + len(out), entry=(len(out), entry))

    def condition(self, guard: Guard) -> Rope:
        """An equation or an inequality of integers."""
        form = guard.form
        if isinstance(guard, Congruence):
            divides = self.typeset([r" \mid "])
            return (self.extent(str(guard.modulus)), divides, self.extent(str(form)))
        above = Affine(tuple([t for t in form.terms if t[1] > 0]), max(form.constant, 0))
        sides = [str(above - form), str(above)]
        if guard.equality:
            sides.sort(key=len)
        left, right = map(self.extent, sides)
        return (left, self.sign("==" if guard.equality else "<="), right)

    def letters(self, count: int) -> str:
        """Names of indices."""
        return "".join(islice((c for c in index_letters() if c not in self.reserved), count))

    def entry(self, p: Fragment, word: str, taken: str) -> Rope:
        """An entry of an array; of one that is given by its entries, that entry."""
        if p.entry is None or p.size > LONG:
            return self.subscript(self.inside(p, ATOM), self.indices(word))
        _, inner = p.entry
        return self.inside(inner(word, taken)._replace(negative=p.negative), POWER)

    def once(self, entry: Callable[[str, str], Fragment]) -> Callable[[str, str], Fragment]:
        """The text of entries, which all that an array makes asks for by the same letters."""
        texts: dict[tuple[str, str, int], Fragment] = {}

        def known(out: str, taken: str) -> Fragment:
            key = out, "".join(sorted({*taken})), len(self.reserved)
            if key not in texts:
                texts[key] = entry(out, taken)
            return texts[key]

        return known

    def bracketed(self, ndim: int, entry: Callable[[str, str], Fragment]) -> Fragment:
        """The array with these entries."""
        entry, out = self.once(entry), self.letters(ndim)
        p = entry(out, out)
        text = self.subscript(self.fenced("[", p.text, "]"), self.indices(out))
        return Fragment(text, POWER, p.size, p.flips, entry=(ndim, entry))

    def add(
        self, terms: Sequence[Fragment], ndim: int = 0, scalar: Sequence[bool] = ()
    ) -> Fragment:
        """A sum; arrays given by their entries under one bracket.

        Where some are not, each stands by itself, and all under letters where the sum does.
        """
        spread = scalar or [False] * len(terms)
        found = [p.entry for p in terms if p.entry]
        several = {axes for axes, _ in found} | ({ndim} if len(found) < len(terms) else set())
        if not found or len(several) > 1:
            return super().add(terms)

        def entry(out: str, taken: str) -> Fragment:
            entries = []
            for p, alone in zip(terms, spread, strict=True):
                one = p.entry[1](out, taken) if p.entry else p
                if not (p.entry or p.numeral or alone):
                    one = Fragment(self.entry(p._replace(negative=False), out, taken))
                level = one.level if p.negative else max(one.level, POINTWISE)
                entries.append(one._replace(negative=p.negative, level=level))
            return super(ByEntries, self).add(entries)

        (axes,) = several
        if len(found) == len(terms):
            return self.bracketed(axes, entry)
        return super().add(terms)._replace(entry=(axes, self.once(entry)))

    def entries(self, factors: Sequence[tuple[Fragment, int]], scalar: bool) -> Fragment:
        """A power of an array given by its entries: of each of these."""
        found = super().entries(factors, scalar)
        (p, k), *others = factors
        if others or k == 1 or scalar or p.entry is None:
            return found
        ndim, inner = p.entry

        def entry(out: str, taken: str) -> Fragment:
            one = inner(out, taken)
            return Fragment(self.power(one, k, True), POWER, one.size, one.flips)

        return found._replace(entry=(ndim, self.once(entry)))
