"""The flags that commands share: where to look, how to print, which jobs, and who acts why.

Builds the filter and reads values in the core's words; runs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

import click

from duly.core.durations import parse_duration, parse_rate, parse_size
from duly.core.errors import UsageError
from duly.core.filters import Filter, parse_moment
from duly.core.lifecycle import State

from .output import Form
from .session import session_of

Handler = Callable[..., None]
"""The function behind a command: click calls it with keywords only."""
Decorator = Callable[[Handler], Handler]
Read = TypeVar("Read")

_FILTER_FLAGS: Final = (
    ("queue", "NAME", "Only jobs of this queue."),
    ("task", "NAME", "Only jobs of this task."),
    ("tenant", "NAME", "Only jobs of this tenant."),
    ("state", "STATE", f"Only jobs in this state: {', '.join(State)}."),
    ("tag", "TAG", "Only jobs with this tag."),
    ("correlation", "ID", "Only jobs with this correlation id."),
    ("fingerprint", "HEX", "Only jobs that failed with this error, as `duly dead groups` shows it."),
    ("since", "WHEN", "Only jobs enqueued then or later: 2h (ago), or 2026-01-31T10:00Z."),
    ("until", "WHEN", "Only jobs enqueued before then."),
    ("where", "TEXT", "Only jobs whose argument compares so: 'args.customer_id = 7'."),
)


@dataclass(frozen=True, slots=True)
class Act:
    """How a person acts: why, whether to ask first, and whether only to look."""

    reason: str | None
    yes: bool
    dry_run: bool


class Rate(NamedTuple):
    """The value of --rate. `per_second` is None for "max"; no --rate at all is no Rate."""

    per_second: float | None
    text: str


def _reads(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """A click type whose errors are the core's own words."""

    def convert(value: str) -> Read:
        try:
            return read(value)
        except UsageError as error:
            raise click.UsageError(str(error)) from error

    return convert


def duration(flag: str) -> Callable[[str], timedelta]:
    """The type of a flag that takes a span such as 30s or 2h."""
    return _reads(lambda text: parse_duration(text, flag, positive=True))


def size(flag: str) -> Callable[[str], int]:
    """The type of a flag that takes bytes such as 1GiB."""
    return _reads(lambda text: parse_size(text, flag))


def _form(text: str) -> Form:
    if text not in list(Form):
        raise UsageError(f"{text!r} is none of {', '.join(Form)}")
    return Form(text)


def _keep(field: str) -> Callable[[click.Context, click.Parameter, object], None]:
    """Put the value into the session, where every command finds it."""

    def callback(context: click.Context, parameter: click.Parameter, value: object) -> None:
        del parameter
        if value is not None:
            setattr(session_of(context), field, value)

    return callback


def common(command: Handler) -> Handler:
    """-a, --url, -o and -q, which every command takes."""
    command = click.option(
        "-q",
        "--quiet",
        is_flag=True,
        default=None,
        expose_value=False,
        callback=_keep("quiet"),
        help="Only the answer: no headings, hints or progress.",
    )(command)
    command = click.option(
        "-o",
        "--output",
        type=_reads(_form),
        metavar="table|json|ndjson",
        expose_value=False,
        callback=_keep("form"),
        help="For people (table) or programs: one JSON document, or one object a line.",
    )(command)
    command = click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        callback=_keep("url"),
        help="The store: sqlite:///file.db or postgresql://…; else DULY_URL, else the App's.",
    )(command)
    return click.option(
        "-a",
        "--app",
        metavar="MODULE[:NAME]",
        expose_value=False,
        callback=_keep("app_reference"),
        help="The App; else DULY_APP, else [tool.duly] app in pyproject.toml.",
    )(command)


def filters(command: Handler) -> Handler:
    """The filter flags; the command gets `filter: Filter`, and `everything: bool` for --all."""

    @functools.wraps(command)
    def wrapped(**kwargs: Any) -> None:
        parts: dict[str, str | None] = {name: kwargs.pop(f"filter_{name}") for name, _, _ in _FILTER_FLAGS}
        filter = read_filter(parts)
        if kwargs["everything"] and not filter.everything:
            raise UsageError(f"--all and a filter ({filter}) say two things; give one of them")
        command(filter=filter, **kwargs)

    decorated: Handler = wrapped
    decorated = click.option("--all", "everything", is_flag=True, help="Every job; instead of a filter.")(
        decorated
    )
    for name, metavar, text in reversed(_FILTER_FLAGS):
        decorated = click.option(f"--{name}", f"filter_{name}", metavar=metavar, help=text)(decorated)
    return decorated


def read_filter(parts: dict[str, str | None]) -> Filter:
    """The filter that flags describe. UsageError with the fix."""
    now = datetime.now(UTC)

    def moment(name: str) -> datetime | None:
        text = parts.get(name)
        return None if text is None else parse_moment(text, now, f"--{name}")

    state = parts.get("state")
    if state is not None and state not in list(State):
        raise UsageError(f"--state {state!r} is none of {', '.join(State)}")
    return Filter(
        queue=parts.get("queue"),
        task=parts.get("task"),
        tenant=parts.get("tenant"),
        state=None if state is None else State(state),
        tag=parts.get("tag"),
        correlation=parts.get("correlation"),
        fingerprint=parts.get("fingerprint"),
        since=moment("since"),
        until=moment("until"),
        where=parts.get("where"),
    )


def acting(command: Handler) -> Handler:
    """--reason, --yes and --dry-run; the command gets `act: Act`."""

    @functools.wraps(command)
    def wrapped(*, reason: str | None, yes: bool, dry_run: bool, **kwargs: Any) -> None:
        command(act=Act(reason, yes, dry_run), **kwargs)

    decorated: Handler = wrapped
    decorated = click.option("--dry-run", is_flag=True, help="Say what would happen, and do nothing.")(
        decorated
    )
    decorated = click.option("--yes", is_flag=True, help="Do not ask.")(decorated)
    return click.option(
        "--reason", metavar="TEXT", help="Why; kept with the act. Required for more than one job."
    )(decorated)


def rated(command: Handler) -> Handler:
    """--rate; the command gets `rate: Rate | None`."""
    return click.option(
        "--rate",
        metavar="N/s|N/min|max",
        type=_reads(lambda text: Rate(parse_rate(text, "--rate"), text)),
        help="How fast; required for more than 100 jobs. `max` is at once.",
    )(command)
