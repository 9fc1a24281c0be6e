"""What a person sees of an error: one line that says what to do, and an exit code that scripts can test.

Knows every error that may reach the command line; prints nothing but through `report`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from duly.core.errors import (
    AlreadyOpen,
    ConnectionMismatch,
    DulyError,
    LeaseLost,
    MigrationNeeded,
    NotFound,
    PayloadError,
    QueueFull,
    StoreUnreachable,
    UsageError,
)
from duly.stores.faults import Transient

if TYPE_CHECKING:
    from collections.abc import Mapping


class Exit(IntEnum):
    """The exit codes of every command."""

    ok = 0
    failed = 1
    usage = 2
    not_found = 3
    conflict = 4
    unreachable = 5
    interrupted = 130


class Failed(DulyError):
    """The command did what it was asked, and the answer is no (a check failed, a job ended dead)."""


class Conflict(DulyError):
    """The thing is there, but no longer in a state that allows the act."""


class Problem(NamedTuple):
    """One error as it is shown."""

    kind: str
    message: str
    exit: Exit


# The first class that fits counts: the more special ones stand before their bases.
_KINDS: Mapping[type[BaseException], tuple[str, Exit]] = {
    Failed: ("failed", Exit.failed),
    Conflict: ("conflict", Exit.conflict),
    LeaseLost: ("conflict", Exit.conflict),
    QueueFull: ("queue_full", Exit.conflict),
    AlreadyOpen: ("usage", Exit.usage),
    PayloadError: ("usage", Exit.usage),
    UsageError: ("usage", Exit.usage),
    ConnectionMismatch: ("usage", Exit.usage),
    NotFound: ("not_found", Exit.not_found),
    MigrationNeeded: ("migration_needed", Exit.unreachable),
    StoreUnreachable: ("unreachable", Exit.unreachable),
    Transient: ("unreachable", Exit.unreachable),
    DulyError: ("failed", Exit.failed),
    click.UsageError: ("usage", Exit.usage),
    click.ClickException: ("failed", Exit.failed),
    OSError: ("failed", Exit.failed),
}


def explain(error: BaseException) -> Problem | None:
    """How an error is shown; None for one that is a fault of duly's own and deserves its traceback."""
    for known, (kind, code) in _KINDS.items():
        if isinstance(error, known):
            return Problem(kind, _message(error), code)
    return None


def report(problem: Problem, *, as_json: bool) -> None:
    """Print it on stderr: one line for people, one JSON object for programs."""
    if as_json:
        body = {"error": {"kind": problem.kind, "message": problem.message, "exit": int(problem.exit)}}
        click.echo(msgspec.json.encode(body).decode(), err=True)
    else:
        click.echo(click.style("error: ", fg="red", bold=True) + problem.message, err=True)


def _message(error: BaseException) -> str:
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx is not None else "duly"
        text = error.format_message().rstrip(".")
        return f"{text[:1].lower()}{text[1:]} (see {where} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    return str(error) or type(error).__name__
