"""What a store promises of access tokens and of its own signing keys. Each sentence has a test on every store."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from duly.core.errors import UsageError
from duly.core.operating import SecretKey, TokenRecord


def name_taken(name: str) -> UsageError:
    """Why a new token was refused."""
    return UsageError(
        f"there is a live token named {name!r}, or one of this text; revoke it, or choose another name"
    )


class TokenStore(Protocol):
    """Tokens by a digest of their text, which is kept nowhere."""

    def put(
        self, name: str, digest: bytes, scopes: Sequence[str], lasting: timedelta | None, by: str, reason: str
    ) -> TokenRecord:
        """Keep a new one; None: until it is revoked. UsageError when a live one has this name, or any this digest."""

    def find(self, digest: bytes) -> TokenRecord | None:
        """Whatever its state. One index probe."""

    def all(self) -> list[TokenRecord]:
        """The newest first, whatever their state."""

    def revoke(self, id: int, by: str, reason: str) -> bool:
        """False when there is no such token, or it is revoked already."""

    def touch(self, ids: Sequence[int]) -> None:
        """They were used now; written at most once a minute each."""

    def secret(self, kind: str, value: bytes) -> SecretKey:
        """The newest key of a kind; made of `value` when there is none: whoever comes first decides for all."""

    def secrets(self, kind: str) -> list[SecretKey]:
        """Every key that proves what it signed, the newest first."""

    def rotate(self, kind: str, value: bytes, by: str, reason: str) -> SecretKey:
        """A new key that signs from now on; the former ones still prove."""

    def forget(self, kind: str, id: int, by: str, reason: str) -> bool:
        """Delete a former key: what it signed proves nothing any more. False for the newest and for an unknown one."""
