"""What a probe promises: a scratch place beside somebody's jobs, and the bare acts that its machine allows there.

The acts are what no queue can be faster than: a round trip, a commit, a row. Nothing here knows a job.
"""

import os
import re
import time
from typing import Final, Protocol

SCRATCH: Final = "duly_bench_"
"""How the name of every scratch place begins."""

LEFT_BEHIND: Final = 3600.0
"""Seconds after which a scratch place has no owner any more: its process was killed."""

ROWS: Final = 1000
"""Rows of one bulk commit."""

ROW: Final = b'{"sent_at":1234567.891234,"note":"' + b"x" * 64 + b'"}'
"""About what the arguments of a job take."""

_NAME: Final = re.compile(rf"{SCRATCH}(\d+)_[0-9a-f]+")


class Probe(Protocol):
    """Each act blocks and is one transaction of its own. Errors are the store's, as of any of its calls."""

    url: str
    schema: str

    def prepare(self) -> None:
        """Make the scratch place, and remove those whose owners were killed. UsageError where that is not allowed."""

    def round_trip(self) -> None:
        """Ask for nothing, and wait for the answer."""

    def commit(self) -> None:
        """Store one row durably."""

    def unsynced(self) -> None:
        """Store one row without waiting for the disk."""

    def bulk(self) -> int:
        """Store many rows in one commit; how many."""

    def remove(self) -> None:
        """Remove the scratch place with all that is in it; nothing when there is none."""


def new_name() -> str:
    """A name for a scratch place, by which others see how old it is."""
    return f"{SCRATCH}{int(time.time())}_{os.urandom(4).hex()}"


def is_left_behind(name: str) -> bool:
    """Whether a place of this name is one of ours that nobody will remove any more."""
    match = _NAME.fullmatch(name)
    return match is not None and time.time() - int(match.group(1)) > LEFT_BEHIND
