"""What `duly check` finds: settings, declarations and the store, each finding with its fix.

Reads everything, changes nothing but the mark that a coming purge of dead letters was announced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from duly.client.blobs import Blob
from duly.client.check_exposure import exposed_server, exposed_sinks, exposed_store, is_here
from duly.client.check_runners import half_encrypted, keyless, too_early, unserved, unserved_stored
from duly.client.check_secrets import secret_sentence
from duly.client.client import Client
from duly.client.control_reads import key_troubles
from duly.client.settings import SettingRow
from duly.client.task import Task
from duly.core.defaults import PURGE_NOTICE
from duly.core.durations import compact_duration
from duly.core.errors import DulyError, MigrationNeeded, StoreUnreachable, UsageError

_NAMED: Final = 20
"""Of the schedules that fail: thousands of customers' schedules may fail for one reason."""

Level = Literal["error", "warning", "note"]


class Finding(msgspec.Struct, frozen=True):
    """One thing to know before a worker starts."""

    level: Level
    text: str
    """What is so, and what to do about it."""


class Check(msgspec.Struct, frozen=True):
    """All findings, errors first, and every setting with its origin."""

    findings: tuple[Finding, ...]
    settings: tuple[SettingRow, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way."""
        return all(finding.level != "error" for finding in self.findings)


def check(client: Client, load: Callable[[], None]) -> Check:
    """Look at everything, and go on after an error wherever that makes sense."""
    try:
        settings = client.settings
    except UsageError as error:
        return Check((Finding("error", str(error)),))
    findings = [*_hidden(client), *_declarations(client, load), *_exposed(client), *_store(client)]
    order = {"error": 0, "warning": 1, "note": 2}
    return Check(tuple(sorted(findings, key=lambda finding: order[finding.level])), tuple(settings.rows()))


def _exposed(client: Client) -> Iterator[Finding]:
    """What leaves this machine unguarded, as the settings say."""
    for text in (*exposed_store(client.settings), *exposed_sinks(client.settings)):
        yield Finding("warning", text)
    for text in half_encrypted(client):
        yield Finding("warning", text)
    for text in keyless(client):
        yield Finding("error", text)
    for text in too_early(client):
        yield Finding("note", text)


def _hidden(client: Client) -> Iterator[Finding]:
    for variable in client.settings.hidden:
        yield Finding(
            "warning", f"code hides the environment's {variable}; leave the argument of App() out to obey it"
        )


def _declarations(client: Client, load: Callable[[], None]) -> Iterator[Finding]:
    try:
        load()
    except Exception as error:  # whatever the user's modules raise at import is a finding
        text = str(error) if isinstance(error, DulyError) else f"importing the tasks failed: {error!r}"
        yield Finding("error", text)
    registry, settings = client.registry, client.settings
    for task in registry.tasks.values():
        try:
            # Reads the annotations.
            _ = task.arguments.names
        except DulyError as error:
            yield Finding("error", str(error))
    if not registry.tasks:
        yield Finding("warning", "no task is declared; name their modules in App(include=[…])")
    longer = [task.name for task in registry.tasks.values() if task.timeout > settings.grace]
    if longer:
        yield Finding(
            "note",
            f"{len(longer)} of {len(registry.tasks)} tasks may run longer than the grace of a shutdown "
            f"({compact_duration(settings.grace)}): a deploy hands their jobs back, which costs no attempt",
        )
    for task in registry.tasks.values():
        yield from _of_task(task, settings.blobs)
        queue = registry.queues.get(task.queue)
        if task.ack == "start" and queue is not None and queue.max_running is not None:
            yield Finding(
                "warning",
                f"jobs of {task.name!r} end for the store before they run, so that max_running={queue.max_running} of "
                f"the queue {queue.name!r} does not bound them; give them a queue of their own",
            )
    folder = settings.blobs
    if folder is not None and folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "error", f"the folder of blobs, {folder}, cannot be written; give this user the right to"
        )
    unowned = [queue.name for queue in registry.queues.values() if queue.owner is None]
    if unowned and len(registry.queues) > 1:
        yield Finding(
            "note",
            f"nobody owns {', '.join(unowned)}; say whom dead letters concern: jobs.queue(…, owner='…')",
        )
    unwatched = registry.unwatched(watched=bool(settings.alerts))
    if unwatched:
        yield Finding(
            "warning",
            f"nobody owns {', '.join(unwatched)}, and no alert goes anywhere but into a worker's log; "
            "jobs.queue(…, owner='…', alert='…'), or DULY_ALERTS for all",
        )


def _of_task(task: Task[..., Any], folder: Path | None) -> Iterator[Finding]:
    """What the first enqueue or the first job would say: annotations, the unique key, blobs without a folder."""
    try:
        task.check_unique()
        task.check_bounds()
        blobs = Blob in task.arguments.custom
    except UsageError as error:
        yield Finding("error", str(error))
        return
    if sounds := secret_sentence(task):
        yield Finding("warning", sounds)
    if blobs and folder is None:
        yield Finding(
            "error",
            f"task {task.name!r} takes a Blob, and no folder holds any; write App(blobs='file:///…') or set DULY_BLOBS",
        )


def _store(client: Client) -> Iterator[Finding]:
    try:
        store = client.store
        if not store.capabilities.shared_by_processes:
            yield Finding(
                "note", f"jobs on {store.url} end with this process; write sqlite:///duly.db to keep them"
            )
            return
        if client.settings.migrate in {"check", "off"} and not store.capabilities.shared_by_machines:
            yield Finding("note", "an SQLite file migrates by itself; the setting migrate is for servers")
        found, wanted = client.call(store.schema.version), store.schema.wanted()
        if found < wanted and not store.capabilities.shared_by_machines:
            yield Finding("note", f"{store.url} has no tables of this release yet; the first use makes them")
            return
        if found != wanted:
            yield Finding(
                "error",
                f"the store has schema version {found}, this release wants {wanted}; run: duly migrate",
            )
            return
        for text in client.call(store.inspection.warnings):
            yield Finding("warning", text)
        workers = client.call(store.inspection.workers)
        for text in (*unserved(client, workers), *unserved_stored(client, workers)):
            yield Finding("warning", text)
        if not is_here(client.settings.host):
            tokens = any(token.state == "live" for token in client.call(store.tokens.all))
            for text in exposed_server(client.settings, tokens=tokens):
                yield Finding("warning", text)
        yield from _purges(client)
        yield from _failing(client)
        yield from _keys(client)
        for task in client.call(store.upkeep.parked_tasks):
            yield Finding(
                "warning",
                f"jobs of the task {task!r} wait for a worker that knows it; deploy one, or add an alias",
            )
    except (StoreUnreachable, MigrationNeeded, UsageError) as error:
        yield Finding("error", str(error))


def _keys(client: Client) -> Iterator[Finding]:
    """Ordering keys that are stuck, or hot."""
    troubles = client.call(lambda: [*key_troubles(client)])
    for text in troubles[:_NAMED]:
        yield Finding("warning", text)
    if len(troubles) > _NAMED:
        yield Finding("warning", f"{len(troubles) - _NAMED} more ordering keys are stuck or hot")


def _failing(client: Client) -> Iterator[Finding]:
    failing = [record for record in client.call(client.store.schedules.all) if record.failure is not None]
    for record in failing[:_NAMED]:
        times = "once" if record.failures == 1 else f"{record.failures} times"
        yield Finding(
            "warning",
            f"schedule {record.schedule.name!r} could not enqueue, {times} since its last success: "
            f"{' '.join((record.failure or '').split()):.300}; put that right, it is tried again by itself",
        )
    if len(failing) > _NAMED:
        yield Finding("warning", f"{len(failing) - _NAMED} more schedules fail: duly schedules list")


def _purges(client: Client) -> Iterator[Finding]:
    settings, queues = client.settings, client.registry.queues
    kept = {name: queue.keep_dead for name, queue in queues.items() if queue.keep_dead is not None}
    for name, number, moment in client.call(
        client.store.upkeep.announce_dead, kept, settings.keep_dead, PURGE_NOTICE
    ):
        owner = queues[name].owner if name in queues else None
        yield Finding(
            "warning",
            f"{number} dead letters of {name} (owner: {owner or 'nobody'}) will be deleted from "
            f"{moment:%Y-%m-%d %H:%M} UTC on; look at them: duly dead groups --queue {name}",
        )
