"""The tables and what is declared in them: the SchemaStore on SQLite."""

from duly.core.names import key_of
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.sqlite import migrating
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import Values
from duly.stores.sqlite.schedules import declare_in, records_in
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import maybe_span


class SQLiteSchema:
    """See duly.stores.protocol.SchemaStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """Creates neither file nor tables."""
        return self._database.version()

    def wanted(self) -> int:
        return migrating.wanted()

    def migrate(self) -> list[str]:
        """One transaction for all that is missing."""
        return self._database.migrate()

    def sql(self) -> str:
        return migrating.script(self._database.prefix)

    def declare(self, registration: Registration) -> bool:
        """Takes the write lock only when something differs from what is stored."""
        with self._database.read(snapshot=True) as session:
            latest = _is_latest(session, registration)
            if latest is False:
                return False
            if latest and _is_declared(session, registration):
                return True
        with self._database.write() as session:
            latest = _is_latest(session, registration)
            if latest is False:
                return False
            if latest is None:
                _see(session, registration)
            session.many("upsert_queue", [_queue_row(queue) for queue in registration.queues])
            session.many("upsert_task", [_task_row(task) for task in registration.tasks])
            declare_in(session, registration.origin, registration.schedules)
        return True

    def declared(self) -> tuple[dict[str, str], dict[str, str]]:
        with self._database.read(snapshot=True) as session:
            return dict(session.rows("select_queues")), dict(session.rows("select_tasks"))


def _is_latest(session: Session, registration: Registration) -> bool | None:
    """Whether no other release of the same origin was first seen later; None when this one was never seen."""
    own, latest = session.rows("select_release", origin=registration.origin, release=registration.release)[0]
    return None if own is None else own == latest


def _see(session: Session, registration: Registration) -> None:
    _, latest = session.rows("select_release", origin=registration.origin, release=registration.release)[0]
    session.run(
        "insert_release",
        origin=registration.origin,
        release=registration.release,
        # After all others, whatever the clock says.
        first_seen=max(session.now, (latest or 0) + 1),
    )


def _is_declared(session: Session, registration: Registration) -> bool:
    known: set[Row] = set(session.rows("select_policies"))
    stored = {
        record.schedule.name: record.schedule
        for record in records_in(session)
        if record.origin == registration.origin
    }
    return (
        known.issuperset(_queue_policy(queue) for queue in registration.queues)
        and known.issuperset(_task_policy(task) for task in registration.tasks)
        and stored == {schedule.name: schedule for schedule, _ in registration.schedules}
    )


def _queue_policy(queue: QueuePolicy) -> Row:
    return ("queue", queue.name, queue.owner, maybe_span(queue.keep), maybe_span(queue.keep_dead))


def _task_policy(task: TaskPolicy) -> Row:
    return ("task", task.name, task.queue, task.priority, maybe_span(task.expires))


def _queue_row(queue: QueuePolicy) -> Values:
    _, name, owner, keep, keep_dead = _queue_policy(queue)
    return {"name": name, "key": key_of(name), "owner": owner, "keep": keep, "keep_dead": keep_dead}


def _task_row(task: TaskPolicy) -> Values:
    _, name, queue, priority, expires = _task_policy(task)
    return {"name": name, "key": key_of(name), "queue": queue, "priority": priority, "expires": expires}
