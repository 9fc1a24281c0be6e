"""Events as log lines: text on a terminal, else one JSON object per line.

Writes whole lines to a file descriptor of its own, so that a handler that closes or redirects sys.stdout or
sys.stderr does not silence the worker.
"""

import os
import threading
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec

from duly.telemetry.events import Happening
from duly.telemetry.hub import weight

Form = Literal["text", "json"]


class Log:
    """A listener for a Hub. `descriptor` is duplicated at once."""

    def __init__(self, form: Form | None = None, level: str = "info", descriptor: int = 2) -> None:
        try:
            self._descriptor = os.dup(descriptor)
        except OSError:
            # Started with stderr closed.
            self._descriptor = os.open(os.devnull, os.O_WRONLY)
        os.set_inheritable(self._descriptor, False)
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        self._closing.atexit = False
        self.form: Form = form or ("text" if os.isatty(self._descriptor) else "json")
        self._least = weight(level)
        self._lock = threading.Lock()

    def __call__(self, event: Happening) -> None:
        if weight(event.level) < self._least:
            return
        line = _text(event) if self.form == "text" else _json(event)
        with self._lock, suppress(OSError):
            # The reader of our log went away: work goes on.
            os.write(self._descriptor, line)

    def close(self) -> None:
        with suppress(OSError):
            self._closing()


def _text(event: Happening) -> bytes:
    mark = "" if event.level == "info" else f"{event.level.upper()} "
    return f"{datetime.now(UTC):%H:%M:%S} {mark}{event.sentence()}\n".encode(errors="replace")


def _json(event: Happening) -> bytes:
    fields: dict[str, object] = msgspec.to_builtins(event)
    line = {
        "at": datetime.now(UTC),
        "level": event.level,
        "event": type(event).__name__,
        "pid": os.getpid(),
        "text": event.sentence(),
        **fields,
    }
    if "id" in fields and "task" in fields:
        # As the lines of a job's own handler call it.
        line["job_id"] = fields["id"]
    return msgspec.json.encode(line) + b"\n"
