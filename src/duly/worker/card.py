"""What the worker keeps of a task: everything an attempt needs, looked up once per process.

Knows the Task's declaration; runs nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from duly.client.job import ResultEncoder
from duly.client.task import Task
from duly.core.decide import Policy
from duly.core.defaults import MAX_INTERRUPTS
from duly.core.job import ClaimedJob

LOOP: Final = 0
THREAD: Final = 1
PROCESS: Final = 2
KIND_OF: Final = {"loop": LOOP, "thread": THREAD, "process": PROCESS}


class Card:
    """One task, ready to run."""

    __slots__ = (
        "ack_first", "decode", "encode", "encrypted", "fn", "guards", "is_async", "kind", "name", "permanent", "policy",
        "queue", "sealing", "takes_job", "timeout", "transient", "watched",
    )  # fmt: skip

    def __init__(self, task: Task[..., Any], kind: int | None = None) -> None:
        self.name = task.name
        self.queue = task.queue
        self.kind = KIND_OF[task.isolation] if kind is None else kind
        self.is_async = task.handler.is_async
        self.fn: Callable[..., Any] = task.fn
        self.takes_job = task.takes_job
        self.timeout = task.timeout.total_seconds()
        self.ack_first = task.ack == "start"
        task.check_bounds()
        self.guards = task.guards
        self.watched = tuple(resource.limit for resource in task.uses if resource.breaker is not None)
        """Resources whose breakers count how its attempts end."""
        self.permanent = task.permanent
        self.transient = task.transient
        self.policy = Policy(task.attempts, task.backoff, MAX_INTERRUPTS)
        # Both resolve annotations now, so that a name that cannot be found stops the start and not a job.
        self.decode: Callable[[bytes], dict[str, Any]] = task.arguments.decode
        self.encode: ResultEncoder = task.handler.encode_result
        self.encrypted = task.encrypted
        """Whether payloads of its jobs in a queue are stored encrypted."""
        self.sealing = task.sealing

    def time_to_run(self, job: ClaimedJob) -> float:
        return self.timeout if job.timeout is None else job.timeout.total_seconds()


def cards_of(tasks: Mapping[str, Task[..., Any]]) -> dict[str, Card]:
    """Every task under its name and its aliases. UsageError for one that cannot run."""
    cards: dict[str, Card] = {}
    for task in tasks.values():
        card = Card(task)
        for name in (task.name, *task.aliases):
            cards[name] = card
    return cards
