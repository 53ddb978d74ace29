"""Loops in texts of every language: `fold(s -> tanh(w*s + u[i]), s0, u=A*B, i=0..T-1)`.

A loop is read before the text around it, in which a name then stands for its value; so are its own
parts, each a text of the same language: the first states, the operands that have names, and last
the step, in which states, slices `u[i]` and these operands are variables. So are states in a
condition behind the range, `i=0..99 until s < 1`, and operands in a number of steps, `i=0..99
if i < u`. A name that nothing declares keeps the shape that the first of these texts gives it, with
an entry for each step where that is `u[i]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...graph.extents import Extent, extent_from, form_of, show_shape
from ...graph.nodes import Expr, Var, variables
from ...graph.variables import var
from ...loops.body import body_variable, kind_of, replaced
from ...loops.closure_conversion import closed_loop
from ...loops.fold_row import FOLD
from ...loops.integer_states import as_index, check_integer_states
from ...loops.normal_form import LoopOperands, LoopRange
from ...ops.affine_entries import integral
from ...ops.reductions import arange
from ...support.errors import ParseError, ShapeError, retold
from ...support.limits import spend
from ...support.passages import Passage, lines
from ...support.records import NamedTuple, record
from .lexer import Lexicon

#: How deep loops may be nested in a text.
MAX_NESTED = 30

_NAME = r"(?<![\w.])[^\W\d]\w*"
_WORD = re.compile(_NAME)
_LOOP = re.compile(rf"(?<![\w.])({'|'.join(FOLD.parts)})[ \t]*\(")
_PLACE = re.compile(r"\s*\[\s*(\d+)\s*\]")
_ENDING = re.compile(r"\s(until|if)\s")
_BOUND = re.compile(r"(?<![=<>!])=(?!=)")


class LoopLanguage(NamedTuple):
    """How one language reads its texts without loops.

    Attributes
    ----------
    read : callable
        ``read(text, variables)`` is the expression of a text.
    lexicon : Lexicon
    names_value : bool
        Has the last statement a name too?
    """

    read: Callable[[str, Mapping[str, Var]], Expr]
    lexicon: Lexicon
    names_value: bool = False


def with_loops(text: str, declared: Mapping[str, Var], language: LoopLanguage) -> Expr:
    """The expression of a text in which loops may stand."""
    if not any(name in text for name in FOLD.parts):
        return language.read(text, declared)
    comments = language.lexicon.comment.finditer(text)
    plain = Passage(text).with_words([(*comment.span(), "") for comment in comments])
    if not _LOOP.search(plain):
        return language.read(text, declared)
    reader = _LoopReader(plain, language)
    scope = _Scope(dict(declared), {}, {}, 0)
    *before, last = [plain[a:b] for a, b in _pieces(plain, ";\n") if plain[a:b].strip()]
    for statement in before:
        reader.enter(statement, scope)
    found = reader.read([*scope.lines.values(), reader.cut(last, scope)], scope)
    with _at(plain):
        (value,) = replaced([found], scope.values)
    return value


@record()
class _Scope:
    """What names mean: variables, and statements by their text; the values of names for loops."""

    declared: dict[str, Var]
    lines: dict[str, Passage]
    values: dict[Var, Expr]
    depth: int

    def inner(self) -> _Scope:
        return _Scope(dict(self.declared), dict(self.lines), dict(self.values), self.depth + 1)

    def bind(self, name: str, e: Expr) -> Var:
        """A variable that stands for an expression."""
        self.declared[name] = found = body_variable(name, e.shape, kind_of(integral(e)))
        return found

    def needed(self, text: Passage) -> list[Passage]:
        """The statements that a text depends on, in order."""
        waiting, found = list[str]([text]), set[str]()
        while waiting:
            words = {w for w in _WORD.findall(waiting.pop()) if w in self.lines} - found
            found |= words
            waiting += [self.lines[w] for w in words]
        return [line for name, line in self.lines.items() if name in found]


class _LoopReader:
    """Reads the loops of one text; `known` are variables that nothing declares, as first read, and
    `written` is what stands in the text for names that it does not have."""

    def __init__(self, text: str, language: LoopLanguage) -> None:
        self.text, self.language = text, language
        self.known: dict[str, Var] = {}
        self.written: dict[str, str] = {}
        self.prefix, self.count = "loop", 0
        while self.prefix in text:
            self.prefix += "_"

    def fresh(self, scope: _Scope, written: str = "") -> str:
        """A name that nothing has, for what is written so."""
        while True:
            self.count += 1
            if (name := f"{self.prefix}{self.count}") not in scope.declared:
                self.written[name] = written or name
                return name

    def read(self, statements: Sequence[Passage], scope: _Scope) -> Expr:
        """The expression of a text without loops."""
        text = lines(statements)
        words = set(_WORD.findall(text)) - scope.lines.keys()
        known = {name: v for name, v in self.known.items() if name in words}
        try:
            e = self.language.read(text, {**known, **scope.declared})
        except (ParseError, ShapeError) as error:
            raise retold(error, self.as_written) from None
        for name, v in e.variables.items():
            if name not in scope.declared:
                self.known.setdefault(name, v)
        return e

    def as_written(self, message: str) -> str:
        """A message in words of the text."""
        return re.sub(rf"\b{self.prefix}\d+", lambda m: self.written.get(m[0], m[0]), message)

    def enter(self, statement: Passage, scope: _Scope) -> None:
        """Keep a statement `name = …` for the texts behind it."""
        plain = self.cut(statement, scope)
        name = _WORD.match(plain.strip())
        if name is None or _equals(plain) < 0:
            raise ParseError("expected a statement name = expression", statement, 0)
        if name[0] in scope.lines:
            message = f"`{name[0]}` has a value already; each name is given one value"
            raise ParseError(message, statement, 0)
        if name[0] in self.known and not scope.depth:
            message = f"`{name[0]}` is used before it is given a value here; choose another name"
            raise ParseError(message, statement, 0)
        scope.lines[name[0]] = plain

    def cut(self, text: Passage, scope: _Scope) -> Passage:
        """The text with names in the places of its loops."""
        found, place = list[tuple[int, int, str]](), 0
        while loop := _LOOP.search(text, place):
            end = _closing(text, loop.end())
            outputs = self.loop(loop[1], text[loop.end() : end], scope)
            behind = _PLACE.match(text, end + 1) if len(outputs) > 1 else None
            if len(outputs) > 1 and (behind is None or int(behind[1]) >= len(outputs)):
                message = f"{len(outputs)} states: write [0] behind the loop for the first of them"
                raise ParseError(message, text, end)
            e = outputs[int(behind[1]) if behind else 0]
            place = behind.end() if behind else end + 1
            name = self.fresh(scope, text[loop.start() : place].original)
            scope.values[scope.bind(name, e)] = e
            found.append((loop.start(), place, name))
        return text.with_words(found)

    def value(self, text: Passage, scope: _Scope) -> Expr:
        """The value of one expression."""
        plain = self.cut(text, scope).strip()
        if not plain:
            raise ParseError("an expression is missing in this loop", text, 0)
        if plain in scope.declared:
            found: Expr = scope.declared[plain]
        else:
            statements = scope.needed(plain)
            if plain not in scope.lines:
                unnamed = self.language.names_value and _equals(plain) < 0
                if unnamed:
                    plain = plain.with_words([(0, 0, f"{self.fresh(scope)} = ")])
                statements.append(plain)
            found = self.read(statements, scope)
        return replaced([found], scope.values)[0]

    def loop(self, name: str, text: Passage, scope: _Scope) -> tuple[Expr, ...]:
        """What a loop gives, for each state."""
        spend("steps", len(text) + len(scope.declared) + len(scope.lines))
        if scope.depth == MAX_NESTED:
            raise ParseError(f"loops are nested deeper than {MAX_NESTED} here", text, 0)
        pieces = [text[a:b] for a, b in _pieces(text, ",")]
        left, arrow, step = pieces[0].partition("->")
        if not arrow or len(pieces) < 3:
            message = "a loop is fold(state -> next state, first state, i=0..n-1)"
            raise ParseError(message, text, 0)
        states = [str(word.strip()) for word in _tuple(left)]
        firsts = _tuple(pieces[1]) if len(states) > 1 else [pieces[1]]
        named = [_binding(piece) for piece in pieces[2:]]
        index, ends = named.pop()
        ending = _ENDING.search(ends)
        steps = _range(ends[: ending.start()] if ending else ends)
        _check_new([*states, *[word for word, _ in named], index], scope, text)
        inits = [self.value(piece, scope) for piece in firsts]
        whole = {word: self.value(piece, scope) for word, piece in named}
        if len(inits) != len(states):
            raise ParseError(f"{len(states)} states have {len(inits)} first states", text, 0)
        inner = scope.inner()
        bound = {inner.bind(word, e): e for word, e in whole.items()}
        own = [inner.bind(word, e) for word, e in zip(states, map(as_index, inits), strict=True)]
        scanned, step = self.slices(step, index, steps.length, whole, inner)
        outputs = self.step(step, len(states), inner)
        if ending is not None:
            steps = self.ending(ending[1], ends[ending.end() :], index, steps, inner, bound)
        whole_step = outputs if steps.until is None else [*outputs, steps.until]
        with _at(text):
            around = variables([*inits, *scanned.values(), *bound.values()])
        if around.keys() & {v.name for v in own}:
            raise ParseError("a state is read outside of its loop; choose another name", text, 0)
        try:
            for k in check_integer_states(own, whole_step):
                inits[k] = as_index(inits[k])
        except TypeError as error:
            raise ParseError(str(error), text, 0) from error
        with _at(text):
            made = closed_loop(own, outputs, inits, LoopOperands(scanned, bound), steps)
        start = FOLD.parts.index(name) * len(states)
        if start == len(made):
            raise ParseError("a number of steps is that of a loop with a condition", text, 0)
        return made[start : start + len(states)]

    def ending(
        self,
        kind: str,
        text: Passage,
        index: str,
        steps: LoopRange,
        scope: _Scope,
        operands: Mapping[Var, Expr],
    ) -> LoopRange:
        """The range with what is said behind it of where the loop ends."""
        if kind == "until":
            (until,) = self.step(text, 1, scope)
            if index in variables([until]) or steps.backward:
                message = "a condition on the states, of a loop that runs forward, ends it"
                raise ParseError(message, text, 0)
            return steps._replace(until=_number_alone(until, text))
        counted = re.fullmatch(rf"\s*{re.escape(index)}\s*<(?!=)(.*)", text, re.DOTALL)
        if counted is None:
            raise ParseError(f"a number of steps is said as `if {index} < …`", text, 0)
        (made,) = replaced([self.value(text[counted.start(1) :], scope)], operands)
        return steps._replace(made=_number_alone(made, text))

    def slices(
        self, step: Passage, index: str, length: Extent, whole: Mapping[str, Expr], scope: _Scope
    ) -> tuple[dict[Var, Expr], Passage]:
        """Variables for the slices of arrays at the index, their arrays, and the step with them."""
        at_index = re.compile(rf"({_NAME})[ \t]*\[\s*{re.escape(index)}\s*\]")
        names: dict[str, str] = {}
        scanned: dict[Var, Expr] = {}
        for found in at_index.finditer(step):
            if (array := found[1]) in names:
                continue
            e = whole.get(array)
            e = self.sliced(step[slice(*found.span(1))], length, scope) if e is None else e
            if not e.ndim:
                raise ParseError(f"`{array}` is a number, and has no entries", step, found.start())
            if e.shape[0] != length:
                message = (
                    f"`{array}` has shape {show_shape(e.shape)}, and its first extent is not the"
                    f" number of steps, {length}: step {index} reads `{found[0]}`"
                )
                raise ShapeError(str(ParseError(message, step, found.start())))
            names[array] = self.fresh(scope, found[0])
            scanned[self.slice(names[array], e, scope)] = e
        step = step.with_words([(*m.span(), names[m[1]]) for m in at_index.finditer(step)])
        if index in _WORD.findall(step):
            every = arange(length)
            scanned[self.slice(index, every, scope)] = every
        return scanned, step

    def sliced(self, text: Passage, length: Extent, scope: _Scope) -> Expr:
        """What a name stands for that is read at the index; it has a slice a step, if it is new."""
        name, new = str(text), text not in self.known
        e = self.value(text, scope)
        if e.ndim and new and self.known.get(name) is e:
            with _at(text):
                self.known[name] = e = var(name, (length, *e.shape[1:]))
        return e

    def slice(self, name: str, e: Expr, scope: _Scope) -> Var:
        scope.declared[name] = found = body_variable(name, e.shape[1:], kind_of(integral(e)))
        return found

    def step(self, text: Passage, count: int, scope: _Scope) -> list[Expr]:
        """The states after a step, which statements may stand before."""
        *before, last = [text[a:b] for a, b in _pieces(text, ";\n") if text[a:b].strip()] or [text]
        for statement in before:
            self.enter(statement, scope)
        after = _tuple(last) if count > 1 else [last]
        if len(after) != count:
            message = f"{count} states are followed by ({', '.join(['…'] * count)})"
            raise ParseError(message, text, 0)
        return [self.value(piece, scope) for piece in after]


# --- text -----------------------------------------------------------------------------------------


def _pieces(text: str, separators: str) -> list[tuple[int, int]]:
    """The offsets of what separators outside of brackets separate."""
    found, start, depth = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c in separators and not depth:
            found.append((start, k))
            start = k + 1
    return [*found, (start, len(text))]


def _closing(text: str, start: int) -> int:
    """The offset of the bracket that closes the one before `start`."""
    depth = 1
    for k in range(start, len(text)):
        depth += (text[k] in "([") - (text[k] in ")]")
        if not depth:
            return k
    raise ParseError("this ( is never closed; expected )", text, start - 1)


def _tuple(text: Passage) -> list[Passage]:
    """The members of `(a, b)`; the text alone, where it is none."""
    text = text.strip()
    if text.startswith("(") and _closing(text, 1) == len(text) - 1:
        inner = text[1:-1]
        return [inner[a:b] for a, b in _pieces(inner, ",")]
    return [text]


def _equals(text: str) -> int:
    """The offset of the first `=` outside of brackets that is no comparison; -1 for none."""
    ends = [end for _, end in _pieces(text, "=")]
    return next((end for end in ends if _BOUND.match(text, end)), -1)


def _binding(text: Passage) -> tuple[str, Passage]:
    """The name and the value of `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not _WORD.fullmatch(name.strip()):
        message = "behind its first states a loop has operands u=… and its range i=0..n-1"
        raise ParseError(message, text, 0)
    return str(name.strip()), value


def _number_alone(e: Expr, text: str) -> Expr:
    if e.ndim:
        raise ParseError("where a loop ends is said by one number", text, 0)
    return e


def _range(text: str) -> LoopRange:
    """The range `0..n-1`, or `n-1..0` of a loop that runs backward."""
    low, dots, high = [part.strip() for part in text.partition("..")]
    backward = high == "0" and low != "0"
    first, last = (high, low) if backward else (low, high)
    try:
        if not dots or first != "0":
            raise ValueError
        return LoopRange(extent_from(form_of(_number(last)) + 1), backward)
    except ValueError:
        message = "the range of a loop is 0..n-1, or n-1..0 where the last step comes first"
        raise ParseError(message, text, 0) from None


def _number(text: str) -> Extent:
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else text


def _check_new(words: Sequence[str], scope: _Scope, text: str) -> None:
    """Refuse names of a loop that mean something already."""
    for word in words:
        if not _WORD.fullmatch(word):
            raise ParseError(f"`{word}` is no name", text, 0)
        if word in scope.declared or word in scope.lines or words.count(word) > 1:
            raise ParseError(f"`{word}` has a meaning already; choose another name", text, 0)


@contextmanager
def _at(text: str) -> Iterator[None]:
    """What does not fit inside is told with the text that it is of."""
    try:
        yield
    except ShapeError as error:
        raise ShapeError(str(ParseError(str(error), text, 0))) from error
