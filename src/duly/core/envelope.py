"""Payloads that only who holds a key can read: AES-256-GCM, bound to what they belong to. Knows no job and no store.

Sealed JSON is JSON again, so that whatever carries arguments and results carries it: an object with one member.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from duly.core.errors import UsageError

PREFIX: Final = b'{"$sealed":"1.'
"""How every sealed payload begins."""
_SUFFIX: Final = b'"}'
_ID: Final = 8
NONCE_BYTES: Final = 12


class NotOpened(UsageError):
    """A sealed payload that cannot be read: it was changed, or belongs to something else."""


class KeyNotHeld(NotOpened):
    """The key that sealed a payload is not among those that this process has."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"it is encrypted with the key {key}, which this process does not have; add that key to DULY_KEYS, behind "
            "the first one"
        )
        self.key = key


def is_sealed(data: bytes | None) -> bool:
    """Whether stored bytes are a sealed payload."""
    return data is not None and data.startswith(PREFIX)


def key_of(data: bytes) -> str:
    """Which key sealed a payload, as eight hexadecimal digits; "?" where it does not say."""
    found = data[len(PREFIX) : len(PREFIX) + _ID]
    return found.decode() if len(found) == _ID and found.isalnum() else "?"


class Keys:
    """A ring of keys: the first one seals, every one opens what it has sealed."""

    __slots__ = ("_by_id", "first")

    def __init__(self, secrets: Sequence[bytes]) -> None:
        """`secrets`: one or more texts that nobody can guess. UsageError without the library that encrypts."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise UsageError(
                "payload keys are set, and cryptography is not installed: pip install 'duly[crypto]'"
            ) from error
        derived = [hmac.digest(secret, b"duly payload v1", "sha256") for secret in secrets]
        self._by_id: dict[str, tuple[bytes, Any]] = {}
        for key in reversed(derived):
            self._by_id[_id(key)] = (key, AESGCM(key))
        self.first = _id(derived[0])
        """The id of the key that seals."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The one that seals, then the others."""
        return (self.first, *(id for id in reversed(self._by_id) if id != self.first))

    def seal(self, data: bytes, about: Sequence[str], nonce: bytes | None) -> bytes:
        """Encrypt, for whoever knows what it is `about`; `nonce`: NONCE_BYTES random ones that are used only here.

        Without one it is made of what is sealed, so that equal data about the same is sealed to equal bytes.
        """
        key, cipher = self._by_id[self.first]
        bound = _bound(about)
        nonce = nonce or _synthetic(key, data, bound)
        text = urlsafe_b64encode(nonce + cipher.encrypt(nonce, data, bound))
        return b"".join((PREFIX, self.first.encode(), b".", text, _SUFFIX))

    def open(self, data: bytes, about: Sequence[str]) -> bytes:
        """Decrypt; data that is not sealed is returned as it is. KeyNotHeld, NotOpened."""
        if not is_sealed(data):
            return data
        found = self._by_id.get(key_of(data))
        if found is None:
            raise KeyNotHeld(key_of(data))
        try:
            text = urlsafe_b64decode(data[len(PREFIX) + _ID + 1 : -len(_SUFFIX)])
            opened: bytes = found[1].decrypt(text[:NONCE_BYTES], text[NONCE_BYTES:], _bound(about))
        except (NoBase64, ValueError) as error:
            raise _spoilt() from error
        except Exception as error:
            # InvalidTag, which is imported with the library only.
            if type(error).__name__ != "InvalidTag":
                raise
            raise _spoilt() from error
        return opened

    def __repr__(self) -> str:
        return f"<Keys {', '.join(self.ids)}>"


def _spoilt() -> NotOpened:
    return NotOpened(
        "it was changed since it was encrypted, or belongs to another job, queue, task or tenant"
    )


def _id(key: bytes) -> str:
    return sha256(b"duly key id\0" + key).hexdigest()[:_ID]


def _bound(about: Sequence[str]) -> bytes:
    return msgspec.json.encode(list(about))


def _synthetic(key: bytes, data: bytes, bound: bytes) -> bytes:
    """A nonce made of all that is sealed: it comes again only with the very same, which tells that they are equal."""
    secret = hmac.digest(key, b"duly nonce v1", "sha256")
    return hmac.digest(secret, len(bound).to_bytes(8, "big") + bound + data, "sha256")[:NONCE_BYTES]
