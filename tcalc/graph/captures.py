"""Arrays that a traced function closes over: inputs of the trace, not constants in it.

So the plan that was made for one minibatch serves the next one. An array that the function changes
in place is another input afterwards. Large arrays are not copied: some entries are compared when
the trace ends, and an array that is found to have changed is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..support.digests import blake2b
from ..support.errors import TraceError
from .canonical import is_mirrored
from .nodes import Expr, Var, intern
from .products import permuted
from .properties import INTEGERS, SYMMETRIC
from .variables import by_diagonal

#: Begins the names of variables that stand for arrays: no name that users can give does.
MARK = "@"

#: Bytes up to which arrays are copied, and about how many entries of larger ones are compared.
SMALL, COMPARED = 2**20, 4096

_thread = threading.local()


class Captures:
    """The arrays that are read while this context is open, by the variables that stand for them.

    Where contexts nest, the outermost one collects.
    """

    def __init__(self) -> None:
        self.arrays: dict[Var, np.ndarray] = {}
        #: By the id of what an array was read from: that object, and the variable now.
        self._known: dict[int, tuple[Any, Var]] = {}
        #: By the id of what an array was read from: that object, and the array with moved axes.
        self._moved: dict[int, tuple[Any, np.ndarray]] = {}
        #: Variables by where the entries of their arrays lie.
        self._lying: dict[tuple[Any, ...], Var] = {}
        #: Arrays that are not copied, with some of their entries.
        self._large: list[tuple[np.ndarray, bytes]] = []

    def __enter__(self) -> Captures:
        self._before: Captures | None = getattr(_thread, "open", None)
        found = self if self._before is None else self._before
        _thread.open = found
        return found

    def __exit__(self, kind: object, *_: object) -> None:
        _thread.open = self._before
        if kind is None and any(_some(array) != entries for array, entries in self._large):
            raise _changed()

    def held(self, value: object, array: np.ndarray) -> Var:
        """The variable of an array; `value` is the object that it was read from."""
        if id(value) in self._known:
            _, known = self._known[id(value)]
            if self.arrays[known] is array or _same(self.arrays[known], array):
                return known
        kind, properties = ("k", INTEGERS) if array.dtype.kind in "iu" else ("c", _symmetry(array))
        v: Var = intern(Var, (f"{MARK}{kind}{len(self.arrays)}", array.shape, properties))
        self.arrays[v] = self._kept(value, array)
        self._known[id(value)] = value, v
        return v

    def read(self, value: object, array: np.ndarray) -> Expr:
        """What stands for an array: its variable, that of its transpose, or of its diagonal.

        Of symmetric matrices in the first two axes it is that of the array with them in the last.
        """
        if array.ndim < 2 or array.dtype.kind != "f":
            return self.held(value, array)
        if array.ndim == 2:
            return by_diagonal(array, partial(self._turned, value))
        matrices = self._matrices(value, array)
        if matrices is None:
            return self.held(value, array)
        back = (array.ndim - 2, array.ndim - 1, *range(array.ndim - 2))
        return permuted(self.held(value, matrices), back)

    def _matrices(self, value: object, array: np.ndarray) -> np.ndarray | None:
        """Symmetric matrices in the first two axes, in the last two; None where there are none."""
        there = np.moveaxis(array, (0, 1), (-2, -1))
        _, known = self._moved.get(id(value), (None, None))
        if known is not None and _same(known, there):
            return known
        if not is_mirrored(array, 0, 1) or _symmetry(array):
            return None
        found = np.ascontiguousarray(there)
        self._moved[id(value)] = value, found
        return found

    def _turned(self, value: object, array: np.ndarray) -> Expr:
        """The variable of a matrix, or of its transpose where that is what lies row by row."""
        turns = array.flags.f_contiguous and not array.flags.c_contiguous
        lies = array.T if turns else array
        v = self._lying_so(lies) if array is value else None
        if v is None:
            v = self.held(value, lies)
            if array is value:
                self._lying[_place(lies)] = v
        return permuted(v, (1, 0)) if turns else v

    def _lying_so(self, array: np.ndarray) -> Var | None:
        """The variable of an array whose entries lie at the same place, and are the same still."""
        v = self._lying.get(_place(array))
        return v if v is not None and _same(self.arrays[v], array) else None

    def known(self, value: object) -> Var | None:
        """The variable of what was read from this object; None where nothing was."""
        return self._known.get(id(value), (None, None))[1]

    def again(self, value: object, array: np.ndarray, v: Var) -> bool:
        """Does the variable stand for this array, as it did in another trace, if asked?"""
        if v in self.arrays:
            return self.arrays[v] is array or _same(self.arrays[v], array)
        return self.held(value, array) is v

    def _kept(self, value: object, array: np.ndarray) -> np.ndarray:
        """The array, as it will be when the trace has ended."""
        made = array is not value and isinstance(value, list | tuple | np.ndarray)
        if made and array.base is None:
            return array
        if array.nbytes <= SMALL:
            return array.copy(order="K")
        self._large.append((array, _some(array)))
        return array

    def stacked(self, rows: Sequence[Var]) -> Var | None:
        """The variable of these arrays along a leading axis; None where one was not captured."""
        if not all(v in self.arrays for v in rows):
            return None
        names = blake2b(" ".join([v.name for v in rows]).encode(), digest_size=8).hexdigest()
        shape = (len(rows), *rows[0].shape)
        v: Var = intern(Var, (f"{MARK}r{names}", shape, rows[0].properties))
        if v not in self.arrays:
            self.arrays[v] = np.stack([self.arrays[row] for row in rows])
        return v


def _symmetry(array: np.ndarray) -> tuple[str, ...]:
    """The property of symmetric matrices in the last two axes, where they are."""
    return SYMMETRIC if array.ndim >= 2 and is_mirrored(array, -2, -1) else ()


def _place(array: np.ndarray) -> tuple[Any, ...]:
    return array.ctypes.data, array.shape, array.strides


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    """Are these the same numbers, bit by bit; of large arrays, some of them?"""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and _some(one) == _some(other)


def _some(array: np.ndarray) -> bytes:
    """The entries of an array, or some of a large one, in C order."""
    step = 1 if array.nbytes <= SMALL else max(1, array.size // COMPARED)
    return array.tobytes() if step == 1 else array.flat[::step].tobytes()


def _changed() -> TraceError:
    return TraceError(
        "a large array that the function has read is changed in place, which is not traced; "
        "write b = 2*b for b *= 2"
    )


def is_captured(v: Var) -> bool:
    """Does the variable stand for an array that a traced function closes over?"""
    return v.name.startswith(MARK)


def current() -> Captures | None:
    """What collects at the moment."""
    found: Captures | None = getattr(_thread, "open", None)
    return found


@contextmanager
def without_captures() -> Iterator[None]:
    """A context in which arrays are constants: for rules, whose arrays are no inputs."""
    before = current()
    _thread.open = None
    try:
        yield
    finally:
        _thread.open = before


def captured(value: object, array: np.ndarray) -> Expr | None:
    """What stands for an array while a function is traced; None otherwise, or for one number."""
    found = current()
    return None if found is None or not array.ndim else found.read(value, array)
