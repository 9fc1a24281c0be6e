"""A task's unique key: a template over its arguments, checked at first use, filled in for each job."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duly import RESULT, App, Unique, UsageError
from duly.client.enqueue import new_job
from duly.client.unique import UniqueTemplate
from duly.core.job import UniqueKey
from duly.core.keys import unique_digest


@dataclass
class Order:
    id: int


class Region(enum.Enum):
    eu = "europe"


def key_of(draft: Any) -> UniqueKey | None:
    return new_job(draft, None).unique


def queued(task: str, key: str, tenant: str = "") -> UniqueKey:
    return UniqueKey(unique_digest(task, tenant, key))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (7, "7"),
        (1.5, "1.5"),
        (None, "None"),
        (True, "True"),
        (Region.eu, "europe"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Decimal("9.90"), "9.90"),
        (date(2030, 1, 2), "2030-01-02"),
        (datetime(2030, 1, 2, 3, tzinfo=UTC), "2030-01-02T03:00:00+00:00"),
        (Path("/srv/a"), "/srv/a"),
    ],
)
def test_text_numbers_and_moments_fill_a_template(value: Any, text: str) -> None:
    template = UniqueTemplate.of("handler", "item:{item}!")

    assert template.fill({"item": value}) == Unique(f"item:{text}!")


def test_a_template_takes_parts_defaults_and_doubled_braces(jobs: App) -> None:
    @jobs.task(unique=Unique("{order.id}/{{{step}}}", scope="live", on_conflict="replace"))
    def handler(order: Order, step: str = "first") -> None: ...

    key = key_of(handler.draft(Order(7)))

    assert key == UniqueKey(unique_digest("handler", "", "7/{first}"), live=True, replace=True)
    assert key_of(handler.draft(Order(7), step="second")) != key
    assert handler.unique == Unique("{order.id}/{{{step}}}", scope="live", on_conflict="replace")


def test_a_key_belongs_to_its_task_and_tenant(jobs: App) -> None:
    @jobs.task(unique="{n}")
    def one(n: int) -> None: ...

    @jobs.task(unique="{n}")
    def two(n: int) -> None: ...

    keys = {key_of(draft) for draft in (one.draft(1), two.draft(1), one.using(tenant="acme").draft(1))}

    assert len(keys) == 3


def test_a_literal_key_takes_the_place_of_the_tasks_and_keeps_its_scope(jobs: App) -> None:
    @jobs.task(unique=Unique("order:{n}", scope="live"))
    def handler(n: int) -> None: ...

    @jobs.task
    def plain(n: int) -> None: ...

    text = key_of(handler.using(unique_key="{n}").draft(1))
    whole = key_of(handler.using(unique_key=Unique("k", on_conflict="replace")).draft(1))

    assert text == UniqueKey(unique_digest("handler", "", "{n}"), live=True)
    assert whole == UniqueKey(unique_digest("handler", "", "k"), replace=True)
    assert key_of(plain.using(unique_key="k").draft(1)) == queued("plain", "k")
    assert key_of(plain.draft(1)) is None


def test_a_template_with_an_unknown_parameter_names_it_at_first_use(jobs: App) -> None:
    @jobs.task(unique="order:{order}")
    def handler(order_id: int, day: str) -> None: ...

    with pytest.raises(UsageError, match=r"names the parameter 'order', .* its parameters: order_id, day"):
        handler.enqueue(1, "monday")

    assert any("names the parameter 'order'" in finding.text for finding in jobs.check().findings)


@pytest.mark.parametrize(
    ("template", "value", "told"),
    [
        ("{order}", Order(1), r"'order' is Order; name a part of it, as \{order.id\}"),
        ("{order.number}", Order(1), r"asks for order.number, but 'Order' object has no attribute 'number'"),
        ("order:{order.id}", Order(10**300), "at most 255 fit"),
    ],
)
def test_an_argument_that_makes_no_key_is_refused(jobs: App, template: str, value: Order, told: str) -> None:
    @jobs.task(unique=template)
    def handler(order: Order) -> None: ...

    with pytest.raises(UsageError, match=told):
        handler.enqueue(value)

    assert jobs.inspect.jobs().jobs == ()


@pytest.mark.parametrize(("value", "told"), [("", "must not be empty"), ("a\nb", "control character")])
def test_a_key_that_no_store_takes_is_refused_when_it_is_filled_in(jobs: App, value: str, told: str) -> None:
    @jobs.task(unique="{name}")
    def handler(name: str) -> None: ...

    with pytest.raises(UsageError, match=f"task 'handler': .*{told}"):
        handler.enqueue(value)


def test_a_key_that_needs_the_result_is_refused(jobs: App) -> None:
    @jobs.task(unique="order:{order_id}")
    def follow(order_id: int, note: str = "") -> None: ...

    @jobs.task
    def handler() -> int:
        return 1

    with pytest.raises(UsageError, match=r"then\[0\].*'order_id', which is RESULT here.*unique_key="):
        handler.using(then=[follow.draft(RESULT)]).enqueue()
    (then,) = new_job(handler.using(then=[follow.draft(7, note=RESULT)]).draft(), None).then
    assert then.unique == queued("follow", "order:7")


def test_a_version_needs_a_unique_key(jobs: App) -> None:
    @jobs.task
    def plain(n: int) -> None: ...

    @jobs.task(unique="{n}")
    def keyed(n: int) -> None: ...

    with pytest.raises(UsageError, match=r"add unique_key='…'"):
        plain.using(version=3).enqueue(1)
    assert new_job(keyed.using(version=3).draft(1), None).version == 3
    assert new_job(plain.using(version=0, unique_key="k").draft(1), None).version == 0
