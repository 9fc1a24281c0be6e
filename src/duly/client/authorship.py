"""Who acts, and why: the two words that every act of a person leaves behind. Knows no store."""

from __future__ import annotations

import getpass
import os
import socket
from contextvars import ContextVar
from typing import Final

from duly.client.settings import Settings
from duly.core.defaults import MAX_REASON
from duly.core.errors import UsageError
from duly.core.text import storable
from duly.stores.audits import AUDITED

_TAG: Final = 100


acting: Final[ContextVar[str | None]] = ContextVar("duly_acting", default=None)
"""Who asks, where a server acts for somebody else."""


def author(settings: Settings) -> str:
    """DULY_ACTOR, else user@host."""
    said = settings.actor
    return said if said is not None else f"{_user()}@{socket.gethostname()}"


def audit_tag(settings: Settings) -> str:
    """The tag of an audited job: who enqueues it here and now."""
    name = " ".join((acting.get() or author(settings)).split())
    return storable(f"{AUDITED}:{name}", _TAG)


def reason_given(reason: str, *, needed: bool = False) -> str:
    """The reason as it can be stored. UsageError where one is needed and none was given."""
    if not isinstance(reason, str):
        raise UsageError(f"reason={reason!r:.60} is text")
    if needed and not reason.strip():
        raise UsageError(
            "an act on more than one job needs a reason: whoever finds them will read it; add reason='…'"
        )
    return storable(reason.strip(), MAX_REASON)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container whose user has no entry in passwd.
        return str(os.getuid())
