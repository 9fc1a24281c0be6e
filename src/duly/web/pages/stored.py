"""Stored arguments and results as a page shows them: readable JSON, cut, with what is secret left out."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from duly.web.shapes import readable

SHOWN: Final = 8_000
"""Characters of one value on a page."""
INDENTED: Final = 256 * 1024
"""Bytes up to which a value is set out in lines."""


class Stored(Struct, frozen=True):
    """One value."""

    text: str
    size: int
    """Bytes as stored."""
    told: str | None = None
    """Said instead of a value that cannot be shown."""

    @property
    def cut(self) -> bool:
        return len(self.text) > SHOWN


def stored(data: bytes | None) -> Stored | None:
    """What `web.shapes.readable` lets out of it; None for nothing."""
    if data is None:
        return None
    value = readable(data)
    try:
        # Deep values are valid, but no page sets them out in lines.
        text = msgspec.json.encode(value)
        if value is not None and len(text) <= INDENTED:
            text = msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, RecursionError):
        value = None
        text = b""
    if value is None:
        return Stored(
            "",
            len(data),
            "no JSON that can be shown here: it is nested too deep, or written by another program",
        )
    return Stored(text.decode("utf-8", "replace"), len(data))
