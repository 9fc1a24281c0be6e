"""What an App declares of limits, as rows: written when something differs, and read back to tell.

Queues, tasks and schedules are told next door; what the bounds do to jobs is the business of claims.
"""

import json
from collections.abc import Iterable

from duly.core.control import BreakerPolicy, LimitPolicy, TaskLimit
from duly.core.names import key_of
from duly.core.registration import Registration
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import MICROSECOND, span
from duly.stores.sqlite.transport import ids_text


def are_limits_declared(session: Session, registration: Registration) -> bool:
    """Whether the stored limits of an App, and those of its tasks, are these."""
    origin = registration.origin
    stored = {row for row in session.rows("select_limit_policies") if row[-1] == origin}
    tasks = _tasks(registration)
    taken = {row for row in session.rows("select_task_limits") if row[0] in tasks}
    return stored == {_policy_row(limit, origin) for limit in registration.limits} and taken == set(
        _task_rows(registration.task_limits)
    )


def declare_limits(session: Session, registration: Registration) -> None:
    """Make the limits of an App, and those of its tasks, those given."""
    if are_limits_declared(session, registration):
        # Whatever changes a bound makes every claimer read all of them anew.
        return
    names = json.dumps([limit.name for limit in registration.limits])
    session.run("delete_limit_policies", origin=registration.origin, names=names)
    session.tuples(
        "upsert_limit_policy", [_policy_row(limit, registration.origin) for limit in registration.limits]
    )
    session.run("delete_task_limits", tasks=ids_text([*_tasks(registration)]))
    session.tuples("insert_task_limit", _task_rows(registration.task_limits))


def breaker_of(text: str | None) -> BreakerPolicy | None:
    """From the stored text."""
    if text is None:
        return None
    failures, min_calls, window, cool_down = json.loads(text)
    return BreakerPolicy(failures, min_calls, window * MICROSECOND, cool_down * MICROSECOND)


def _breaker_text(breaker: BreakerPolicy | None) -> str | None:
    if breaker is None:
        return None
    return json.dumps([breaker.failures, breaker.min_calls, span(breaker.window), span(breaker.cool_down)])


def _policy_row(limit: LimitPolicy, origin: str) -> Row:
    """(name, max_running, interval, burst, breaker, origin)."""
    rate = limit.rate
    interval, burst = (None, None) if rate is None else (float(rate.interval), rate.burst)
    return (limit.name, limit.max_running, interval, burst, _breaker_text(limit.breaker), origin)


def _tasks(registration: Registration) -> set[int]:
    return {key_of(task.name) for task in registration.tasks} | {
        key_of(limit.task) for limit in registration.task_limits
    }


def _task_rows(limits: Iterable[TaskLimit]) -> list[Row]:
    """(task, name, argument)."""
    return [(key_of(limit.task), limit.policy, limit.argument) for limit in limits]
