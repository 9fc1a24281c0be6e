"""The ticket: a short signed text with which its holder follows one job, and nothing else.

version, key id, job, issued, expires, kept, words, MAC; base64url. Signed, not encrypted: words must be fit for the
holder's eyes. Pure: the time and the keys come in from outside.
"""

from __future__ import annotations

import binascii
import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from duly.core.errors import UsageError
from duly.core.job import JobId
from duly.core.signing import KEY_ID_BYTES, MAC_BYTES, KeyRing

PURPOSE: Final = "ticket"
MAX_WORD: Final = 300
MAX_TICKET: Final = 4_000
"""Characters. A longer text is no ticket, and is not even decoded."""

_VERSION: Final = 1
_HEAD: Final = struct.Struct(f">B{KEY_ID_BYTES}sqqII")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = timedelta(seconds=2**32 - 1)
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+")
_LINK: Final = re.compile(r"(?:https?://[^/?#@\\\s]+(?:[/?#][^\s\\]*)?|/(?![/\\])[^\s\\]*)", re.IGNORECASE)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


_SHORT: Final = {"title": "t", "link": "l", "failed": "f", "reasons": "r"}


class TicketError(ValueError):
    """The text is no ticket of this ring: forged, cut, or signed with a key that is gone."""

    def __init__(self, message: str, *, unknown_key: bool = False) -> None:
        super().__init__(message)
        self.unknown_key = unknown_key
        """Whether a ring with newer keys might know it."""


class Words(Struct, frozen=True, omit_defaults=True, rename=_SHORT):
    """What the app has to say to the holder, inside the ticket itself."""

    title: str = ""
    """What was asked for: "Your receipt"."""
    link: str = ""
    """Where the result is, once it is done: http(s), or a path of the site."""
    failed: str = ""
    """What to read and to do when it does not work out."""
    reasons: bool = False
    """Whether the reason of a Dead("…") or Skip("…") is fit for the holder, and shown."""


NO_WORDS: Final = Words()


class Ticket(Struct, frozen=True):
    """One ticket as it reads."""

    job: JobId
    issued: datetime
    """UTC, not before the job was stored: a job that was stored later under the same number is another one."""
    expires: datetime
    """Whole seconds after."""
    kept: timedelta
    """How long the job's record stays after its end, at least: before issued + kept no finished job is gone."""
    words: Words = NO_WORDS

    def expired(self, now: datetime) -> bool:
        return now >= self.expires

    def may_be_gone(self, now: datetime) -> bool:
        """Whether a missing record can mean that it is no longer kept; before, that it is not visible yet."""
        return now >= self.issued + self.kept


def check_words(title: str | None, link: str | None, failed: str | None, *, reasons: bool = False) -> Words:
    """UsageError with what to write instead."""
    for name, value in (("title", title), ("link", link), ("failed", failed)):
        if value is None:
            continue
        if not isinstance(value, str):
            raise UsageError(f"{name}={value!r:.60} is text for the holder of the ticket")
        if len(value) > MAX_WORD:
            raise UsageError(f"{name} has {len(value)} characters; at most {MAX_WORD} fit into a ticket")
        if _CONTROL.search(value):
            raise UsageError(f"{name}={value!r:.60} holds characters that do not show; remove them")
    if link and not is_link(link):
        raise UsageError(f"link={link!r:.80} is no link; write https://… or a path of the site as /orders/7")
    if not isinstance(reasons, bool):
        raise UsageError(f"reasons={reasons!r:.60} is True or False")
    return Words(title or "", link or "", failed or "", reasons)


def is_link(text: str) -> bool:
    """Whether a browser may be sent there: http(s) without user names, or a path of the site; never a script."""
    return len(text) <= 2_000 and _LINK.fullmatch(text) is not None and _CONTROL.search(text) is None


def write_ticket(ring: KeyRing, ticket: Ticket) -> str:
    """The text to hand out. UsageError when it is valid for longer than a ticket can say."""
    life = ticket.expires - ticket.issued
    if not timedelta(0) < life <= _LONGEST:
        raise UsageError("expires is longer than a ticket can be valid; write 100 years or less")
    head = _HEAD.pack(
        _VERSION,
        ring.key_id,
        ticket.job,
        (ticket.issued - _EPOCH) // timedelta(microseconds=1),
        int(life.total_seconds()),
        int(min(ticket.kept, _LONGEST).total_seconds()),
    )
    words = b"" if ticket.words == NO_WORDS else msgspec.json.encode(ticket.words)
    content = head + words
    return urlsafe_b64encode(content + ring.mac(content)).rstrip(b"=").decode()


def read_ticket(ring: KeyRing, text: str) -> Ticket:
    """The ticket in a text from outside, expired or not; TicketError for what `write_ticket` did not write."""
    raw = _decoded(text)
    if len(raw) < _HEAD.size + MAC_BYTES:
        raise TicketError("too short for a ticket")
    content, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    version, key_id, job, issued, life, kept = _HEAD.unpack_from(content)
    if not ring.verifies(key_id, content, mac):
        raise TicketError("not signed by this site", unknown_key=not ring.knows(key_id))
    if version != _VERSION:
        raise TicketError("a ticket of another release")
    begun = _EPOCH + timedelta(microseconds=issued)
    words = content[_HEAD.size :]
    return Ticket(
        JobId(job),
        begun,
        begun + timedelta(seconds=life),
        timedelta(seconds=kept),
        msgspec.json.decode(words, type=Words) if words else NO_WORDS,
    )


def _decoded(text: str) -> bytes:
    if len(text) > MAX_TICKET or _ALPHABET.fullmatch(text) is None:
        raise TicketError("no ticket")
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise TicketError("no ticket") from error
    # Unused bits of the last character would make several texts of one ticket.
    if urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise TicketError("no ticket")
    return raw
