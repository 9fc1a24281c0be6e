"""What a task's jobs take before they start, as declared: caps and rates of the task, of arguments, of resources.

Turns declarations into the policies that stores keep. Counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from duly.client.resource import Resource
from duly.core.control import (
    LimitPolicy,
    Rate,
    TaskLimit,
    argument_limit,
    queue_limit,
    read_cap,
    read_rate,
    task_limit,
    tenant_limit,
)
from duly.core.errors import UsageError

if TYPE_CHECKING:
    from duly.client.queue import Queue
    from duly.client.registry import Registry
    from duly.client.task import Task

# What JSON has one text for: stores take the value as it is written in the arguments.
_KEYS: Final = (
    msgspec.inspect.StrType,
    msgspec.inspect.IntType,
    msgspec.inspect.BoolType,
    msgspec.inspect.UUIDType,
    msgspec.inspect.DateType,
    msgspec.inspect.EnumType,
    msgspec.inspect.LiteralType,
    msgspec.inspect.NoneType,
)


class PerKey:
    """A bound for each value of an argument, in the whole fleet: `customer_id: Annotated[int, PerKey(max_running=1)]`.

    Args:
        max_running: how many jobs of the task may run at once for one value.
        rate: how often they may start for one value, as "5/s" or "100/h burst 10".

    """

    def __init__(self, *, max_running: int | None = None, rate: str | None = None) -> None:
        if max_running is None and rate is None:
            raise UsageError(
                "a PerKey bounds something; write PerKey(max_running=1), PerKey(rate='5/s') or both"
            )
        self.max_running = None if max_running is None else read_cap(max_running, "PerKey(max_running)")
        self.rate: Rate | None = None if rate is None else read_rate(rate, "PerKey(rate)")

    def __eq__(self, other: object) -> bool:
        mine = (self.max_running, self.rate)
        return isinstance(other, PerKey) and mine == (other.max_running, other.rate)

    def __hash__(self) -> int:
        return hash((self.max_running, self.rate))

    def __repr__(self) -> str:
        return f"PerKey(max_running={self.max_running}, rate={self.rate})"


def read_uses(said: object) -> tuple[Resource, ...]:
    """UsageError unless it is a list of resources."""
    if isinstance(said, Resource):
        raise UsageError(f"uses={said!r} is one resource; write uses=[{said.name}]")
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise UsageError(f"uses={said!r:.60} is no list of resources; write uses=[stripe], {_MADE}")
    resources = tuple(said)
    for resource in resources:
        if not isinstance(resource, Resource):
            raise UsageError(
                f"uses names {resource!r:.60}, which is no resource; write uses=[stripe], {_MADE}"
            )
    return tuple(dict.fromkeys(resources))


def check_own(uses: Iterable[Resource], registry: Registry, task: str) -> None:
    """UsageError for a resource of another App: its limits would not be this store's."""
    for resource in uses:
        if resource.client.registry is not registry:
            raise UsageError(
                f"task {task!r} uses the resource {resource.name!r} of another App; declare it on this one, with "
                f"jobs.resource({resource.name!r}, …)"
            )


def refuse_bounds_of_first_ack(task: str, ordering_key: str | None, **policy: Any) -> None:
    """UsageError where a bound would end before its job begins."""
    said = [name for name in ("max_running", "uses") if policy[name]]
    said += [] if ordering_key is None else ["ordering_key"]
    if policy["ack"] == "start" and said:
        raise UsageError(
            f"task {task!r}: with ack='start' a job ends for the store before it runs, and {said[0]} bounds nothing; "
            "leave one of them out"
        )


def per_keys(task: Task[..., Any]) -> dict[str, PerKey]:
    """By argument. Reads annotations; UsageError where a value has no single text, or where it may be left out."""
    found: dict[str, PerKey] = {}
    for name, kind in task.arguments.types.items():
        bounds = [note for note in _notes(kind) if isinstance(note, PerKey)]
        where = f"task {task.name!r}: its parameter '{name}'"
        if not bounds:
            if _hides_one(kind):
                raise UsageError(
                    f"{where} has a PerKey inside {kind}; write {name}: Annotated[int, PerKey(…)]"
                )
            continue
        if len(bounds) > 1:
            raise UsageError(f"{where} has {len(bounds)} PerKey; write one, with max_running= and rate=")
        odd = next(
            (part for part in _kinds(msgspec.inspect.type_info(kind)) if not isinstance(part, _KEYS)), None
        )
        if odd is not None:
            raise UsageError(
                f"{where} has a PerKey, and its type is no plain key ({_word(odd)}); text, whole "
                "numbers, UUIDs, dates and enums are: pass the id as a parameter of its own"
            )
        default = task.arguments.default_of(name)
        if default is not None and default is not msgspec.UNSET:
            raise UsageError(
                f"{where} has a PerKey and the default {default!r:.40}: an argument left out is not stored, and "
                'its job would take no limit; remove the default, or make it None for "no limit"'
            )
        found[name] = bounds[0]
    return found


def limits_of(registry: Registry) -> tuple[tuple[LimitPolicy, ...], tuple[TaskLimit, ...]]:
    """All that an App declares. Reads annotations."""
    policies = [policy for queue in registry.queues.values() for policy in _of_queue(queue)]
    policies += [resource.policy for resource in registry.resources.values()]
    takes: list[TaskLimit] = []
    for task in registry.tasks.values():
        own, arguments = _of_task(task)
        policies += own
        # Jobs that are stored under a former name take the same limits.
        takes += [
            TaskLimit(name, policy, of) for name in (task.name, *task.aliases) for policy, of in arguments
        ]
    return (
        tuple(sorted(policies, key=lambda policy: policy.name)),
        tuple(sorted(takes, key=lambda take: (take.task, take.policy))),
    )


def _of_queue(queue: Queue) -> Iterator[LimitPolicy]:
    if queue.max_running is not None or queue.rate is not None:
        yield LimitPolicy(queue_limit(queue.name), queue.max_running, queue.rate)
    if queue.tenant_max_running is not None or queue.tenant_rate is not None:
        yield LimitPolicy(tenant_limit(queue.name), queue.tenant_max_running, queue.tenant_rate)


def _of_task(task: Task[..., Any]) -> tuple[list[LimitPolicy], list[tuple[str, str | None]]]:
    policies: list[LimitPolicy] = []
    takes: list[tuple[str, str | None]] = [(resource.limit, None) for resource in task.uses]
    if task.max_running is not None or task.rate is not None:
        policies.append(LimitPolicy(task_limit(task.name), task.max_running, task.rate))
        takes.append((task_limit(task.name), None))
    for argument, bound in per_keys(task).items():
        name = argument_limit(task.name, argument)
        policies.append(LimitPolicy(name, bound.max_running, bound.rate))
        takes.append((name, argument))
    return policies, takes


def _notes(kind: Any) -> list[Any]:
    """What `Annotated` adds to a type, or to one of several."""
    if get_origin(kind) is Annotated:
        return list(get_args(kind)[1:])
    return [note for part in get_args(kind) for note in _notes(part)] if _is_union(kind) else []


def _word(kind: msgspec.inspect.Type) -> str:
    return type(kind).__name__.removesuffix("Type").lower()


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in {Union, UnionType}


def _hides_one(kind: Any) -> bool:
    return isinstance(kind, PerKey) or any(_hides_one(part) for part in get_args(kind))


def _kinds(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            yield from _kinds(inner)
        case msgspec.inspect.UnionType(types=types):
            for inner in types:
                yield from _kinds(inner)
        case _:
            yield kind


_MADE: Final = "with stripe = jobs.resource('stripe', …)"
