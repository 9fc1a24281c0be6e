"""The model's counts over time."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import json
from msgspec.structs import asdict

from duly.core.lifecycle import FINAL, Event, State
from duly.core.operating import TALLY_CHUNK, TALLY_HOURS, TALLY_LAG, TALLY_MINUTES, Tally
from duly.stores.tallies import Grain

from .model import Entry, Model

_ATTEMPTS = {Event.fail: "failed", Event.lose: "lost", Event.interrupt: "redelivered"}
Part = tuple[datetime, str, str, dict[str, Any]]


class ModelTallies:
    """See duly.stores.tallies.TallyStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def fold(self) -> int:
        with self._model.tables.lock:
            tables, seen = self._model.tables, self._model.tables.tallied
            over = (self._model.clock() - TALLY_LAG).replace(second=0, microsecond=0)
            since = over - TALLY_MINUTES if seen is None else max(seen, over - TALLY_HOURS)
            until = min(over, since + TALLY_CHUNK)
            if until <= since:
                return 0
            for at, queue, task, more in self._parts():
                if since <= at < until:
                    minute = at.replace(second=0, microsecond=0)
                    self._add("minute", minute, queue, task, more)
                    self._add("hour", minute.replace(minute=0), queue, task, more)
            tables.tallied = until
            first = {"minute": over - TALLY_MINUTES, "hour": over - TALLY_HOURS}
            tables.tallies = {key: one for key, one in tables.tallies.items() if one.at >= first[key[0]]}
            return (until - since) // timedelta(minutes=1)

    def _parts(self) -> Iterator[Part]:
        for entry in self._model.tables.entries.values():
            queue, task = entry.new.queue, entry.new.task
            if entry.state in FINAL and entry.finished_at is not None:
                yield entry.finished_at, queue, task, _end(entry)
            for attempt in entry.attempts:
                name = _ATTEMPTS.get(attempt.event)
                if name is None or (name == "redelivered" and attempt.started_at is None):
                    continue
                timeout = name == "failed" and attempt.error is not None and attempt.error.type == "Timeout"
                yield attempt.ended_at, queue, task, {name: 1, "timeout": int(timeout)}
        for act in self._model.tables.acts:
            ids = json.decode(act.detail).get("ids") if act.verb == "redrive" else None
            for id in ids if isinstance(ids, list) else []:
                if id in self._model.tables.entries:
                    new = self._model.tables.entries[id].new
                    yield act.at, new.queue, new.task, {"redriven": 1}

    def _add(self, grain: Grain, at: datetime, queue: str, task: str, more: dict[str, Any]) -> None:
        key = (grain, at, queue, task)
        was = asdict(self._model.tables.tallies.get(key, Tally(queue, task, at)))
        self._model.tables.tallies[key] = Tally(
            **{**was, **{name: was[name] + by for name, by in more.items()}}
        )

    def read(
        self,
        by: Grain,
        since: datetime,
        until: datetime | None = None,
        *,
        queues: Sequence[str] | None = None,
        tasks: Sequence[str] | None = None,
    ) -> list[Tally]:
        with self._model.tables.lock:
            return [
                tally
                for (grain, at, queue, task), tally in sorted(self._model.tables.tallies.items())
                if grain == by
                and at >= since
                and (until is None or at < until)
                and (queues is None or queue in queues)
                and (tasks is None or task in tasks)
            ]

    def counted(self) -> datetime | None:
        return self._model.tables.tallied


def _end(entry: Entry) -> dict[str, Any]:
    more: dict[str, Any] = {entry.state.value: 1}
    if entry.state is State.skipped:
        reason = entry.reason or ""
        more["suppressed"] = int(reason == "stale" or reason.startswith("replaced by job "))
    if entry.state is State.completed and entry.started_at is not None and entry.finished_at is not None:
        more |= {"waited": entry.started_at - entry.enqueued_at, "ran": entry.finished_at - entry.started_at}
    return more
