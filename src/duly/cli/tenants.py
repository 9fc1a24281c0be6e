"""`duly tenants`: what each tenant may have, and what it uses."""

from __future__ import annotations

import click

from duly.client.control_reads import TenantStatus
from duly.core.control import LimitRecord
from duly.core.pace import pace_text
from duly.core.why_places import ready_text

from .options import common
from .output import Column, age, count, plain, printable
from .session import session_of

TENANTS = (
    Column("TENANT"),
    Column("WEIGHT", "right"),
    Column("MAX", "right"),
    Column("RATE", "right"),
    Column("RUNNING", "right"),
    Column("READY", "right"),
    Column("OLDEST", "right"),
    Column("QUEUES", wide=True),
)
QUEUES = (
    Column("QUEUE"),
    Column("RUNNING", "right"),
    Column("MAX", "right"),
    Column("RATE", "right"),
    Column("OVERRIDE"),
)


@click.group()
@common
def tenants() -> None:
    """The tenants of fair queues: their plans, and what runs of them.

    A plan is set with `duly limit --tenant NAME --weight 5 --max-running 20`.
    """


@tenants.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """Tenants with a plan, or with something running or ready in a fair queue, and how long its oldest job waits."""
    session = session_of(context)
    found = session.data().inspect.tenants()
    session.out.answer(
        plain(found),
        lambda: (
            session.out.table(TENANTS, map(_row, found))
            if found
            else ["no tenant has a plan, and nothing of any runs or waits in a fair queue"]
        ),
        (plain(one) for one in found),
    )


@tenants.command()
@common
@click.argument("name")
@click.pass_context
def show(context: click.Context, name: str) -> None:
    """One tenant, queue by queue."""
    session = session_of(context)
    found = session.data().inspect.tenant(name)

    def lines() -> list[str]:
        text = session.out.table(TENANTS, [_row(found)])
        if found.limits:
            text += ["", *session.out.table(QUEUES, map(_limit, found.limits))]
        return text

    session.out.answer(plain(found), lines)


def _row(one: TenantStatus) -> list[str]:
    plan = one.plan
    running = [limit.name.partition(":")[2].partition("=")[0] for limit in one.limits if limit.running]
    queues = sorted({*running, *(wait.queue for wait in one.waits)})
    return [
        printable(one.name),
        "" if plan is None else str(plan.weight),
        "" if plan is None or plan.max_running is None else count(plan.max_running),
        "" if plan is None or plan.rate is None else pace_text(plan.rate.interval, plan.rate.burst),
        count(one.running),
        ready_text(one.ready) if one.ready else "0",
        age(one.oldest),
        ", ".join(queues),
    ]


def _limit(one: LimitRecord) -> list[str]:
    return [
        one.name.partition(":")[2].partition("=")[0],
        count(one.running),
        "" if one.max_running is None else count(one.max_running),
        "" if one.rate is None else pace_text(one.rate.interval, one.rate.burst),
        "" if one.override is None else str(one.override),
    ]
