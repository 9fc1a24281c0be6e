"""A dead letter's job with other arguments: checked as the task declares them, with the keys that follow from them.

Makes the job; stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from duly.client.asked import refuse_unfit
from duly.client.client import Client
from duly.client.encoding import new_job
from duly.client.task import Task
from duly.core.encoding import encode_value
from duly.core.envelope import is_sealed
from duly.core.errors import DulyError, UsageError
from duly.core.job import NewJob

Values = Mapping[str, msgspec.Raw]


def edited(client: Client, asked: NewJob, changes: Mapping[str, object]) -> NewJob:
    """The job with these arguments in place of its own. UsageError or PayloadError for what the task does not take."""
    if not changes:
        raise UsageError("an edit changes an argument: args={'address': 'ada@example.com'}")
    sealed = is_sealed(asked.args)
    if sealed:
        clear = client.sealing.open_arguments(asked.queue, asked.task, asked.tenant, asked.args)
        asked = replace(asked, args=clear)
    given = arguments_of(asked)
    task = client.registry.find(asked.task)
    if task is None:
        _refuse_other_kinds(asked.task, given, changes)
    bounds = client.settings.bounds
    new = {
        **given,
        **{name: msgspec.Raw(encode_value(value, bounds, "argument")) for name, value in changes.items()},
    }
    if task is None:
        made = replace(asked, args=encode_value(new, bounds, "argument"))
        return client.sealing.seal_job(made) if sealed else made
    refuse_unfit(task, new)
    return _with_keys(asked, _made(task, new, client), _made_before(task, given, client))


def arguments_of(asked: NewJob) -> dict[str, msgspec.Raw]:
    """As stored, each byte for byte. UsageError where they cannot be read."""
    try:
        return msgspec.json.decode(asked.args, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise UsageError(
            f"the arguments of this {asked.task} are no JSON object that can be read; enqueue a new job"
        ) from None


def kind_of(value: object) -> str:
    """What JSON calls a decoded value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


def _refuse_other_kinds(task: str, given: Values, changes: Mapping[str, object]) -> None:
    """All that can be said without the code of the task."""
    for name, value in changes.items():
        if name not in given:
            raise UsageError(
                f"this {task} has no argument {name!r:.80}, only {', '.join(given) or 'none'}; name the App (-a) whose "
                "task it is to give it one that it lacks"
            )
        old = msgspec.json.decode(given[name])
        if old is not None and value is not None and kind_of(old) != kind_of(value):
            raise UsageError(
                f"{name} is {kind_of(old)}, not {kind_of(value)}; name the App (-a) if its task takes both"
            )


def _made(task: Task[..., Any], values: Values, client: Client) -> NewJob:
    decoded = task.arguments.decode(msgspec.json.encode(values))
    return new_job(task.draft(**decoded), None, client)


def _made_before(task: Task[..., Any], values: Values, client: Client) -> NewJob | None:
    """What the old arguments give today; None where the task no longer takes them."""
    try:
        return _made(task, values, client)
    except DulyError:
        return None


def _with_keys(asked: NewJob, made: NewJob, before: NewJob | None) -> NewJob:
    """Keys that follow from the arguments follow the new ones; those that were given at the enqueue stay."""
    job = replace(asked, args=made.args, blobs=tuple(dict.fromkeys((*asked.blobs, *made.blobs))))
    if before is None:
        return job
    if before.tenant == asked.tenant:
        job = replace(job, tenant=made.tenant)
    if before.ordering_key == asked.ordering_key:
        job = replace(job, ordering_key=made.ordering_key)
    mine, theirs = before.unique, asked.unique
    if mine is not None and theirs is not None and mine.digest == theirs.digest:
        job = replace(job, unique=made.unique)
    return job
