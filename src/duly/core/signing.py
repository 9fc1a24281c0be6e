"""Keys that sign short texts: a ring whose first key signs and whose every key verifies.

Pure: secrets come in from outside. Knows neither tickets nor sessions nor where a secret is kept.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

KEY_ID_BYTES: Final = 4
STORE_KIND: Final = "signing"
"""Of the key that a store makes for itself; each purpose derives its own from it."""
MAC_BYTES: Final = 16
"""Half of SHA-256, as short as HMAC may be cut."""


class KeyRing:
    """Signs and verifies for one purpose: a signature made for another purpose is none here."""

    __slots__ = ("_keys", "_signing", "purpose")

    def __init__(self, secrets: Sequence[bytes], purpose: str) -> None:
        """`secrets`: one or more, the one that signs first. ValueError without any."""
        if not secrets:
            raise ValueError("a key ring needs a secret")
        self.purpose = purpose
        derived = [hmac.digest(secret, f"duly {purpose} v1".encode(), "sha256") for secret in secrets]
        self._signing = derived[0]
        # Of two keys with one id the earlier one stays: it may have signed.
        self._keys = {_key_id(key): key for key in reversed(derived)}

    @property
    def key_id(self) -> bytes:
        """Which key signs."""
        return _key_id(self._signing)

    def mac(self, content: bytes) -> bytes:
        """The signature of the first key."""
        return _mac(self._signing, content)

    def verifies(self, key_id: bytes, content: bytes, mac: bytes) -> bool:
        """Whether one of the keys made this signature; takes the same time whatever differs."""
        key = self._keys.get(key_id)
        # An unknown key costs as much as a known one.
        expected = _mac(self._signing if key is None else key, content)
        return hmac.compare_digest(expected, mac) and key is not None

    def knows(self, key_id: bytes) -> bool:
        return key_id in self._keys

    def __repr__(self) -> str:
        return f"<KeyRing {self.purpose}, {len(self._keys)} keys>"


def _key_id(key: bytes) -> bytes:
    return sha256(b"duly key id\0" + key).digest()[:KEY_ID_BYTES]


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")[:MAC_BYTES]
