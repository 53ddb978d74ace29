"""A generator of random programs of the index language."""

from __future__ import annotations

import numpy as np

from tests.index_programs import Bound, Form, Op, Program, Range, Read

Box = tuple[Form, Form]
#: How many statements, nested operators, indices of one entry, arrays.
STATEMENTS, DEPTH, MAX_SCOPE, MAX_ARRAYS = 3, 3, 3, 4


def plus(*forms: Form) -> Form:
    found: Form = {}
    for form in forms:
        for name, c in form.items():
            found[name] = found.get(name, 0) + c
    return {name: c for name, c in found.items() if c}


def times(form: Form, factor: int) -> Form:
    return {name: c * factor for name, c in form.items() if c * factor}


ONE: Form = {"": 1}


class Maker:
    """One program; `box` has the least and the greatest value of every index in scope."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.named = bool(self.rng.random() < 0.5)
        self.sizes = {"n": int(self.rng.integers(1, 4)), "m": int(self.rng.integers(1, 4))}
        self.declared: dict[str, tuple[Form, ...]] = {}
        self.earlier: dict[str, list[Box]] = {}
        self.box: dict[str, Box] = {}
        self.bare: set[str] = set()
        self.guarded: set[str] = set()
        self.count = 0
        self.ranges: list[Range] = []
        self.fault = False  # an axis may be too short

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, items: object) -> object:
        options = list(items)  # type: ignore[call-overload]
        return options[int(self.rng.integers(len(options)))]

    def program(self) -> Program:
        statements = []
        for k in range(int(self.rng.integers(1, STATEMENTS + 1))):
            name, ranges = f"f{k}", []
            self.box, self.bare = {}, set()
            for index in "ij"[: int(self.rng.integers(0, 3))]:
                ranges.append(self.whole(index))
            value = self.value(DEPTH)
            for r in ranges:
                r.shown = r.name not in self.bare or self.chance(0.3)
            statements.append((name, ranges, value))
            self.earlier[name] = [self.box[r.name] for r in ranges]
            self.ranges += ranges
        for r in self.ranges if self.fault else ():
            r.shown = True
        if self.named:  # what nothing depends on is not computed
            for k in reversed(range(len(statements) - 1)):
                later = [str(value) for _, _, value in statements[k + 1 :]]
                if not any(f"{statements[k][0]}" in text for text in later):
                    del statements[k]
        sizes = self.sizes if self.named else {}
        if self.named:
            self.declared["unused"] = {"n": 1}, {"m": 1}
        return Program(statements, self.declared, sizes)

    # --- ranges -----------------------------------------------------------------------------------

    def extent(self) -> Form:
        if self.named and self.chance(0.6):
            return {str(self.pick("nm")): 1}
        return {"": int(self.rng.integers(1, 4))}

    def whole(self, name: str) -> Range:
        """An index over a box."""
        low: Form = {"": int(self.pick((1, -1, 2)))} if self.chance(0.15) else {}  # type: ignore[call-overload]
        high = plus(low, self.extent(), {"": -1})
        self.box[name] = low, high
        return Range(name, Bound("", [low]), Bound("", [high]))

    def inner(self, name: str, nonempty: bool) -> Range:
        """An index of a sum, its bounds perhaps made of others."""
        outer = [k for k, (low, _) in self.box.items() if low.get("", 0) >= 0]
        if not outer or self.chance(0.5):
            if not nonempty and self.chance(0.06):
                self.box[name] = {"": 1}, {}
                return Range(name, Bound("", [ONE]), Bound("", [{}]))
            return self.whole(name)
        i = str(self.pick(outer))
        at, (_, high) = {i: 1}, self.box[i]
        kind = int(self.rng.integers(0, 4 if nonempty else 9))
        zero, end = Bound("", [{}]), plus(self.extent(), {"": -1})
        low: Bound
        up: Bound
        low, up, box = [
            (zero, Bound("", [at]), ({}, high)),
            (Bound("", [at]), Bound("", [high]), ({}, high)),
            (zero, Bound("floor", [plus(at, ONE)], 2), ({}, high)),
            (Bound("ceil", [at], 2), Bound("", [at]), ({}, high)),
            (Bound("max", [{}, plus(at, {"": -1})]), Bound("min", [plus(at, ONE), end]), ({}, end)),
            (Bound("", [plus(at, {"": -1})]), Bound("", [plus(at, ONE)]),
             ({"": -1}, plus(high, ONE))),
            (Bound("min", [at, ONE]), Bound("", [high]), ({}, high)),
            (zero, Bound("max", [plus(at, {"": -1}), {}]), ({}, high)),
            (Bound("", [plus(at, ONE)]), Bound("", [end]), ({}, end)),
        ][kind]  # fmt: skip
        if kind == 2:
            box = ({}, plus(high, ONE))
        self.box[name] = box
        return Range(name, low, up)

    # --- values -----------------------------------------------------------------------------------

    def value(self, depth: int) -> Op:
        kind = float(self.rng.random())
        if depth == 0 or kind < 0.1:
            return self.leaf()
        if kind < 0.4 and len(self.box) < MAX_SCOPE + 1:
            return self.bind(depth)
        if kind < 0.5:
            return Op("add", [self.value(depth - 1), self.value(depth - 1)])
        if kind < 0.56:
            return Op("sub", [self.value(depth - 1), self.value(depth - 1)])
        if kind < 0.76:
            return Op("mul", [self.value(depth - 1), self.value(depth - 1)])
        if kind < 0.8:
            return Op("pow", [self.value(depth - 1), Op("num", [self.pick((2, 3))])])
        if kind < 0.84:
            return Op("div", [self.value(depth - 1), self.positive(depth - 1)])
        if kind < 0.88 and self.box:
            return self.condition(depth)
        if kind < 0.91:
            return Op("call", [self.value(depth - 1), self.value(depth - 1)],
                      str(self.pick(("max", "min"))))  # fmt: skip
        if kind < 0.95:
            return Op("call", [self.positive(depth - 1)], str(self.pick(("log", "sqrt"))))
        name = str(self.pick(("sin", "tanh", "square")))
        return Op("call", [self.value(depth - 1)], name)

    def positive(self, depth: int) -> Op:
        if self.chance(0.5):
            return self.read(computed=False)
        square = Op("call", [self.value(depth)], "square")
        return Op("add", [Op("num", [1]), square])

    def leaf(self) -> Op:
        kind = float(self.rng.random())
        if kind < 0.12:
            return Op("num", [self.pick((2, 0.5, 3, 1.25))])
        if kind < 0.2 and self.box:
            return Op("idx", name=str(self.pick(self.box)))
        if kind < 0.3 and self.box:
            return Op("mul", [self.guard(), self.read()])
        return self.read()

    def bind(self, depth: int) -> Op:
        name = str(self.pick(("sum", "sum", "sum", "prod", "max", "min")))
        before, bare = dict(self.box), set(self.bare)
        free = [k for k in "klpq" if k not in self.box]
        count = 2 if self.chance(0.25) and len(self.box) < MAX_SCOPE else 1
        ranges = [self.inner(k, name in ("max", "min")) for k in free[:count]]
        whole = {r.name for r in ranges if r.low.kind == r.high.kind == "" and self.is_box(r)}
        self.bare -= {r.name for r in ranges}
        body = self.value(depth - 1)
        self.ranges += ranges
        for r in ranges:
            r.shown = r.name not in self.bare or r.name not in whole or self.chance(0.3)
        self.box, self.bare = before, bare | (self.bare & before.keys())
        return Op("bind", [body], name, ranges)

    def is_box(self, r: Range) -> bool:
        return (r.low.forms[0], r.high.forms[0]) == self.box[r.name]

    def comparison(self) -> tuple[Form, str, Form]:
        left: Form = {str(self.pick(self.box)): 1}
        right: Form = {"": int(self.rng.integers(0, 3))}
        if self.chance(0.6):
            right = {str(self.pick(self.box)): 1}
        if self.chance(0.3):
            right = plus(right, {"": int(self.pick((-1, 1)))})  # type: ignore[call-overload]
        return left, str(self.pick(("==", "!=", "<", "<=", ">", ">="))), right

    def guard(self) -> Op:
        count = 2 if self.chance(0.2) else 1
        return Op("guard", [self.comparison() for _ in range(count)], str(self.pick((", ", " & "))))

    def condition(self, depth: int) -> Op:
        """A guard or a `where`, which may keep an entry inside of its array."""
        i = str(self.pick(self.box))
        low, high = self.box[i]
        if self.chance(0.5):
            return Op("where", [self.comparison(), self.value(depth - 1), self.value(depth - 1)])
        self.box[i] = plus(low, ONE), high
        inner = self.read()
        self.box[i] = low, high
        self.fault = True  # where it stands alone, it need not have its whole range
        test = ({i: 1}, ">", low)
        if self.chance(0.5):
            return Op("mul", [Op("guard", [test], ", "), inner])
        return Op("where", [test, inner, self.value(depth - 1)])

    # --- entries ----------------------------------------------------------------------------------

    def read(self, computed: bool = True) -> Op:
        if computed and self.earlier and self.chance(0.3) and (found := self.known()) is not None:
            return found
        if not self.box and self.chance(0.6):
            self.declared.setdefault("s", ())
            return Op("read", [Read("s", [])])
        if len(self.declared) >= MAX_ARRAYS and (found := self.again()) is not None:
            return found
        count = int(self.pick((1, 1, 2, 2, 3)))  # type: ignore[call-overload]
        subs, shape = [], []
        for _ in range(count):
            form, modulus, extent = self.subscript()
            subs.append((form, modulus))
            shape.append(extent)
        name = f"x{self.count}"
        self.count += 1
        self.declared[name] = tuple(shape)
        return Op("read", [Read(name, subs)])

    def subscript(self) -> tuple[Form, Form | None, Form]:
        """A form, what it is taken modulo, and the extent of the axis."""
        names = list(self.box)
        form: Form = {}
        kind = float(self.rng.random())
        if names and kind < 0.5:
            form = {str(self.pick(names)): 1}
        elif names:
            for _ in range(int(self.rng.integers(0, 3))):
                c = int(self.pick((-1, 1, 1, 2, 3, -2)))  # type: ignore[call-overload]
                form = plus(form, {str(self.pick(names)): c})
        if names and self.chance(0.06):
            extent = self.extent()
            return plus(form, {"": int(self.rng.integers(-2, 3))}), extent, extent
        low, high = self.corner(form, 0), self.corner(form, 1)
        length = plus(high, times(low, -1), ONE)
        form = plus(form, times(low, -1))
        names = [k for k, c in form.items() if k]
        if len(form) == 1 and form.get(names[0] if names else "") == 1 and names[0] in self.box:
            self.bare.add(names[0])
        elif self.chance(0.04) and length.get("", 0) > 0:  # an entry outside, perhaps
            length = plus(length, {"": -1})
            self.fault = True
        return form, None, length

    def corner(self, form: Form, side: int) -> Form:
        found: Form = {}
        for name, c in form.items():
            found = plus(found, times(self.box[name][side if c > 0 else 1 - side], c))
        return found

    def known(self) -> Op | None:
        """An entry of an earlier statement's array."""
        name = str(self.pick(self.earlier))
        subs: list[tuple[Form, Form | None]] = []
        for low, high in self.earlier[name]:
            fitting = [k for k, box in self.box.items() if box == (low, high)]
            if fitting and self.chance(0.8):
                k = str(self.pick(fitting))
                self.bare.add(k)
                subs.append(({k: 1}, None))
            else:
                subs.append((dict(low), None))
        return Op("read", [Read(name, subs)])

    def again(self) -> Op | None:
        """Another entry of a declared array."""
        name = str(self.pick(self.declared))
        subs: list[tuple[Form, Form | None]] = []
        for extent in self.declared[name]:
            high = plus(extent, {"": -1})
            fitting = [k for k, box in self.box.items() if box == ({}, high)]
            if fitting:
                k = str(self.pick(fitting))
                self.bare.add(k)
                subs.append(({k: 1}, None))
            else:
                subs.append(({}, None))
        return Op("read", [Read(name, subs)])
