"""Notifications for a program: on its standard input, and in its environment."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from duly.core.errors import UsageError
from duly.core.notification import Notification, SinkFailed

_TIMEOUT: Final = timedelta(seconds=10)
_TOLD: Final = 300


@dataclass(frozen=True, slots=True)
class Command:
    """Run a program, without a shell.

    It gets the notification as JSON on its standard input, and ALERT_ID, ALERT_RULE, ALERT_TARGET, ALERT_STATE and
    ALERT_TEXT in its environment. It has taken it when it ends with 0; at its time it is killed.

    Args:
        arguments: the program and what follows, each on its own.
        timeout: how long it may run.

    """

    arguments: tuple[str, ...]
    timeout: timedelta = _TIMEOUT

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0]:
            raise UsageError("a command needs a program, as command:/usr/local/bin/page?arg=team-a")

    @classmethod
    def from_url(cls, rest: str) -> Command:
        """`/usr/local/bin/page?arg=a&arg=b`."""
        parts = urlsplit(rest)
        args = [value for name, value in parse_qsl(parts.query, keep_blank_values=True) if name == "arg"]
        return cls((unquote(parts.path), *args))

    def send(self, note: Notification) -> None:
        """SinkFailed with the end of what it wrote to standard error."""
        words = {
            "ID": note.id,
            "RULE": note.rule,
            "TARGET": note.target,
            "STATE": note.state,
            "TEXT": note.text,
        }
        environment = {
            **os.environ,
            **{f"ALERT_{name}": value.replace("\0", "") for name, value in words.items()},
        }
        name = self.arguments[0]
        try:
            done = subprocess.run(
                self.arguments,
                input=msgspec.json.encode(note),
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.timeout.total_seconds(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SinkFailed(f"{name} did not end within {self.timeout.total_seconds():g} s") from None
        except (OSError, ValueError) as error:
            raise SinkFailed(f"{name} cannot be run: {error}") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_TOLD:]
            raise SinkFailed(f"{name} ended with {done.returncode}" + (f": {said}" if said else ""))
