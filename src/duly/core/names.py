"""Names that people give (queue, task, tenant, tag …): what they may hold, and their 64-bit keys.

Knows no store; the stores' schemas repeat the lengths of `LENGTHS` as checks.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, Literal

from duly.core.errors import UsageError

Kind = Literal[
    "queue", "task", "tenant", "tag", "correlation id", "actor", "key", "step", "schedule", "resource", "lock"
]

# In characters. 200 holds a UUID, an e-mail address or a dotted path with room to spare, and
# keeps every index entry of a store below a third of a page even at four bytes a character.
LENGTHS: Final[dict[Kind, int]] = {
    "queue": 100,
    "task": 200,
    "tenant": 200,
    "tag": 100,
    "correlation id": 200,
    "actor": 200,
    "key": 255,
    "step": 200,
    "schedule": 100,
    "resource": 100,
    "lock": 200,
}

# C0 and C1 controls with DEL, the two Unicode line ends, and halves of surrogate pairs.
_REFUSED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# The command line splits `--queues mail:8,reports:2` and `task:NAME` there.
_SEPARATORS: Final[dict[Kind, re.Pattern[str]]] = {
    "queue": re.compile(r"[,:\s]"),
    "task": re.compile(r"[,\s]"),
    "schedule": re.compile(r"[,\s]"),
    "resource": re.compile(r"[,\s]"),
}


def check_name(kind: Kind, value: str) -> str:
    """Return `value` if it may name a `kind`; raise UsageError with the offending part else."""
    if not isinstance(value, str):
        raise UsageError(f"a {kind} is text, not {type(value).__name__}: {value!r:.60}")
    if not value.strip():
        raise UsageError(f"a {kind} must not be empty; give it a name or leave it out")
    if found := _REFUSED.search(value):
        raise UsageError(
            f"{kind} {value[:60]!r} holds {_described(found.group())} at position {found.start()}; remove it"
        )
    if value != value.strip():
        raise UsageError(f"{kind} {value[:60]!r} has blanks around it; write {value.strip()!r}")
    if len(value) > LENGTHS[kind]:
        raise UsageError(
            f"{kind} {value[:40] + '…'!r} has {len(value)} characters; at most {LENGTHS[kind]} fit"
        )
    separators = _SEPARATORS.get(kind)
    if separators and (found := separators.search(value)):
        raise UsageError(
            f"{kind} {value!r} holds {found.group()!r}, which separates names on the command "
            "line; write '-', '_' or '.' instead"
        )
    return value


def _described(character: str) -> str:
    code = ord(character)
    if code == 0:
        return "a NUL character"
    if 0xD800 <= code <= 0xDFFF:
        return f"a lone surrogate U+{code:04X}"
    return f"the control character U+{code:04X}"


def key_of(name: str) -> int:
    """Return the signed 64-bit key of a name: the same in every release, never 0.

    0 is free to mean "no name". Composed and decomposed letters are different names.
    """
    # SHA-256, because SQL can make it, too: triggers and other languages name queues and tasks.
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True) or 1


def suspect_key(queue: str) -> int:
    """Return the key of a queue's lane of suspects: jobs with a lost attempt behind them."""
    # No name holds U+001F, so that this lane is nobody's queue.
    return key_of(f"{queue}\x1fsuspect")
