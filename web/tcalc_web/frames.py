"""Messages on a stream between two processes: JSON after its length in four bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("!I")


def frame(message: Any) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Messages out of the bytes that have come so far."""

    def __init__(self, longest: int) -> None:
        self._held = bytearray()
        self._longest = longest

    def fed(self, data: bytes) -> Iterator[Any]:
        """The messages that are whole after these bytes.

        Raises
        ------
        ValueError
            Where one would be longer than it may be.
        """
        self._held += data
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            if length > self._longest:
                raise ValueError(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._held) < end:
                return
            body = bytes(self._held[_LENGTH.size : end])
            del self._held[:end]
            yield json.loads(body)
