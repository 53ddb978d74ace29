"""Folds in C: one loop, its step written inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .c_nests import Line, Loop, Node, Statement, nest, replaced
from .c_values import Value, by_rows, entry_of, in_memory, value
from .c_writer import Writer
from .language import Code, FunctionText
from .turns import Turns


def folded(
    language: Writer,
    f: FunctionText,
    free: Mapping[str, str],
    operands: tuple[Sequence[Code], ...],
    turns: Turns,
) -> Value:
    """All results of a loop: last states, all states after each step, all before.

    States are copied when a step has computed all of them. Results that nothing reads are not kept
    (`c_nests.live`).
    """
    starts, others = operands[0], [*operands[1], *operands[2]]
    turn, times = language.scope.fresh(), language.extent(turns.times)
    given = list(f.parameters.items())
    shapes = [language.shape(v.shape) for _, v in given]
    sizes = {n: language.extent(f.parameters[p.array].shape[p.axis]) for n, p in f.bound.items()}
    sizes |= {name: free[name] for name in f.free}
    names = {name: text for name, text in sizes.items() if name != text}
    states = [_state(language, shape, value(c)) for shape, c in zip(shapes, starts, strict=False)]
    names |= {name: state.text for (name, _), state in zip(given, states, strict=False)}
    head: list[Node] = []
    for k, c in enumerate(others, len(states)):
        (name, v), sliced = given[k], k < len(states) + len(operands[1])
        kind = "ptrdiff_t" if v.integral else "real"
        names[name] = _operand(language, value(c), shapes[k], kind, turn if sliced else "", head)
    statements = [line for line in f.body if isinstance(line, Statement)]
    made = [a for s in statements for a in s.made]
    made = [replace(a, shape=tuple([_renamed(n, names) for n in a.shape])) for a in made]
    step = replaced([n for s in statements for n in s.nodes], names)
    rows: list[list[Value]] = [[], []]
    for found in rows:
        for state in states:
            array, row = language.storage((times, *state.shape))
            made.append(array)
            found.append(row)
    after, before = rows

    def copied(to: Value, c: Value, at: str = "") -> list[Node]:
        index = language.index(len(c.shape))
        target = entry_of(to, [at, *index] if at else index).text
        text = _renamed(entry_of(c, index).text, {} if at else names)
        return nest(index, to.shape[1:] if at else to.shape, [Line(target, "=", text)])

    assert isinstance(f.result, Value)
    body = [*head]
    for to, state in zip(before, states, strict=True):
        body += copied(to, state, turn)
    body += step
    for state, leaf in zip(states, f.result.parts, strict=True):
        body += copied(state, leaf)
    for to, state in zip(after, states, strict=True):
        body += copied(to, state, turn)
    loop = Loop(turn, times, body, plain=False, backward=turns.backward)
    if not turns.bounded:
        language.emit(loop, made=made)
        return Value("", parts=(*states, *after, *before))
    count, start = language.scope.fresh(), "0"
    if turns.made is None:
        loop = replace(loop, going=f"{states[-1].text} == 0")
        loop.body.append(Line(count, "=", f"{count} + 1"))
    else:
        number = entry_of(value(operands[2][turns.made]), ()).text
        loop = replace(loop, extent=count)
        start = f"(ptrdiff_t)fmin(fmax({number}, (real)0), (real)({times}))"
    # The states at the end that is not reached are also those of one more row, if there is one.
    edge: list[Node] = []
    for to, state in zip(after if turns.backward else before, states, strict=True):
        end = copied(to, state, count)
        edge += [Loop(language.scope.fresh(), f"({count} < {times})", end, plain=False)]
    nodes = [Line(count, "=", start, "ptrdiff_t"), *_zeros(language, [*after, *before])]
    nodes += [*edge, loop] if turns.backward else [loop, *edge]
    shown = slice(len(states) - turns.until)
    steps = [_number(language, f"(real){count}", nodes)] if turns.until else []
    language.emit(*nodes, made=made)
    return Value("", parts=(*states[shown], *after[shown], *before[shown], *steps))


def _zeros(language: Writer, rows: Sequence[Value]) -> list[Node]:
    """Nests that fill arrays with zeros."""
    found: list[Node] = []
    for row in rows:
        index = language.index(len(row.shape))
        found += nest(index, row.shape, [Line(entry_of(row, index).text, "=", "0")])
    return found


def _number(language: Writer, text: str, nodes: list[Node]) -> Value:
    """A number under a name, which these statements give it."""
    name = language.scope.fresh()
    nodes.append(Line(name, "=", text, "real"))
    return replace(in_memory(name, ()), whole=True)


def _state(language: Writer, shape: tuple[str, ...], start: Value) -> Value:
    """Memory with a first state in it."""
    if shape:
        found: Value = language.filled(shape, start, rows=True)
        return found
    nodes: list[Node] = []
    found = _number(language, entry_of(start, ()).text, nodes)
    language.emit(*nodes)
    return found


def _operand(
    language: Writer, c: Value, shape: tuple[str, ...], kind: str, turn: str, head: list[Node]
) -> str:
    """The name under which a step reads a slice or what all steps share."""
    if shape and not (c.name and by_rows(c)):
        c = _rows(language, c, kind)
    if shape and not turn:
        return c.text
    local: str = language.scope.fresh()
    index = [turn] if turn else []
    if shape:
        entry = entry_of(c, [*index, *["0"] * len(shape)]).text
        head.append(Line(local, "=", f"&{entry}", f"const {kind} *"))
    else:
        head.append(Line(local, "=", entry_of(c, index).text, f"const {kind}"))
    return local


def _rows(language: Writer, c: Value, kind: str) -> Value:
    """The array row by row in memory, once for all loops that read it so."""
    text = entry_of(c, language.index(len(c.shape))).text
    key = ("rows", text, kind, *c.shape)
    if key not in language.copies:
        language.copies[key] = language.filled(c.shape, c, kind=kind, rows=True)
    return language.copies[key]


def _renamed(text: str, names: dict[str, str]) -> str:
    (line,) = replaced([Line("x", "=", text)], names)
    assert isinstance(line, Line)
    return line.value
