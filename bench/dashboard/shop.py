"""Whose jobs they are: queues, tasks, tenants, tags, errors and ordering keys. Knows no store and no SQL."""

from dataclasses import dataclass

from duly.core.control import ordering_name
from duly.core.names import key_of, suspect_key

KINDS = 997
"""A prime, so that the kind of a job has nothing to do with its state, which follows from the last digits of its id."""
QUEUES = 20
TASKS = 40
TENANTS = 250
TAGS = 50
ERRORS = 300


@dataclass(frozen=True, slots=True)
class Kind:
    """One of a few combinations, of which each job is one."""

    number: int
    queue: str
    queue_key: int
    suspect_key: int
    task: str
    task_key: int
    tenant: str
    tag: str
    fingerprint: str
    message: str
    traceback: str
    ordering_key: str
    ordering: int


def kinds() -> list[Kind]:
    """All combinations; the first queue, tenant and error have many of them, as in life."""
    return [_kind(number) for number in range(KINDS)]


def tasks() -> list[tuple[str, str]]:
    """(task, its queue)."""
    return [(f"task_{number:02}", f"queue-{number // 2:02}") for number in range(TASKS)]


def _kind(number: int) -> Kind:
    task, queue = tasks()[_few(number, TASKS)]
    tenant = f"tenant-{_few(number * 7, TENANTS):03}"
    error = _few(number * 11, ERRORS)
    key = f"customer:{number}"
    frames = "".join(
        f'  File "/srv/shop/app/module_{error}_{depth}.py", line {depth * 17 + error}, in step_{depth}\n'
        f"    await self.call(order, retry={depth})\n"
        for depth in range(8)
    )
    message = f"service {error} answered 503 to order"
    return Kind(
        number,
        queue,
        key_of(queue),
        suspect_key(queue),
        task,
        key_of(task),
        tenant,
        f"tag-{number % TAGS:02}",
        f"{error * 2_654_435_761 % 2**32:08x}",
        message,
        f"Traceback (most recent call last):\n{frames}ConnectionError: {message}\n",
        key,
        key_of(ordering_name(queue, tenant, key)),
    )


def _few(number: int, most: int) -> int:
    """A third of all are the first one."""
    return 0 if number % 3 == 0 else number % most
