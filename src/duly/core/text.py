"""Text that every store can hold: without NUL, without lone surrogates, bounded.

Used for what people read (reasons, error messages), never for arguments: those must not change.
"""

from __future__ import annotations

import re

# PostgreSQL's text refuses U+0000, and no UTF-8 codec writes half a surrogate pair.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ELLIPSIS = "…"


def storable(text: str, max_bytes: int) -> str:
    """Return `text` with unstorable characters escaped, cut to `max_bytes` of UTF-8."""
    escaped = _UNSTORABLE.sub(lambda found: rf"\u{ord(found.group()):04x}", text)
    if len(escaped) <= max_bytes // 4:
        return escaped
    data = escaped.encode()
    if len(data) <= max_bytes:
        return escaped
    room = max(0, max_bytes - len(_ELLIPSIS.encode()))
    return data[:room].decode(errors="ignore") + _ELLIPSIS
