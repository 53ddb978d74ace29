"""Amounts of memory as people read and write them."""

from __future__ import annotations

from .whole_numbers import as_float


def show_bytes(count: float) -> str:
    count = as_float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if unit != "bytes" else f"{count:.0f} bytes"
        count /= 1024
    return f"{count:.3g} EiB"


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def read_bytes(limit: int | float | str | None) -> int | None:
    """Bytes from a number or from text with a unit."""
    if limit is None:
        return None
    try:
        if isinstance(limit, str):
            text = limit.strip().upper()
            number = text.rstrip("KMGTIB ")
            count = int(float(number) * _UNITS[text[len(number) :].strip() or "B"])
        else:
            count = int(limit)
            if isinstance(limit, bool) or count != limit:
                raise ValueError
        if count <= 0:
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError):
        wanted = "a whole number of bytes above 0, or text like '2GiB' or '500MB'"
        raise ValueError(f"memory_limit {limit!r} is not {wanted}") from None
    return count
