"""Inputs found by what they reach: ``python -m tests.guided ENTRY [--seconds N] [--keep]``.

libFuzzer, by way of atheris (the extra `fuzz`), changes inputs and keeps those that reach branches
of tcalc that none before has reached. An entry is a text that is parsed, a file of arrays, or the
body of a request; words of the language are put in, taken out and repeated, besides its own changes
of bytes. An input fails where the answer is no error of tcalc's, or takes more than `SECONDS` of
the processor, without libFuzzer too, or `MEMORY`.

With ``--keep`` inputs that enter functions or get answers that no kept input does are added to
`guided_inputs.json`, which `test_guided` replays.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from tests.documents import ROOT

KEPT = Path(__file__).with_name("guided_inputs.json")
#: Seconds of the processor and bytes of address space that one input may take.
SECONDS, MEMORY = 2.0, 3 << 30
#: Bytes of an input, and of one that is kept.
LONGEST, SHORT = 1_000, 200


class Slow(Exception):
    """An input took more than `SECONDS`."""


class Entry(NamedTuple):
    """What reads bytes, words that it knows, inputs to start from, and which errors are answers."""

    read: Callable[[bytes], Any]
    words: str
    seeds: tuple[str | bytes, ...]


def entries() -> dict[str, Entry]:
    """By name; imported late, so that what they run is traced where it is imported."""
    import tcalc as tc
    from tests.hostile_texts import ARRAYS, run_command

    def evaluated(data: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            file.write(data)
            file.flush()
            run_command(["eval", "sum(x + 1)", "--data", file.name])

    return {
        "matrix": Entry(lambda data: tc.parse(words_of(data)), MATRIX, MATRIX_TEXTS),
        "index": Entry(lambda data: tc.parse_index(words_of(data), **ARRAYS), INDEX, INDEX_TEXTS),
        "einsum": Entry(lambda data: tc.parse_einsum(words_of(data)), EINSUM, EINSUM_TEXTS),
        "extent": Entry(
            lambda data: tc.var("v", (words_of(data),)), EXTENT, ("n", "2*n+1", "n//2")
        ),
        "npz": Entry(evaluated, r"PK \x93NUMPY x.npy <f8 |O {'descr': 'shape':", (*files(),)),
        "web": Entry(asked, WEB, BODIES),
    }


def words_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def asked(data: bytes) -> None:
    """A body as the interface reads and answers it; what the form tells as wrong is an answer."""
    from pydantic import ValidationError
    from tcalc_web.queries import answer
    from tcalc_web.schema import Query
    from tcalc_web.settings import SETTINGS

    try:
        query = Query.model_validate_json(data)
    except ValidationError:
        return
    reply = answer(query.model_dump(), SETTINGS)
    json.dumps(reply)
    if reply["status"] == 500:
        raise AssertionError(f"a mistake of the server's: {query.expression!r}")


MATRIX = """+ - * / \\ ^ .* ./ .^ ' ( ) [ ] , ; = == < <= & | sum tr det inv exp log diag norm2
    A B x y a ⊗ kron vector matrix eye 0 1 2 0.5 1e300 where fold -> i=0..n-1 x[i] softmax logdet
    chol #('ij,jk->ik',A,B) expm A' # n"""
INDEX = """f f[i] f[i=0..n-1] = sum prod max [ ] ( ) , ; .. n n-1 0 1 i j k x[i] y[k] A[i,j] a b + -
    * / ^ == <= < & | where floor( /2) mod exp log fold -> ~ 2*i+1 i-j [i==j] [i<=j]"""
EINSUM = """#( 'ij,jk->ik' 'ii->i' '->' 'i->ii' , A B v w T a ) ( + - * / ^ @ @@ | < = ; inv sin exp
    log sum .T 1 0.5 delta 'ij,j->i'"""
EXTENT = "n m + - * / // ( ) min , max 0 1 2 9999999999 n-1 2*n"
WEB = """{ } [ ] : , "expression" "language" "matrix" "index" "einsum" "variables" "shape" "wrt"
    "order" "properties" "symmetric" "mode" "auto" "compress" "outputs" "text" "latex" "c" "numpy"
    "where" "sizes" "guess" "check" true false null 0 1 2 -1 "n" "x" "A" "x'*A*x" "sum(exp(x))" """
