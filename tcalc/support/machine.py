"""What plans know of hardware, and of the back end that runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import prod

from ..support.arrays import Sizes
from .records import record

#: Forms of which a plan has others that compute the same: half a product of a matrix with itself
#: under weights, sums over overlapping windows by tiles of copies, the wanted half of a product by
#: panels, symmetric matrices between an inverse of a triangle and its transpose, and runs of steps
#: over tiles that stay in cache.
FORMS = frozenset({"gram", "correlate", "half", "congruence", "tile"})
#: Those of which libraries of arrays have all parts: congruences are two solves there.
COMMON_FORMS = FORMS - {"congruence"}


@record(frozen=True)
class Machine:
    """Speeds and sizes that decide between plans of equal results.

    Each back end has its own. The numbers given here were measured with NumPy on a common
    processor. Sizes are entries of arrays where nothing else is said; speeds are operations in the
    time of one elementwise operation of NumPy's.

    Attributes
    ----------
    gemm, factorisation, correlation, elementwise : float
        Speeds of matrix products, of factorisations and solves, of sums over overlapping windows
        (many of their operands are copied for one product), and of all other steps.
    read, write, lookup : float
        Times of reading and of writing an entry of a matrix product, and of taking an entry by an
        integer or adding one at its place.
    memory : int, optional
        Bytes that a call may allocate; by default what this process may have.
    forms : frozenset of str
        Those of `FORMS` that the back end has kernels for.
    tile, wide_tile : int
        Entries of one tile of the largest array in a loop; and where that is a long last axis after
        few short ones, of which most other arrays there have fewer.
    large : int
        Entries from which an array is worth a loop, and worth being made twice instead of kept.
    chain, turned : int
        Entrywise steps that are made again rather than kept; and steps of a loop that reading one
        transposed operand must be worth.
    call : int
        Entries of a step of a loop from which computing them takes longer than the call for it, so
        that it is made where its operands are rather than once for all steps.
    small, summed : int
        Entries of an operand that every tile of a matrix product reads, and of a result it adds to.
    short, shortest : int
        Extent of the last axis below which loops over it cost more than what they do, and below
        which they cost more than moving another one there.
    across : int
        Entries of vectors below which a function of many of them goes along the long axis; more go
        that way where it is longer by far.
    squares : int
        Entries of rows up to which differences are what squared distances are made of, however they
        are written: loops that square and sum them cost less than to write a product and read it.
    unrolled, tiny : int
        Multiply-adds per entry of a batch up to which they are made for the whole batch, one at a
        time; and those of a matrix kernel that are cheaper than calling it.
    many, smaller : int
        Entries from which a result is large, and how much smaller an operand is that is copied for
        it.
    gram_rows, half_rows, half_depth : int
        Rows from which half a weighted product is faster than a whole one; rows, and summed
        entries, from which the half of any product may be.
    half, triangle : float
        Work of half a product as a fraction of the whole one, and where an operand is a triangle.
    overlap : float
        How many times the entries of an array a view has from which its windows overlap.
    factored : int
        Rows up to which each step that wants the LU factors of a matrix makes them.
    narrow : int
        A dense inverse that exists anyway is multiplied with more columns than rows / narrow.
    worth_choosing, worth_comparing : float
        Time per node from which other spellings and ways of lowering are tried (each takes a
        fraction of a millisecond a node), and from which values of a root are compared.
    worth_trying : float
        Time of a call for which one step more may be lowered in a search, which takes twenty times
        as long: a search takes as long as that many calls.
    worth_searching : float
        Time per node from which all this is done for one call: the time that it takes itself.
    """

    gemm: float = 8.0
    factorisation: float = 6.0
    correlation: float = 2.0
    elementwise: float = 1.0
    read: float = 0.5
    write: float = 1.0
    lookup: float = 2.0
    memory: int | None = None
    forms: frozenset[str] = COMMON_FORMS
    tile: int = 1 << 15
    wide_tile: int = 1 << 17
    large: int = 1 << 16
    chain: int = 4
    turned: int = 1
    call: int = 1 << 14
    small: int = 1 << 14
    summed: int = 1 << 12
    short: int = 64
    shortest: int = 16
    across: int = 16
    squares: int = 0
    unrolled: int = 128
    tiny: int = 32
    many: int = 1 << 16
    smaller: int = 16
    gram_rows: int = 64
    half_rows: int = 96
    half_depth: int = 64
    half: float = 0.6
    triangle: float = 0.4
    overlap: float = 1.5
    factored: int = 16
    narrow: int = 4
    worth_choosing: float = 1e4
    worth_comparing: float = 1e3
    worth_trying: float = 1e4
    worth_searching: float = 4e6

    def speed(self, name: str) -> float:
        """The speed of this name."""
        found: float = getattr(self, name)
        return found

    def is_wide(self, shape: Sizes) -> bool:
        """Is it the last axis that a loop over such an array runs over?"""
        rows = prod(shape[:-1])
        if len(shape) < 2 or rows > self.unrolled or shape[-1] < self.short:
            return False
        return shape[0] < self.across or shape[-1] >= self.short * rows


#: What is assumed where no back end is named: NumPy, on a common processor.
NOMINAL_MACHINE = Machine()
#: Where steps are compiled to C: nothing is called for each, all forms have a routine, and loops
#: over a few entries are written out.
COMPILED_MACHINE = Machine(call=1, forms=FORMS, squares=15, shortest=8)


# --- memory ---------------------------------------------------------------------------------------


def machine_memory() -> int | None:
    """Bytes this process may use: those of the machine, or less where it has a limit of its own."""
    found = [n for n in (_shared_memory(), own_memory()) if n is not None]
    return min(found, default=None)


#: Limits of a process (setrlimit), and which sizes of `/proc/self/statm` they are about.
PROCESS_LIMITS = (("RLIMIT_AS", 0), ("RLIMIT_DATA", 5))


def own_memory() -> int | None:
    """Bytes that this process may still allocate under the limits set for it; None without any."""
    found = []
    for name, place in PROCESS_LIMITS:
        with suppress(AttributeError, ValueError, OSError, ImportError):  # not everywhere
            resource = import_module("resource")
            limit, _ = resource.getrlimit(getattr(resource, name))
            if limit != resource.RLIM_INFINITY:
                with open("/proc/self/statm") as file:
                    pages = int(file.read().split()[place])
                found.append(max(0, limit - pages * resource.getpagesize()))
    return min(found, default=None)


@cache
def _shared_memory() -> int | None:
    """Physical memory, or less where the control group has less."""
    found = list(group_limits())
    with suppress(AttributeError, ValueError, OSError):  # not everywhere
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min([n for n in found if n > 0], default=None)


def group_limits(
    membership: str | os.PathLike[str] = "/proc/self/cgroup",
    root: str | os.PathLike[str] = "/sys/fs/cgroup",
) -> Iterator[int]:
    """Memory limits of the control groups of this process and of the groups around them."""
    for text in group_files("memory.max", "memory", "memory.limit_in_bytes", membership, root):
        with suppress(ValueError):  # the word "max"
            yield int(text)


def group_files(
    name: str,
    controller: str,
    old: str,
    membership: str | os.PathLike[str] = "/proc/self/cgroup",
    root: str | os.PathLike[str] = "/sys/fs/cgroup",
) -> Iterator[str]:
    """What stands in a file of the control groups of this process and of the groups around them.

    Its `name`, and in hierarchies of one controller the `old` one.
    """
    try:
        with open(membership) as file:
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            base, file_name = root, name
        elif controller in controllers.split(","):
            base, file_name = os.path.join(root, controller), old
        else:
            continue
        group = [part for part in path.split("/") if part]
        for depth in range(len(group), -1, -1):
            try:
                with open(os.path.join(base, *group[:depth], file_name)) as file:
                    yield file.read()
            except (OSError, ValueError):  # no such file from in here
                continue
