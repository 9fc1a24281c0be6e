"""The text of access tokens and the digest by which a store knows them. Pure: randomness is passed in."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final

PREFIX: Final = "duly_"
"""Secret scanners find it by this."""
RANDOM_BYTES: Final = 32

_TEXT: Final = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")


def make_text(random: bytes) -> str:
    """A token of 32 random bytes."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a token is made of {RANDOM_BYTES} random bytes, not {len(random)}")
    return PREFIX + urlsafe_b64encode(random).rstrip(b"=").decode()


def is_text(text: str) -> bool:
    """Whether it may be a token; what is none is refused without asking anybody."""
    return _TEXT.fullmatch(text) is not None


def digest_of(text: str) -> bytes:
    """What is stored. A plain hash is enough for 256 random bits: nobody can try them out."""
    return sha256(text.encode()).digest()
