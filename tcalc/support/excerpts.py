"""Text that is shortened, for messages."""

from __future__ import annotations

#: Characters of a line of a message.
WIDTH = 100


def shortened(text: str, width: int = WIDTH) -> str:
    """The text on one line, with an ellipsis in its middle where it is long."""
    text = " ".join(text.split())
    half = width // 2 - 2
    return text if len(text) <= width else f"{text[:half]}...{text[-half:]}"
