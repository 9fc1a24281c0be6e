"""Ordering keys that need a person: stuck behind a dead or lasting head, or hot, with too many jobs for one at a time.

Records in, sentences out; knows no store and no clock.
"""

from datetime import datetime, timedelta
from typing import Final, Literal

from duly.core.control import KeyRecord
from duly.core.why import counted, resume_key_command, span

KeyState = Literal["stuck", "hot", "moving"]

LASTING: Final = timedelta(hours=1)
"""A head that has owned its key for longer while others wait is told of."""
HOT: Final = 1_000
"""So many jobs that wait in one key are told of."""


def key_state(key: KeyRecord, now: datetime) -> KeyState:
    """Whether a key goes on by itself."""
    if not key.waiting:
        return "moving"
    if key.state == "dead" or key.paused or (key.head is not None and now - key.since >= LASTING):
        return "stuck"
    return "hot" if key.waiting >= HOT else "moving"


def key_trouble(key: KeyRecord, now: datetime) -> str | None:
    """What is wrong with a key, and what to do; None for one that goes on."""
    if not key.waiting:
        return None
    name = f"ordering key {key.key} of {key.queue}" + (f" (tenant {key.tenant})" if key.tenant else "")
    waits = "1 job waits" if key.waiting == 1 else f"{counted(key.waiting)} jobs wait"
    resume = resume_key_command(key.queue, key.tenant, key.key)
    if key.state == "dead":
        return (
            f"{name} is stuck: {waits} behind job {key.head}, which is dead. duly dead redrive {key.head}, or on "
            f"without it: {resume}"
        )
    if key.paused:
        return f"{name} is stuck: it is paused since a job of it died, and {waits}. {resume}"
    if key.head is not None and now - key.since >= LASTING:
        state = key.state or "gone"
        return (
            f"{name} is stuck: job {key.head} ({state}) has owned it for {span(now - key.since)}, and {waits} behind "
            f"it. duly why {key.head}"
        )
    if key.waiting >= HOT:
        return f"{name} is hot: {waits}, and they run one at a time. Split it, as by a part of the key"
    return None