MATRIX_TEXTS = (
    "x'*A*x", "sum(log(1 + exp(-y .* (X*w))))", "norm2(A*x - b)^2/2", "logdet(A) + tr(inv(A)*B)",
    "where(x > 0, x, 0)", "fold(s -> sin(s)*a + y[i], x, i=0..m-1)", "q = A*A'; tr(q*q)",
    "softmax(x)' * x", "#('ij,jk->ik', A, B)", "kron(A, eye(2))", "x.^2 ./ (1 + x.^2)",
)  # fmt: skip
INDEX_TEXTS = (
    "f = sum[i=0..n-1](x[i]^2)", "f[i=0..n-1] = sum[j=0..i](A[i,j]*x[j])", "f[i] = exp(a*x[i])",
    "f = sum[k=0..7](y[k]*[2*k==6])", "f[i=0..n-2] = where(i<=3, x[i+1], x[i])",
    "s[i=0..n-1] = x[i]; f = prod[i=0..n-1](s[i])", "f = y[floor(3/2)]",
)  # fmt: skip
EINSUM_TEXTS = (
    "#('ij,jk->ik',A,B)", "inv(A)@v", "sin(#('ii->',A))", "a*A+B", "|A|", "q=A@B;q@@q",
    "#('i->ii',v)^2",
)  # fmt: skip
BODIES = (
    '{"expression": "x\'*A*x", "wrt": ["x"], "order": 2, "guess": true, "outputs": ["text"]}',
    '{"expression": "sum(exp(x))", "variables": {"x": {"shape": ["n"]}}, "wrt": ["x"]}',
    '{"expression": "f = sum[i=0..n-1](x[i]^2)", "language": "index", "compress": true,'
    ' "variables": {"x": {"shape": ["n"]}}, "sizes": {"n": 5}, "check": true, "wrt": ["x"]}',
    '{"expression": "inv(A)@v", "language": "einsum", "outputs": ["c", "mathml"], "where": true}',
)


def files() -> Iterator[bytes]:
    """Archives with arrays of a few kinds."""
    for arrays in (
        {"x": np.ones(2)}, {"x": np.arange(3)}, {"x": np.ones((0, 2), np.float32)},
        {"x": np.array(True)}, {"x": np.array("text")}, {"y": np.ones(1), "x": np.ones(1) * 1j},
    ):  # fmt: skip
        for save in (np.savez, np.savez_compressed):
            held = io.BytesIO()
            save(held, **arrays)
            yield held.getvalue()


# --- one input ------------------------------------------------------------------------------------


def outcome(entry: Entry, data: bytes) -> str:
    """`done`, `refused` with the error's name, or `FAILED` with what came."""
    import tcalc as tc
    from tcalc.support.limits import LIMITS

    def late(*_: object) -> None:
        raise Slow(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with tc.limits(**{name: row.text for name, row in LIMITS.items()}):
            entry.read(data)
    except tc.Error as error:
        return f"refused {type(error).__name__}: {frame_of(error)}"
    except (Exception, SystemExit) as error:
        return f"FAILED {type(error).__name__}: {str(error)[:200]!r} at {frame_of(error)}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return "done"


def frame_of(error: BaseException) -> str:
    """The innermost function of tcalc that an error came through."""
    found, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/tcalc" in code.co_filename:
            found = f"{Path(code.co_filename).name}:{code.co_name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def mutated(data: bytes, words: list[bytes], rng: random.Random) -> bytes:
    """A change of words: taken out, put in, replaced, repeated, nested."""
    parts = re.findall(rb"\w+|\s+|[^\w\s]+", data) or [b""]
    for _ in range(rng.randint(1, 4)):
        k = rng.randrange(len(parts))
        end = min(len(parts), k + rng.randint(1, 6))
        parts[k:end] = rng.choice((
            [], [rng.choice(words)], [*parts[k:end], rng.choice(words)], parts[k:end] * 2,
            [b"(", *parts[k:end], b")"], [rng.choice(parts)], parts[k:end][::-1],
        ))  # fmt: skip
        parts = parts or [b""]
    return b"".join(parts)


def mutated_body(data: bytes, rng: random.Random) -> bytes:
    """A change of one value of a body, of its expression mostly; of words where it is no object."""
    body: Any = None
    with contextlib.suppress(ValueError):
        body = json.loads(data)
    if not isinstance(body, dict):
        return mutated(data, split(WEB), rng)
    key = "expression" if rng.random() < 0.6 else rng.choice([*body, "expression"])
    if key == "expression":
        words = split({"index": INDEX, "einsum": EINSUM}.get(str(body.get("language")), MATRIX))
        text = str(body.get(key, "")).encode("utf-8", "replace")
        body[key] = words_of(mutated(text, words, rng))
        return json.dumps(body).encode()
    with contextlib.suppress(ValueError):
        body[key] = json.loads(mutated(json.dumps(body[key]).encode(), split(WEB), rng))
    return json.dumps(body).encode()


def split(words: str) -> list[bytes]:
    return [word.encode() for word in words.split()] + [b" ", b"\n"]


# --- a run ----------------------------------------------------------------------------------------


def run(name: str, seconds: int, corpus: Path) -> None:
    """Under libFuzzer, in this process, which it ends; failures are told on the way."""
    import atheris

    with atheris.instrument_imports(include=["tcalc", "tcalc_web"]):
        entry = entries()[name]
    for k, text in enumerate(entry.seeds):
        (corpus / f"seed{k}").write_bytes(text.encode() if isinstance(text, str) else text)
    words = split(entry.words)
    seen: set[str] = set()

    def one(data: bytes) -> None:
        said = outcome(entry, data)
        place = said.rpartition(" at ")[2]
        if said.startswith("FAILED") and place not in seen:
            seen.add(place)
            print(f"{said}\t{data!r}", flush=True)

    def changed(data: bytes, longest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if name == "npz" or rng.random() < 0.3:
            return bytes(atheris.Mutate(data, longest))
        if name == "web":
            return mutated_body(data, rng)[:longest]
        return mutated(data, words, rng)[:longest]

    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=60",
               f"-rss_limit_mb={MEMORY >> 20}", "-verbosity=0", "-print_final_stats=1"]  # fmt: skip
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=changed)
    atheris.Fuzz()


