"""Loops that threads share: chunks of a range, as functions before the one with the loop.

How a range is cut depends on the work only, never on the threads that are there, and sums of chunks
are added in their order: results are the same bits for any number of threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...support.records import NamedTuple

#: Work from which a loop is cut, and of a chunk: in entries that take one addition.
LEAST, CHUNK = 1 << 16, 1 << 14
#: Most chunks of a loop, and entries of sums that all of them have together.
MOST, SUMMED = 64, 1 << 13
#: Entries between the sums of two chunks: threads that write to one line of a cache wait for each
#: other, and lines come in pairs.
APART = 16
#: Extents of chunks are multiples of this, so that vectors of entries stay what they are.
LANES = 32
#: What a function's name is in its text until it has one.
NAME = "NAME"
#: Work of calling a function for an entry, in additions.
CALLED = 12

#: In the text of a step: behind it is what is done for each item of a batch, by itself, in a loop
#: from FIRST to LAST[n].
BATCH = "/* batch */ "

_LAST = re.compile(r"LAST\[(.*?)\]")
_POINTER = re.compile(r"\b[pq]\d+\b")
_CALL = re.compile(r"\b_?[a-z]\w*\(")


class Cut(NamedTuple):
    """A range in chunks.

    Attributes
    ----------
    extent, length, chunks : int
        Indices of the range and of a chunk, of which the last one may have fewer; their number.
    """

    extent: int
    length: int
    chunks: int


def cut(extent: int, work: float, most: int | None = None, lanes: int = 1) -> Cut | None:
    """How a range of so much work is cut; None where one thread does it sooner.

    Parameters
    ----------
    extent : int
    work : float
        Of the whole range.
    most : int, optional
        Most chunks.
    lanes : int
        Their lengths are multiples of this.
    """
    if work < LEAST:
        return None
    wanted = min(MOST if most is None else most, int(work // CHUNK), -(-extent // lanes))
    if wanted < 2:
        return None
    length = -(-extent // wanted)
    length = -(-length // lanes) * lanes
    return Cut(extent, length, -(-extent // length))


def items(count: int, inner: Sequence[int] = ()) -> str:
    """Loops over the items of a batch, and over further axes of them."""
    first = f"{BATCH}for (long i0 = FIRST; i0 < LAST[{count}]; i0++) "
    rest = [f"for (long i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(inner, 1)]
    return first + "".join(rest)


def alone(text: str, undone: str) -> str:
    """The text where one thread does all items, and what is done before a step is left."""
    return _LAST.sub(r"\1", text.replace("FIRST", "0")).replace("FAIL;", f"{undone} FAIL;")


def entry_work(entry: str) -> float:
    """Work of an entry, by its expression in C."""
    return 1 + CALLED * len(_CALL.findall(entry))


class Shared:
    """The functions of chunks that stand before one function of C.

    Parameters
    ----------
    kind : callable
        The type of a slot's entries in C.
    """

    def __init__(self, kind: Callable[[int], str] = lambda slot: "real") -> None:
        self.texts: list[str] = []
        self._kind = kind

    def call(
        self, range: Cut, body: str, more: Sequence[tuple[str, str]] = (), blas: bool = False
    ) -> str:
        """C that has all chunks done: 0, or 1 and the number of the first that failed.

        Parameters
        ----------
        range : Cut
        body : str
            C for indices from `first` to `last`, in chunk number `chunk`; it may return 1. Pointers
            to slots that it names are those of where the call stands.
        more : sequence of (str, str)
            Further pointers that it names, and their types.
        blas : bool
            May it call BLAS?
        """
        slots = sorted(set(_POINTER.findall(body)) - _declared(body))
        pointers = [*[(name, f"{self._kind(int(name[1:]))} *") for name in slots], *more]
        taken = [f"{kind}{name} = ({kind})given[{k}];" for k, (name, kind) in enumerate(pointers)]
        name = f"{NAME}_{len(self.texts)}"
        n, length, chunks = range
        lines = [
            f"static int {name}(char **given, long chunk, long worker)",
            "{",
            *taken,
            f"const long first = chunk * {length}L;",
            f"const long last = first + {length}L < {n}L ? first + {length}L : {n}L;",
            body,
            "return 0;",
            "}",
        ]
        self.texts.append("\n".join(lines))
        given = ", ".join([f"(char *){pointer}" for pointer, _ in pointers])
        return f"spread({name}, (char *[]){{{given}}}, {chunks}, threads, {int(blas)})"

    def batch(self, text: str, work: float, undone: str, blas: bool) -> str:
        """C for the items of a batch; where one fails, `undone` is done and the step left."""
        found = _LAST.search(text)
        range = cut(int(found[1]), work) if found and found[1].isdecimal() else None
        if range is None:
            return alone(text, undone)
        body = _LAST.sub("last", text.replace("FIRST", "first"))
        call = self.call(range, body.replace("FAIL;", "return 1;"), blas=blas)
        return f"if ({call}) {{ {undone} FAIL; }}" if "FAIL;" in text else f"{call};"

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def _declared(body: str) -> set[str]:
    """Pointers that the body makes itself."""
    return set(re.findall(r"\b(?:real|long) \*([pq]\d+) =", body))


def spaced(n: int) -> int:
    """Entries from where one chunk has n sums to where the next one has its own."""
    return n + APART


#: Entries next to each other that are added up together, of one chunk after the other.
ENTRIES = 64


def joined(sums: Sequence[tuple[str, str, int, str]], chunks: int) -> list[str]:
    """C that adds up what chunks have summed, in their order.

    Parameters
    ----------
    sums : sequence of (str, str, int, str)
        Where the result is, where those of the chunks are, `spaced`, how many entries each has,
        and the sign that it is assigned by.
    chunks : int
    """
    return [
        f"for (long b = 0; b < {n}; b += {ENTRIES}) {{ "
        f"const long m = {n} - b < {ENTRIES} ? {n} - b : {ENTRIES}; "
        f"wide s[{ENTRIES}] = {{0}}; for (long c = 0; c < {chunks}; c++) "
        f"for (long k = 0; k < m; k++) s[k] += {parts}[c * {spaced(n)}L + b + k]; "
        f"for (long k = 0; k < m; k++) {out}[b + k] {sign} (real)s[k]; }}"
        for out, parts, n, sign in sums
    ]
