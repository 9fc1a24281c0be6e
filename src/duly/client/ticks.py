"""A tick: rows of a database that are ready become jobs, each once, in the transaction that read them.

Knows the store's connection only as something to execute SQL on. Called by workers, on a thread of theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from string import Formatter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from duly.client.encoding import new_job
from duly.client.registry import nearest
from duly.core.defaults import ENQUEUE_BATCH
from duly.core.errors import KeyReused, UsageError
from duly.core.job import NewJob, Stored
from duly.core.names import check_name

if TYPE_CHECKING:
    from duly.client.task import Task
    from duly.stores.protocol import Store

Source = str | Callable[[Any], Iterable[Any]]

_FORM: Final = "a row is a mapping, a named tuple or a tuple of the task's arguments"


class Tick:
    """How the ready rows of one source become jobs of one task."""

    def __init__(self, task: Task[..., Any], source: Source, key: str) -> None:
        self.task = task
        self._read = _reader(task, source)
        self._key = key
        self._signature = task.handler.callers_signature()
        _check_template(task, key, self._signature)

    @property
    def queue(self) -> str:
        """Where its jobs go."""
        draft = self.task.draft()
        return draft.options.queue or draft.declaration.queue

    def jobs(self, connection: Any, trigger: str) -> Iterator[NewJob]:
        """Read the source and describe the job of each row, one after the other. UsageError for a row of no form."""
        rows: object = self._read(connection)
        if not isinstance(rows, Iterable):
            raise UsageError(
                f"tick over {self.task.name!r}: source returned {rows!r:.60}; return rows, or [] where none is ready"
            )
        for row in rows:
            args, kwargs = _arguments(self.task, row)
            try:
                given = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise UsageError(
                    f"tick over {self.task.name!r}: {error}; {_FORM}, not {row!r:.80}"
                ) from error
            given.apply_defaults()
            key = check_name("key", self._key.format_map(given.arguments))
            draft = self.task.using(idempotency_key=key).draft(*args, **kwargs)
            yield replace(new_job(draft, None), trigger=trigger)


def enqueue_ready(store: Store, connection: Any, tick: Tick, trigger: str) -> tuple[list[Stored], list[str]]:
    """Store a job for each ready row in the transaction on `connection`: (answers, what was refused).

    A row whose key came back with other arguments is refused by itself: the rest goes on.
    """
    stored: list[Stored] = []
    refused: list[str] = []
    for jobs in _batches(tick.jobs(connection, trigger)):
        try:
            stored += store.enqueue_on(connection, jobs)
        except KeyReused:
            for job in jobs:
                try:
                    stored += store.enqueue_on(connection, [job])
                except KeyReused as error:
                    refused.append(str(error))
    return stored, refused


def _batches(jobs: Iterator[NewJob]) -> Iterator[list[NewJob]]:
    while batch := list(islice(jobs, ENQUEUE_BATCH)):
        yield batch


def _reader(task: Task[..., Any], source: Source) -> Callable[[Any], Iterable[Any]]:
    if isinstance(source, str):
        if not source.strip():
            raise UsageError(
                f"tick over {task.name!r}: source is empty; write a select of the task's arguments"
            )
        return lambda connection: _selected(connection, source)
    if not callable(source):
        raise UsageError(f"tick over {task.name!r}: source={source!r:.60} is neither SQL nor a function")
    if inspect.iscoroutinefunction(source) or inspect.isasyncgenfunction(source):
        raise UsageError(
            f"tick over {task.name!r}: source is async, and the connection it gets is not; write it as a `def`"
        )
    return source


def _selected(connection: Any, sql: str) -> Iterator[Any]:
    cursor = connection.execute(sql)
    if cursor.description is None:
        raise UsageError(f"the tick's source returns no rows: {sql:.80}; write a select")
    names = [column[0] for column in cursor.description]
    for row in cursor:
        # Whatever the connection makes of a row, its values come in the order of the columns.
        values = [row[name] for name in names] if isinstance(row, Mapping) else row
        yield dict(zip(names, values, strict=True))


def _arguments(task: Task[..., Any], row: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if hasattr(row, "_asdict"):
        row = row._asdict()
    elif hasattr(row, "keys") and not isinstance(row, Mapping):
        # sqlite3.Row: its own iteration gives the values.
        row = dict(zip(row.keys(), row, strict=True))
    if isinstance(row, Mapping):
        return (), {str(name): value for name, value in row.items()}
    if isinstance(row, tuple):
        return row, {}
    raise UsageError(f"tick over {task.name!r}: {_FORM}, not {row!r:.80}")


def _check_template(task: Task[..., Any], key: str, signature: inspect.Signature) -> None:
    if not isinstance(key, str):
        raise UsageError(
            f"tick over {task.name!r}: key={key!r:.60} is no text; write key='{task.name}:{{id}}'"
        )
    try:
        fields = [field for _, field, _, _ in Formatter().parse(key) if field is not None]
    except ValueError as error:
        raise UsageError(f"tick over {task.name!r}: key={key!r} is no template: {error}") from error
    parameters = list(signature.parameters)
    if not fields:
        raise UsageError(
            f"tick over {task.name!r}: key={key!r} is the same for every row; name an argument, such as "
            f"'{task.name}:{{{parameters[0] if parameters else 'id'}}}'"
        )
    for field in fields:
        if field not in parameters:
            raise UsageError(
                f"tick over {task.name!r}: key={key!r} names {field!r}, which is no parameter"
                f"{nearest(field, parameters)}"
            )
