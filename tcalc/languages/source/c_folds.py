"""Folds in C: one loop, its step written inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .c_nests import Line, Loop, Node, Statement, nest, replaced
from .c_values import Value, by_rows, entry_of, in_memory, value
from .c_writer import Writer
from .language import Code, FunctionText


def folded(
    language: Writer,
    f: FunctionText,
    free: Mapping[str, str],
    operands: tuple[Sequence[Code], ...],
    times: str,
    backward: bool,
) -> Value:
    """All results of a loop: last states, all states after each step, all before.

    States are copied when a step has computed all of them. Results that nothing reads are not kept
    (`c_nests.live`).
    """
    starts, others = operands[0], [*operands[1], *operands[2]]
    turn = language.scope.fresh()
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
    loop = Loop(turn, times, body, plain=False, backward=backward)
    language.emit(loop, made=made)
    return Value("", parts=(*states, *after, *before))


def _state(language: Writer, shape: tuple[str, ...], start: Value) -> Value:
    """Memory with a first state in it."""
    if shape:
        found: Value = language.filled(shape, start, rows=True)
        return found
    name = language.scope.fresh()
    language.emit(Line(name, "=", entry_of(start, ()).text, "real"))
    return replace(in_memory(name, ()), whole=True)


def _operand(
    language: Writer, c: Value, shape: tuple[str, ...], kind: str, turn: str, head: list[Node]
) -> str:
    """The name under which a step reads a slice or what all steps share."""
    if shape and not (c.name and by_rows(c)):
        c = language.filled(c.shape, c, kind=kind, rows=True)
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


def _renamed(text: str, names: dict[str, str]) -> str:
    (line,) = replaced([Line("x", "=", text)], names)
    assert isinstance(line, Line)
    return line.value
