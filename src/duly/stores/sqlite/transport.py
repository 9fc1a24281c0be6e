"""Values on their way into one statement as JSON, where each as a parameter of its own would cost more than its row."""

from collections.abc import Sequence
from typing import Final

import msgspec

_NUL: Final = b"\0"


def as_text(data: bytes) -> str | None:
    """Bytes as a text that SQLite's JSON gives back as the same bytes; None where it would not."""
    # Its JSON ends a text at a NUL.
    if _NUL in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def texts_of(values: Sequence[bytes]) -> str | None:
    """A JSON list of such texts; None where one of them cannot be."""
    if _NUL in b"".join(values):
        return None
    try:
        return msgspec.json.encode([value.decode() for value in values]).decode()
    except UnicodeDecodeError:
        return None


def ids_text(ids: Sequence[int]) -> str:
    return msgspec.json.encode(ids).decode()
