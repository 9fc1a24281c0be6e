"""`duly token`: who may ask a server, and for what."""

from __future__ import annotations

from datetime import datetime

import click

from duly.client.logins import login_link, make_login
from duly.core.durations import parse_duration
from duly.core.operating import TokenRecord

from .options import common
from .output import Column, plain, printable, relative
from .session import session_of

COLUMNS = (
    Column("ID", "right"),
    Column("NAME"),
    Column("STATE"),
    Column("SCOPES", wide=True),
    Column("EXPIRES"),
    Column("LAST USED"),
    Column("BY"),
)


@click.group()
@common
def token() -> None:
    """Tokens for `duly serve`: each may do what its scopes say, until it expires or is revoked.

    A scope is a verb, for every queue or for one: enqueue, work, read, operate, dead; admin is all of it.
    """


@token.command()
@common
@click.option(
    "--scope", "scopes", metavar="VERB[:QUEUE]", multiple=True, required=True, help="Repeat for several."
)
@click.option("--name", metavar="NAME", help="What stands under its acts. [made of the scope]")
@click.option(
    "--expires", metavar="DURATION", default="90d", show_default=True, help='Such as 30d, or "never".'
)
@click.option("--reason", metavar="TEXT", default="", help="Why; kept with the act.")
@click.pass_context
def create(
    context: click.Context, scopes: tuple[str, ...], name: str | None, expires: str, reason: str
) -> None:
    """Make a token and print it, once: only a digest of it is stored.

    \b
      duly token create --scope enqueue:mail --expires 30d
      duly token create --name go-worker --scope work:mail --scope work:reports
      TOKEN=$(duly token create --scope read -q)
    """
    session = session_of(context)
    lasting = None if expires == "never" else parse_duration(expires, "--expires", positive=True)
    made = session.data().operate.create_token(scopes, name=name, expires=lasting, reason=reason)

    def lines() -> list[str]:
        if session.quiet:
            return [made.text]
        record = made.record
        until = (
            "until it is revoked"
            if record.expires_at is None
            else f"until {record.expires_at:%Y-%m-%d %H:%M} UTC"
        )
        return [
            made.text,
            f"token {record.id} {printable(record.name)} may {' '.join(record.scopes)} {until}; it is shown only now",
        ]

    session.out.answer({"token": made.text, "record": plain(made.record)}, lines)


@token.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """Every token, the newest first: what it may, until when, and when it was last used."""
    session = session_of(context)
    app = session.data()
    found, now = app.inspect.tokens(), app.inspect.now()
    session.out.answer(
        plain(found),
        lambda: (
            session.out.table(COLUMNS, (_row(one, now) for one in found))
            if found
            else ["no token was made yet: duly token create --scope enqueue"]
        ),
        (plain(one) for one in found),
    )


@token.command()
@common
@click.option("--scope", "scopes", metavar="VERB[:QUEUE]", multiple=True, default=("admin",), help="[admin]")
@click.option("--expires", metavar="DURATION", default="12h", show_default=True, help="When all of it ends.")
@click.pass_context
def login(context: click.Context, scopes: tuple[str, ...], expires: str) -> None:
    """Print a link that opens the dashboard of `duly serve` once, within ten minutes.

    Whoever opens it first is signed in, under a name made of yours, for twelve hours at most: hand it on with care.

    \b
      duly token login
      duly token login --scope read --scope dead:mail
    """
    session = session_of(context)
    app = session.data()
    made = make_login(app.operate, app.client, scopes, expires=expires)
    link = login_link(app.settings, made.code)

    def lines() -> list[str]:
        if session.quiet:
            return [link]
        may = " ".join(made.record.scopes)
        return [link, f"opens once, within 10 minutes, as {printable(made.record.name)}, who may {may}"]

    session.out.answer({"link": link, "record": plain(made.record)}, lines)


@token.command()
@common
@click.argument("which", metavar="ID|NAME")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept with the act.")
@click.pass_context
def revoke(context: click.Context, which: str, reason: str) -> None:
    """Let a token open nothing any more: within five seconds on every server."""
    session = session_of(context)
    number = int(which) if which.isascii() and which.isdecimal() else which
    gone = session.data().operate.revoke_token(number, reason=reason)
    session.out.answer(plain(gone), lambda: [f"token {gone.id} {printable(gone.name)} is revoked"])


def _row(one: TokenRecord, now: datetime) -> list[str]:
    return [
        str(one.id),
        printable(one.name),
        one.state,
        " ".join(one.scopes),
        "never" if one.expires_at is None else relative(one.expires_at, now),
        "never" if one.last_used_at is None else relative(one.last_used_at, now),
        printable(one.by),
    ]
