"""Signatures of outgoing messages by the Standard Webhooks specification, and how a receiver checks one.

Pure: secrets and times come in from outside. Knows no HTTP.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from duly.core.errors import UsageError

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TOLERANCE: Final = timedelta(minutes=5)
PREFIX: Final = "whsec_"

_LEAST: Final = 24
_MOST: Final = 64


class NotGenuine(ValueError):
    """The message is not from who holds the secret, or not from now."""


def read_secret(text: str, name: str = "secret") -> bytes:
    """The key in "whsec_…": 24 to 64 bytes in base64. UsageError, which does not show it, for anything else."""
    body = text.strip().removeprefix(PREFIX)
    try:
        key = b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not _LEAST <= len(key) <= _MOST:
        raise UsageError(
            f"{name} is no secret of webhooks: write whsec_ and {_LEAST} to {_MOST} random bytes in base64, as from "
            "python -c 'import base64, secrets; print(\"whsec_\" + base64.b64encode(secrets.token_bytes(32)).decode())'"
        )
    return key


def signed_headers(keys: Sequence[bytes], id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three headers of one message; one signature for each key, so that a receiver may change its own.

    `id` names the message and stays the same when it is sent again; it holds no full stop. `at` is aware.
    """
    if not keys:
        raise ValueError("a message is signed with at least one key")
    stamp = str(int(at.timestamp()))
    signatures = " ".join(f"v1,{_signature(key, id, stamp, body)}" for key in keys)
    return {ID: id, TIMESTAMP: stamp, SIGNATURE: signatures}


def check_message(
    keys: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
    tolerance: timedelta = TOLERANCE,
) -> str:
    """The id of a genuine message, by which a receiver takes it once; `headers` with names in small letters.

    `body` is what arrived, byte for byte. NotGenuine for another signature, and for one older or newer than
    `tolerance`.
    """
    id, stamp, signatures = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not id or not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 12):
        raise NotGenuine("the headers of a signed message are missing")
    if abs(now.timestamp() - int(stamp)) > tolerance.total_seconds():
        raise NotGenuine("the message is not from now")
    expected = [_signature(key, id, stamp, body).encode() for key in keys]
    given = [part[3:].encode() for part in signatures.split(" ") if part.startswith("v1,")]
    # All pairs, so that the time tells nothing of which one came near.
    matches = [hmac.compare_digest(one, other) for one in expected for other in given]
    if not any(matches):
        raise NotGenuine("no signature fits")
    return id


def _signature(key: bytes, id: str, stamp: str, body: bytes) -> str:
    return b64encode(hmac.digest(key, f"{id}.{stamp}.".encode() + body, "sha256")).decode()