def fails(entry: Entry, line: str) -> bool:
    """Is what a run told of a failure? One that was slow is run again as it is run elsewhere:
    with libFuzzer's counters code takes four times as long.
    """
    said, _, data = line.partition("\t")
    slow = said.startswith("FAILED Slow")
    return outcome(entry, ast.literal_eval(data)).startswith("FAILED") if slow else bool(data)


def kept() -> dict[str, list[bytes]]:
    """Inputs that stand in the repository, by entry."""
    told = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return {name: [text.encode("latin-1") for text in texts] for name, texts in told.items()}


def keep(name: str, corpus: Path) -> int:
    """Add inputs that enter functions, or get answers, that none before does; how many."""
    found, entry = kept(), entries()[name]
    seen: set[object] = set()
    mine = found.get(name, [])
    files = sorted(corpus.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    longest = SHORT if name not in ("npz", "web") else LONGEST
    new = [data for path in files if len(data := path.read_bytes()) <= longest]
    added = 0
    for k, data in enumerate([*mine, *new]):
        reached = entered(entry, data)
        if k >= len(mine) and not reached <= seen:
            mine.append(data)
            added += 1
        seen |= reached
    texts = {key: [data.decode("latin-1") for data in value] for key, value in found.items()}
    texts[name] = [data.decode("latin-1") for data in mine]
    KEPT.write_text(json.dumps(texts, indent=0) + "\n", encoding="utf-8")
    return added


def entered(entry: Entry, data: bytes) -> set[object]:
    """The answer without numbers, and the functions of tcalc on the way to it."""
    codes: set[CodeType] = set()

    def enter(frame: FrameType, event: str, value: Any) -> None:
        codes.add(frame.f_code)

    sys.settrace(enter)
    try:
        said = outcome(entry, data)
    finally:
        sys.settrace(None)
    return {said, *(code.co_qualname for code in codes if "/tcalc/" in code.co_filename)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guided", description=__doc__)
    parser.add_argument("entry", choices=("matrix", "index", "einsum", "extent", "npz", "web"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--corpus", type=Path, help="kept between runs; default: a new one")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        corpus = options.corpus or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        corpus.mkdir(parents=True, exist_ok=True)
        if options.here:
            run(options.entry, options.seconds, corpus)
        for k, data in enumerate(kept().get(options.entry, [])):
            (corpus / f"kept{k}").write_bytes(data)
        command = [sys.executable, "-m", "tests.guided", options.entry, "--here",
                   f"--seconds={options.seconds}", f"--corpus={corpus}"]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'web'}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        told = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
        failed = [line for line in told if fails(entries()[options.entry], line)]
        stats = re.findall(r"stat::number_of_executed_units: *(\d+)", done.stderr)
        print("\n".join(failed or [done.stderr[-2000:]] if done.returncode else failed))
        count = len(list(corpus.iterdir()))
        print(f"{options.entry}: {stats[0] if stats else '?'} inputs, {count} that reach more,"
              f" {len(failed)} places that fail")  # fmt: skip
        if options.keep and not failed:
            print(f"{keep(options.entry, corpus)} kept")
    return 1 if failed or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
