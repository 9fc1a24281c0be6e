"""What caused a job, as text that stores carry: the W3C traceparent of its enqueue and the job whose handler did it.

Reads and writes that text and traceparents; knows no tracing library.
"""

import re
from typing import Final

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRIGGER: Final = re.compile(r"trace:([0-9a-f-]{55})(?:;job:([0-9]+))?")
_EDITED: Final = re.compile(r"edited:([0-9]+)")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16


def read_traceparent(text: str | None) -> str | None:
    """A `traceparent` header as version 00 has it; None for what is none, as the specification wants it ignored.

    Of a later version the four fields that version 00 knows are taken.
    """
    found = _TRACEPARENT.fullmatch(text.strip()) if text else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or trace == _NO_TRACE or span == _NO_SPAN or (version == "00" and more):
        return None
    return f"00-{trace}-{span}-{flags}"


def made_traceparent(trace: bytes, span: bytes, *, sampled: bool = False) -> str:
    """A traceparent of 16 and 8 random bytes."""
    return f"00-{trace.hex()}-{span.hex()}-{int(sampled):02x}"


def trigger_with(traceparent: str, job: int | None = None) -> str:
    """What a job says of the span that enqueued it, and of the job in whose handler that was."""
    return f"trace:{traceparent}" if job is None else f"trace:{traceparent};job:{job}"


def traceparent_of(trigger: str | None) -> str | None:
    """The span that enqueued a job; None where nobody traced it, or something else has caused it."""
    found = _TRIGGER.fullmatch(trigger) if trigger else None
    return found and found[1]


def parent_of(trigger: str | None) -> int | None:
    """The job whose handler enqueued this one, where that is known, or the dead one that it is an edited copy of."""
    if (edited := edited_from(trigger)) is not None:
        return edited
    found = _TRIGGER.fullmatch(trigger) if trigger else None
    return int(found[2]) if found is not None and found[2] else None


def edited_trigger(job: int) -> str:
    """What a job says that runs with edited arguments in the place of a dead one."""
    return f"edited:{job}"


def edited_from(trigger: str | None) -> int | None:
    """The dead job in whose place this one runs."""
    found = _EDITED.fullmatch(trigger) if trigger else None
    return None if found is None else int(found[1])


def is_trace(trigger: str | None) -> bool:
    """Whether a trigger is the trace of a plain enqueue, which people need not read."""
    return trigger is not None and trigger.startswith("trace:")
