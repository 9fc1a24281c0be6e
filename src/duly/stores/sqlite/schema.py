"""The tables and what is declared in them: the SchemaStore on SQLite."""

from duly.core.names import key_of
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.sqlite import migrating
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.declaring import are_limits_declared, declare_limits
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

    def grant_roles(self) -> tuple[str, ...]:
        return ()

    def roles_sql(self) -> str:
        return ""

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
            declare_limits(session, registration)
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
    queues: set[Row] = set(session.rows("select_queue_policies"))
    tasks: set[Row] = set(session.rows("select_task_policies"))
    stored = {
        record.schedule.name: record.schedule
        for record in records_in(session)
        if record.origin == registration.origin
    }
    return (
        queues.issuperset(tuple(_queue_policy(queue).values()) for queue in registration.queues)
        and tasks.issuperset(tuple(_task_policy(task).values()) for task in registration.tasks)
        and stored == {schedule.name: schedule for schedule, _ in registration.schedules}
        and are_limits_declared(session, registration)
    )


def _queue_policy(queue: QueuePolicy) -> Values:
    """In the order of the columns of `select_queue_policies`."""
    return {
        "name": queue.name,
        "owner": queue.owner,
        "keep": maybe_span(queue.keep),
        "keep_dead": maybe_span(queue.keep_dead),
        "fair": int(queue.fair),
        "ordering": queue.ordering,
        "serialise": int(queue.serialise),
        "wait_target": maybe_span(queue.wait_target),
        "max_depth": queue.max_depth,
        "max_age": maybe_span(queue.max_age),
        "when_full": queue.when_full,
        "importance": queue.importance,
        "reserve": float(queue.reserve),
    }


def _task_policy(task: TaskPolicy) -> Values:
    """In the order of the columns of `select_task_policies`."""
    return {
        "name": task.name,
        "queue": task.queue,
        "priority": task.priority,
        "expires": maybe_span(task.expires),
    }


def _queue_row(queue: QueuePolicy) -> Values:
    return {**_queue_policy(queue), "key": key_of(queue.name)}


def _task_row(task: TaskPolicy) -> Values:
    return {**_task_policy(task), "key": key_of(task.name)}
