"""`duly keys`: which keys encrypt payloads, and encrypting everything anew with the first of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import click

from duly.client.key_acts import RATE, Rotation

from .errors import Failed
from .options import common
from .output import count, counted, plain
from .session import Session, session_of


@click.group()
@common
def keys() -> None:
    """Keys of encrypted payloads: DULY_KEYS, a list with commas. The first one encrypts, every one decrypts.

    \b
    To change the key:
      1. append the new key to DULY_KEYS everywhere, and restart
      2. move it to the front everywhere, and restart
      3. duly keys rotate
      4. remove the old key once `rotate` says that it may be dropped
    """


@keys.command()
@common
@click.pass_context
def new(context: click.Context) -> None:
    """Print a new key. It is stored nowhere."""
    text = secrets.token_urlsafe(32)
    session_of(context).out.answer({"key": text}, lambda: [text])


@keys.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """The ids of the keys that this process has, the one that encrypts first; never a key."""
    ids = _ids(session_of(context))
    session_of(context).out.answer(
        [*ids], lambda: [f"{id}  {'encrypts' if id == ids[0] else 'decrypts only'}" for id in ids], [*ids]
    )


@keys.command()
@common
@click.option("--rate", metavar="N/s|max", default=RATE, show_default=True, help="How fast.")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept with the act.")
@click.pass_context
def rotate(context: click.Context, rate: str, reason: str) -> None:
    """Encrypt every stored payload with the first key, in small steps. May be stopped and begun again.

    Then says which former keys may be dropped. Payloads of follow-ups, schedules and kept answers stay under the key
    that they have, until their jobs have ended. Exit 1 when something could not be read.
    """
    session = session_of(context)

    def told(done: int) -> None:
        if session.out.for_people and not session.quiet:
            click.echo(f"{count(done)} encrypted anew", err=True)

    found = session.data().operate.rotate_keys(rate=rate, reason=reason, told=told)
    document = plain(found)
    if isinstance(document, dict):
        document["droppable"] = [*found.droppable]
    session.out.answer(document, lambda: _lines(found))
    if found.unreadable:
        raise Failed(f"{counted(sum(found.unreadable.values()), 'payload')} could not be read")


def _lines(found: Rotation) -> Iterator[str]:
    yield f"{counted(found.done, 'payload')} encrypted anew with {found.key}, {count(found.current)} were before"
    for key, number in found.unreadable.items():
        spoilt = counted(number, "payload")
        yield f"{spoilt} of the key {key} could not be read: add it to DULY_KEYS, or they were changed"
    for key, number in found.left.items():
        if number:
            yield (
                f"the key {key} is still needed by {counted(number, 'payload')} of follow-ups, schedules or kept "
                "answers; rotate again when their jobs have ended, or put the schedules anew"
            )
        else:
            yield f"the key {key} may be dropped once no process has it in front any more"


def _ids(session: Session) -> tuple[str, ...]:
    return session.data().client.sealing.required().ids
