"""Why a queue's jobs wait as long as they do: its cap and how slow its tasks have become, one tenant's flood, its dead.

Facts in, sentences out, each with the command that changes it; knows no store and no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from duly.core.operating import Tally
from duly.core.why import Reason, counted, quoted, span

SHARE: Final = 0.5
"""From this share of what waits on a tenant is told of."""
FEW: Final = 50
"""Of so few waiting jobs no tenant is."""
RAISED: Final = 3
"""A cap that is told of is proposed to be so many times as large, for a time."""
SLOWER: Final = 1.5
"""Times as long as before: less is no news."""
_LONG: Final = 80


class Group(Struct, frozen=True):
    """Dead letters of one error in the queue."""

    fingerprint: str
    count: int
    first: datetime
    error: str
    said: str = ""
    """What people say of it, such as "acknowledged by ada"."""


def cap_reason(queue: str, running: int, most: int | None, tasks: Sequence[str]) -> Reason | None:
    """That as many run as may; `tasks` are those of the running jobs, or of some."""
    if most is None or running < most:
        return None
    text = f"its cap is reached: {counted(running)} of {counted(most)} run"
    if tasks:
        name, often = Counter(tasks).most_common(1)[0]
        part = "all" if often == len(tasks) else f"{often} of {len(tasks)}"
        text += f", {part} of them {name}"
    return Reason(
        "cap", text, f"duly limit {quoted(queue)} --max-running {most * RAISED} --for 2h --reason WHY"
    )


def slow_reasons(now_: Iterable[Tally], before: Iterable[Tally]) -> Iterator[Reason]:
    """Tasks that take longer than they did, the one that takes the most time first."""
    then = _means(before)
    found = []
    for task, (mean, total) in _means(now_).items():
        was = then.get(task, (None, None))[0]
        if was is not None and was > timedelta(0) and mean > was * SLOWER:
            found.append(
                (total, Reason("slow", f"{task} takes {span(mean)} on average, {span(was)} a day ago"))
            )
    yield from (reason for _, reason in sorted(found, key=lambda one: -one[0]))


def tenant_reason(queue: str, seen: Sequence[str], ready: int, *, fair: bool) -> Reason | None:
    """That most of what waits is one tenant's; `seen` are the tenants of waiting jobs, or of the oldest and newest."""
    named = Counter(tenant for tenant in seen if tenant)
    if ready < FEW or not named:
        return None
    tenant, often = named.most_common(1)[0]
    if often < len(seen) * SHARE or (often == len(seen) == ready):
        return None
    if len(seen) >= ready:
        text = f"tenant {tenant} has {counted(often)} of the {counted(ready)} jobs that wait"
    else:
        text = (
            f"tenant {tenant} has about {round(100 * often / len(seen))} % of the {counted(ready)} jobs that wait "
            f"({often} of the {len(seen)} looked at)"
        )
    whose = f"--tenant {quoted(tenant)}"
    if fair:
        text += "; each tenant has its turn"
        change = f"duly limit {quoted(queue)} {whose} --max-running 5 --for 2h --reason WHY"
    else:
        # A tenant's limit holds in fair queues only.
        text += "; fair is off, so that others wait behind them"
        change = f"duly block --queue {quoted(queue)} {whose} --for 30m --reason WHY"
    return Reason("tenant", text, change)


def dead_reasons(queue: str, groups: Sequence[Group], now: datetime, shown: int = 3) -> Iterator[Reason]:
    """What has died, the largest groups first; the last sentence is of the others."""
    for group in groups[:shown]:
        error = group.error if len(group.error) <= _LONG else group.error[: _LONG - 1] + "…"
        said = f", {group.said}" if group.said else ""
        text = f"{counted(group.count)} dead, the first {span(now - group.first)} ago: {error or 'no error told'}"
        if not group.fingerprint:
            yield Reason("dead", text + said, f"duly dead list --queue {quoted(queue)}")
        else:
            yield Reason("dead", f"{text} ({group.fingerprint}{said})", f"duly dead show {group.fingerprint}")
    if left := groups[shown:]:
        many = sum(group.count for group in left)
        text = f"{counted(many)} more dead of {len(left)} other error{'' if len(left) == 1 else 's'}"
        yield Reason("dead", text, f"duly dead groups --queue {quoted(queue)}")


def _means(tallies: Iterable[Tally]) -> dict[str, tuple[timedelta, timedelta]]:
    """By task: how long a completed run took on average, and all of them together."""
    jobs: Counter[str] = Counter()
    ran: dict[str, timedelta] = {}
    for tally in tallies:
        jobs[tally.task] += tally.completed
        ran[tally.task] = ran.get(tally.task, timedelta(0)) + tally.ran
    return {task: (ran[task] / number, ran[task]) for task, number in jobs.items() if number}
