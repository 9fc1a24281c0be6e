"""Values on their way into one statement as JSON, where each as a parameter of its own would cost more than its row."""

from typing import Final

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
