"""Ways into the dashboard: codes that open it once, and the proof that a browser holds from then on.

Both name a stored token by its digest, so that revoking the token ends them. Knows no HTTP.
"""

from __future__ import annotations

import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Malformed
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, Literal, NamedTuple

from duly.client.client import Client
from duly.client.once import once
from duly.client.operate import Operate
from duly.client.settings import Settings
from duly.core.bearer import digest_of
from duly.core.durations import Duration
from duly.core.operating import TokenRecord
from duly.core.signing import KEY_ID_BYTES, MAC_BYTES, KeyRing

PURPOSE: Final = "session"
CODE_LASTS: Final = timedelta(minutes=10)
SESSION_LASTS: Final = timedelta(hours=12)

Kind = Literal["code", "session"]

_DIGEST_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class Login(NamedTuple):
    """A way in that was made for somebody."""

    code: str
    record: TokenRecord


class Proof(NamedTuple):
    """What a signed text says."""

    kind: Kind
    digest: bytes
    """Of the token that it stands for."""
    expires: int
    """Seconds since 1970."""
    nonce: bytes


def make_login(
    operate: Operate, client: Client, scopes: Iterable[str] = ("admin",), *, expires: Duration = "12h"
) -> Login:
    """A code that opens the dashboard once within ten minutes, for a token made for it; blocks.

    The token is called as its author with a random end, and ends by itself; its text is thrown away.
    """
    name = f"{operate.actor()[:180]}-{secrets.token_hex(3)}"
    made = operate.create_token(list(scopes), name=name, expires=expires, reason="a login to the dashboard")
    ring = client.signing.ring(PURPOSE)
    return Login(proof_text(ring, "code", digest_of(made.text), CODE_LASTS), made.record)


def proof_text(
    ring: KeyRing, kind: Kind, digest: bytes, lasting: timedelta, clock: Callable[[], float] = time.time
) -> str:
    """A new proof, signed, as text that fits into an address and into a cookie."""
    expires = int(clock() + lasting.total_seconds())
    content = _content(Proof(kind, digest, expires, secrets.token_bytes(_NONCE_BYTES)))
    return urlsafe_b64encode(ring.key_id + ring.mac(content) + content).rstrip(b"=").decode()


def read_proof(client: Client, text: str, kind: Kind, clock: Callable[[], float] = time.time) -> Proof | None:
    """What such a text says; None for one that is not ours, of another kind, or over. Blocks at its first use."""
    data = _decoded(text)
    if data is None:
        return None
    key_id, mac = data[:KEY_ID_BYTES], data[KEY_ID_BYTES : KEY_ID_BYTES + MAC_BYTES]
    content = data[KEY_ID_BYTES + MAC_BYTES :]
    ring: KeyRing | None = client.signing.ring(PURPOSE)
    if ring is not None and not ring.knows(key_id):
        ring = client.signing.renewed(PURPOSE)
    if ring is None or not ring.verifies(key_id, content, mac):
        return None
    proof = _read(content)
    return proof if proof is not None and proof.kind == kind and proof.expires > clock() else None


def login_link(settings: Settings, code: str, scheme: str = "http") -> str:
    """The address of a one-time login, as clients of the server reach it."""
    base = settings.public_url
    if base is None:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        base = f"{scheme}://{host}:{settings.port}{settings.prefix}"
    return f"{base.rstrip('/')}/ui/login?code={code}"


def use_code(client: Client, text: str) -> Proof | None:
    """What a code says, the first time that it is used; None from then on. Blocks."""
    proof = read_proof(client, text, "code")
    if proof is None:
        return None
    return proof if once(client, f"duly login {proof.nonce.hex()}", None, 2 * CODE_LASTS) else None


def form_mark(ring: KeyRing, holder: str) -> str:
    """What a form must carry to be this holder's own."""
    return ring.mac(b"form\0" + holder.encode()).hex()


def _content(proof: Proof) -> bytes:
    kind = b"c" if proof.kind == "code" else b"s"
    return kind + proof.digest + proof.expires.to_bytes(8, "big") + proof.nonce


def _read(content: bytes) -> Proof | None:
    if len(content) != 1 + _DIGEST_BYTES + 8 + _NONCE_BYTES:
        return None
    digest, rest = content[1 : 1 + _DIGEST_BYTES], content[1 + _DIGEST_BYTES :]
    kind: Kind = "code" if content[:1] == b"c" else "session"
    return Proof(kind, digest, int.from_bytes(rest[:8], "big"), rest[8:])


def _decoded(text: str) -> bytes | None:
    if not text.isascii() or len(text) > 200:
        return None
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Malformed, ValueError):
        return None
