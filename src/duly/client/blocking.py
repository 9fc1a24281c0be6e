"""Catches blocking calls inside a running event loop, where each would stop every other request.

Warns once per calling line; raises under the setting `debug`. Knows nothing of what the call does.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from types import FrameType
from typing import Final

from duly.core.errors import UsageError

# Frames of the package itself are skipped, to name the user's own line.
_OURS: Final = __name__.partition(".")[0] + "."

_told: set[tuple[str, int]] = set()
_strict = False


class BlockingCallWarning(RuntimeWarning):
    """A blocking call inside a running event loop: await its `a` twin instead."""


def be_strict(yes: bool) -> None:
    """Raise instead of warning, for the whole process: what the setting `debug` asks for."""
    global _strict  # noqa: PLW0603 - a warning has no App to ask; the setting is the process's
    _strict = yes


def refuse_blocking(call: str, instead: str) -> None:
    """Warn, or raise UsageError when strict, if this thread's event loop is running."""
    if not loop_is_running():
        return
    frame = _caller()
    place = (frame.f_code.co_filename, frame.f_lineno)
    text = f"{call} blocks the running event loop; write `{instead}`"
    if _strict:
        raise UsageError(f"{text} ({place[0]}:{place[1]})")
    if place not in _told:
        _told.add(place)
        warnings.warn_explicit(
            f"{text} ({place[0]}:{place[1]})",
            BlockingCallWarning,
            *place,
            module=frame.f_globals.get("__name__"),
        )


def loop_is_running() -> bool:
    """Whether this thread is inside a running event loop."""
    # The public form raises where there is none, which costs ten times as much.
    return asyncio._get_running_loop() is not None


def _caller() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_OURS):
        frame = frame.f_back
    return frame
