"""What a form is about, as one hidden field: names as they are stored, and how the thing stood when it was shown.

A browser changes line ends and controls in a field; these come back as they went. Knows no page.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from duly.web.problems import Refused

FIELD: Final = "what"


def pack(*values: str) -> str:
    """Texts as one field."""
    written = [value.encode("utf-8", "surrogatepass").hex() for value in values]
    return urlsafe_b64encode(msgspec.json.encode(written)).decode()


def unpack(text: str, count: int) -> list[str]:
    """So many texts. Refused, 400, for a field that no page has made."""
    try:
        written = msgspec.json.decode(urlsafe_b64decode(text.encode("ascii")), type=list[str])
        values = [bytes.fromhex(value).decode("utf-8", "surrogatepass") for value in written]
    except ValueError:
        values = []
    if len(values) != count:
        raise Refused(
            400, "The form cannot be read", "go back, load the page again, and send the form from there"
        )
    return values


def check_fresh(seen: str, stands: str, what: str) -> None:
    """Refused, 409, when something no longer stands as it did on the page; nothing is done then."""
    if seen != stands:
        raise Refused(
            409,
            f"{what} has changed since you looked",
            f"it was {seen or 'nothing'} then, and is {stands or 'gone'} now; look again, and decide again",
        )
