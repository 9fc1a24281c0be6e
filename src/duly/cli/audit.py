"""`duly audit`: who did what, and why, and whether that record was touched since."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import click
import msgspec

from duly.core.filters import parse_moment
from duly.core.operating import AuditEntry

from .errors import Failed
from .options import common
from .output import Column, Json, clock, count, counted, plain, printable
from .session import session_of

COLUMNS: Final = (
    Column("ID", "right"),
    Column("AT"),
    Column("BY"),
    Column("VERB"),
    Column("TARGET"),
    Column("JOBS", "right"),
    Column("REASON", wide=True),
)


@click.group()
@common
def audit() -> None:
    """Every act of a person, each with who, when and why; and jobs of tasks declared with audit=True.

    Entries are sealed in batches, each chained to the one before: what is changed by hand afterwards is found.
    """


@audit.command("list")
@common
@click.option("--since", metavar="WHEN", help="Then or later: 2h (ago), or 2026-01-31T10:00Z.")
@click.option("--until", metavar="WHEN", help="Before then.")
@click.option("--by", metavar="NAME", help="Only acts of this person or token.")
@click.option(
    "--verb", metavar="VERB", help='Only these acts, such as redrive; "enqueue" and "end" are of jobs.'
)
@click.option("--target", metavar="TARGET", help="Only what was done to this, such as queue:mail or job:17.")
@click.option("--before", type=click.IntRange(1), metavar="ID", help="Go on behind this entry.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    metavar="N",
    help="At most so many, the newest.",
)
@click.pass_context
def list_(
    context: click.Context,
    since: str | None,
    until: str | None,
    by: str | None,
    verb: str | None,
    target: str | None,
    before: int | None,
    limit: int,
) -> None:
    """The newest first.

    \b
      duly audit list --since 1h
      duly audit list --verb redrive --by ada@ops -o json
    """
    session = session_of(context)
    entries = session.data().inspect.audit(
        by=by,
        verb=verb,
        target=target,
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        before=before,
        limit=limit,
    )
    items = [_item(entry) for entry in entries]

    def lines() -> Iterator[str]:
        if not entries:
            yield "no entry of the audit fits"
            return
        yield from session.out.table(COLUMNS, [_row(entry) for entry in entries])
        if len(entries) == limit and not session.quiet:
            yield f"more: --before {entries[-1].id}"

    document: Json = {"entries": [*items], "next": entries[-1].id if len(entries) == limit else None}
    session.out.answer(document, lines, items)


@audit.command()
@common
@click.option(
    "--head", metavar="HEX", help="A head noted earlier: says whether the audit still has it. Exit 1 if not."
)
@click.pass_context
def verify(context: click.Context, head: str | None) -> None:
    """Read the whole audit again: exit 1 when an entry was changed, removed or slipped in since it was sealed.

    Whoever may write to all tables could make every seal anew. Note the head somewhere else now and then, and give it
    back with --head: it proves that nothing before it was rewritten.

    \b
      duly audit verify
      duly audit verify --head 5f0c…
    """
    session = session_of(context)
    inspect = session.data().inspect
    found = inspect.verify_audit()
    faults = [*found.faults]
    if head is not None and not inspect.has_audit_head(head):
        faults.append(
            f"no seal has the head {head[:16]}…: the audit was rewritten since, or it is another one's"
        )
    document: Json = {
        "ok": not faults,
        "entries": found.entries,
        "seals": found.seals,
        "unsealed": found.unsealed,
        "head": found.head.hex(),
        "faults": [*faults],
    }

    def lines() -> Iterator[str]:
        for fault in faults:
            yield click.style("fault:", fg="red", bold=True) + f" {printable(fault)}"
        if session.quiet:
            return
        number = f"{count(found.entries)} {'entry' if found.entries == 1 else 'entries'}"
        yield f"{number} under {counted(found.seals, 'seal')} fit, {count(found.unsealed)} not sealed yet"
        yield f"head: {found.head.hex()}"

    session.out.answer(document, lines)
    if faults:
        raise Failed(f"the audit does not fit: {counted(len(faults), 'fault')}")


def _moment(text: str | None, flag: str) -> datetime | None:
    return None if text is None else parse_moment(text, datetime.now(UTC), flag)


def _item(entry: AuditEntry) -> dict[str, Json]:
    return {
        "id": entry.id,
        "at": plain(entry.at),
        "by": entry.actor,
        "verb": entry.verb,
        "target": entry.target,
        "count": _jobs(entry),
        "reason": entry.reason,
        "detail": plain(entry.detail.encode()),
    }


def _jobs(entry: AuditEntry) -> int | None:
    """How many jobs it was about, where the act says so."""
    try:
        detail = msgspec.json.decode(entry.detail)
    except msgspec.DecodeError:
        # Somebody wrote into it by hand.
        return None
    number = detail.get("jobs", detail.get("total")) if isinstance(detail, dict) else None
    return number if isinstance(number, int) else None


def _row(entry: AuditEntry) -> list[str]:
    number = _jobs(entry)
    return [
        str(entry.id),
        clock(entry.at),
        printable(entry.actor),
        printable(entry.verb),
        printable(entry.target),
        "" if number is None else count(number),
        printable(entry.reason),
    ]
