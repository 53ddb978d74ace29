"""What random programs are compared in: one row a back end, a printer, a language, a transform."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

import tcalc as tc
from tcalc.graph.nodes import Const, postorder
from tcalc.languages.writing.notation import MAX_SHOWN
from tcalc.run.backends import backend_row
from tcalc.run.engine import Engine
from tcalc.support.machine import Machine
from tests import c_programs, mathml_text
from tests.cupy_stand_in import some_device
from tests.random_programs import Evaluated
from tests.shared import run_source


class Output(NamedTuple):
    """An expression and what it is."""

    what: str
    expression: tc.Expr
    wanted: np.ndarray


class Choice(NamedTuple):
    """By which variables derivatives are taken, and in which modes."""

    names: Sequence[str]
    modes: Sequence[str]


class Case(NamedTuple):
    """One program with the outputs that are compared."""

    seed: int
    example: Evaluated
    variables: dict[str, tc.Expr]
    bind: dict[str, Any]
    outputs: list[Output]
    choice: Choice

    @property
    def tolerance(self) -> float:
        return 1e-11 * max(1.0, self.example.largest)

    def differs(self, found: Any, output: Output) -> str:
        """What is wrong with a result, or nothing."""
        shape, wanted = np.shape(found), output.wanted
        if shape != wanted.shape:
            return f"shape {shape}, not {wanted.shape}"
        error = np.abs(np.asarray(found) - wanted)
        if np.all(error <= self.tolerance + 1e-10 * np.abs(wanted)):
            return ""
        return f"error {np.max(error)}, found {np.asarray(found).tolist()!r:.300}"


def back_end(name: str) -> Callable[[Case], Iterator[tuple[Output, Any]]]:
    def run(case: Case) -> Iterator[tuple[Output, Any]]:
        step = tc.compile({o.what: o.expression for o in case.outputs}, backend=name)
        found = step(case.bind)
        yield from [(o, found[o.what]) for o in case.outputs]

    return run


class Reversed(Machine):
    """A machine for which what takes the most time takes the least."""

    def speed(self, name: str) -> float:
        return -super().speed(name)


NUMPY = backend_row("numpy")
NUMBERS = asdict(NUMPY.machine)
#: Who never chooses between equal spellings, orders and ways, who always takes the cheapest, and
#: who always takes the dearest: what one of them does not run, another one does.
PLANNERS = (
    Machine(**NUMBERS | {"worth_choosing": inf, "worth_comparing": inf}),
    Machine(**NUMBERS | {"worth_choosing": 0, "worth_comparing": 0}),
    Reversed(**NUMBERS | {"worth_choosing": -inf, "worth_comparing": -inf}),
)


def planned(case: Case) -> Iterator[tuple[Output, Any]]:
    """All outputs as one plan of each planner."""
    roots = [o.expression for o in case.outputs]
    for machine in PLANNERS:
        engine = Engine(roots, NUMPY._replace(machine=machine), limit=None, check=True)
        yield from zip(case.outputs, engine.run(roots, case.bind), strict=True)


def compressed(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs[1:]:
        held = tc.compile(output.expression, structured=True)(case.bind)
        yield output, held.todense()


def source(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        yield output, run_source(output.expression, case.bind)


def language(
    write: Callable[[tc.Expr], str], read: Callable[..., tc.Expr]
) -> Callable[[Case], Iterator[tuple[Output, Any]]]:
    def run(case: Case) -> Iterator[tuple[Output, Any]]:
        for output in filter(_is_written, case.outputs):
            known = {**case.variables, **output.expression.variables}
            # What was written here may be longer than what strangers may ask for.
            with tc.limits(nodes=100_000, seconds=60):
                back = read(write(output.expression), **known)
            # The same node was run by the back ends.
            if back is not output.expression:
                yield output, back(case.bind)

    return run


def _is_written(output: Output) -> bool:
    """Are all numbers in texts? Of large constant arrays none are."""
    constants = [e for e in postorder([output.expression]) if isinstance(e, Const)]
    return all(e.value.size <= MAX_SHOWN for e in constants)


def latex(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        text = tc.to_latex(output.expression)
        depth = 0
        for character in text.replace(r"\{", "").replace(r"\}", ""):
            depth += (character == "{") - (character == "}")
            assert depth >= 0, text
        assert not depth, text
    yield from ()


def mathml(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        mathml_text.checked(tc.to_mathml(output.expression))
    yield from ()


def single(case: Case) -> Iterator[tuple[Output, Any]]:
    """In float32, whose errors are so many times those of float64."""
    data = {k: a.astype(np.float32) if _real(a) else a for k, a in case.bind.items()}
    for output in case.outputs:
        found = output.expression(data)
        error = np.abs(found - output.wanted).max(initial=0)
        assert error <= 1e-4 * max(1.0, case.example.largest), (output.what, error)
        assert found.shape == output.wanted.shape, found.shape
    yield from ()


def _real(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.dtype.kind == "f"


def pickled(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        back = pickle.loads(pickle.dumps(output.expression))
        if back is not output.expression:
            yield output, back(case.bind)


def substituted(case: Case) -> Iterator[tuple[Output, Any]]:
    """Every variable as half of another one, all at once."""
    real = {k: v for k, v in case.variables.items() if _real(case.bind[k])}
    square = {"symmetric", "positive_definite", "lower", "upper", "diagonal"}
    others = {
        v: tc.var("half" + k, v.shape, **{p: True for p in v.properties if p in square})
        for k, v in real.items()
    }
    data = case.bind | {"half" + k: case.bind[k] / 2 for k in real}
    for output in case.outputs:
        yield output, output.expression.subs({v: 2 * o for v, o in others.items()})(data)


def sparse(case: Case) -> Iterator[tuple[Output, Any]]:
    """Matrices as sparse data where they may be; what needs all of their entries is refused."""
    data = dict(case.bind)
    for name, v in case.variables.items():
        if v.ndim == 2 and _real(data[name]) and not {*v.properties} - {"symmetric"}:
            data[name] = csr_array(data[name])
    for output in case.outputs if any(map(issparse, data.values())) else ():
        try:
            found = output.expression(data)
        except TypeError as error:
            if "is sparse, and" not in str(error):
                raise
        else:
            yield output, found


def batched(case: Case) -> Iterator[tuple[Output, Any]]:
    """Two items along a new axis of one variable: the data, and other data for what is beside."""
    for output in case.outputs:
        names = [k for k in output.expression.variables if _real(case.bind[k])]
        if names:
            items = np.stack([case.bind[names[0]], case.bind[names[0]] * 0.5])
            data = case.bind | {names[0]: items}
            yield output, tc.vmap(output.expression, {names[0]: 0}, size=2)(data)[0]


CHECKS: dict[str, Callable[[Case], Iterator[tuple[Output, Any]]]] = {
    "numpy": back_end("numpy"),
    "functional": back_end("functional"),
    "planned three ways": planned,
    "compressed": compressed,
    "source": source,
    "matrix text": language(str, tc.parse),
    "index text": language(partial(tc.to_index, computed=True), tc.parse_index),
    **(
        {"einsum text": language(partial(tc.to_einsum, computed=True), tc.parse_einsum)}
        if hasattr(tc, "parse_einsum")
        else {}
    ),
    "latex": latex,
    "mathml": mathml,
    "float32": single,
    "pickled": pickled,
    "substituted": substituted,
    "sparse": sparse,
    "batched": batched,
}


# --- many programs at once ------------------------------------------------------------------------


def one_plan(backend: str, cases: Sequence[Case]) -> Iterator[tuple[Case, Output, Any]]:
    """All programs as one plan."""
    tree = {str(c.seed): {o.what: o.expression for o in c.outputs} for c in cases}
    bind: dict[str, Any] = {}
    for c in cases:
        bind |= c.bind
    found = tc.compile(tree, backend=backend)(bind)
    yield from [(c, o, found[str(c.seed)][o.what]) for c in cases for o in c.outputs]


def on_device(cases: Sequence[Case]) -> Iterator[tuple[Case, Output, Any]]:
    """On a device, or on what stands in for one."""
    with some_device():
        yield from one_plan("cupy", cases)


def printed_in_c(cases: Sequence[Case]) -> Iterator[tuple[Case, Output, Any]]:
    """All programs as functions of one file of printed C."""
    jobs = []
    for c in cases:
        arrays = {name: a for name, a in c.bind.items() if not isinstance(a, int)}
        sizes = {name: n for name, n in c.bind.items() if isinstance(n, int)}
        tree = tuple([o.expression for o in c.outputs])
        jobs.append(c_programs.Job(str(c.seed), tree, arrays, sizes))
    with TemporaryDirectory() as folder:
        for c, program in zip(cases, c_programs.compiled(jobs, Path(folder)), strict=True):
            status, results = program()
            assert status == 0, (c.seed, status)
            yield from [(c, o, found) for o, found in zip(c.outputs, results, strict=True)]


#: What is started once for many programs, for starting it takes longer than they do.
TOGETHER: dict[str, Callable[[Sequence[Case]], Iterator[tuple[Case, Output, Any]]]] = {
    "c": partial(one_plan, "c"),
    "printed c": printed_in_c,
    "device": on_device,
}
