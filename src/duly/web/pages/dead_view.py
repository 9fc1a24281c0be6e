"""What the pages of dead letters show: groups in rows, the words for their state, and arguments as a form has them.

Facts in, rows out; asks nothing.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from duly.client.triage_reads import NO_ERROR, TriagedGroup
from duly.core.errors import UsageError
from duly.core.filter_text import write_filter
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.web.pages.packing import pack
from duly.web.shapes import readable

EDITABLE: Final = 64 * 1024
"""Bytes of arguments that a form shows; more are edited from a shell."""
TONES: Final = {"new": "bad", "acknowledged": "warn", "fixed": "good"}


class Row(Struct, frozen=True):
    """One group of a list."""

    group: TriagedGroup
    word: str
    tone: str
    name: str
    """Its fingerprint as an address has it."""
    kind: str
    """The type of its error."""
    message: str
    packed: str
    """What its forms carry."""
    q: str
    """The same letters in the list of jobs; "" where no filter finds them."""


def row_of(group: TriagedGroup) -> Row:
    kind, _, message = group.error.partition(": ")
    again = group.regressed_at is not None
    return Row(
        group,
        "new again" if again else group.state,
        TONES[group.state],
        group.fingerprint or NO_ERROR,
        kind,
        message,
        pack(group.fingerprint, group.queue, group.task, stands(group)),
        write_filter(letters(group)) if group.fingerprint else "",
    )


def letters(group: TriagedGroup) -> Filter:
    """The dead letters of a group that has an error."""
    return Filter(queue=group.queue, task=group.task, state=State.dead, fingerprint=group.fingerprint)


def stands(group: TriagedGroup) -> str:
    """How a group stood when a page showed it: marked again since, a mark made from that page would be a guess."""
    return f"{group.state} {group.owner or ''} {group.at.isoformat() if group.at else ''}"


def args_text(args: bytes) -> str | None:
    """Arguments as JSON in lines, everything odd written out; None where they cannot be shown or are too long."""
    if len(args) > EDITABLE:
        return None
    try:
        found = _shown(args)
        return None if found is None else json.dumps(found, indent=2, ensure_ascii=True)
    except (ValueError, RecursionError):
        return None


def changes_of(args: bytes, text: str) -> dict[str, Any]:
    """What somebody has changed in the text of `args_text`. UsageError for what is no object, or lacks an argument."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the arguments are no JSON: {error}") from None
    before = _shown(args) or {}
    if not isinstance(said, dict):
        raise UsageError('the arguments are a JSON object, such as {"order_id": 7}')
    if gone := [name for name in before if name not in said]:
        raise UsageError(
            f"{', '.join(gone)[:200]} is missing; an edit changes arguments, and takes none away"
        )
    # What was hidden on the page comes back as it was shown, and stays as it is stored.
    return {
        name: value for name, value in said.items() if name not in before or not _same(before[name], value)
    }


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: Python's True is 1, JSON's is not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _shown(args: bytes) -> dict[str, Any] | None:
    value = readable(args)
    if value is None:
        return None
    found = json.loads(msgspec.json.encode(value))
    return found if isinstance(found, dict) else None
