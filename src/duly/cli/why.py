"""`duly why`: every reason why something is not running, one sentence each, and the command that changes it."""

from __future__ import annotations

import click

from .options import common
from .output import plain, printable
from .session import session_of


@click.command()
@common
@click.argument("target", metavar="ID|QUEUE|tenant:NAME|resource:NAME|batch:ID")
@click.pass_context
def why(context: click.Context, target: str) -> None:
    """Say why a job is not running now, or what holds up a queue, a tenant, a resource or a batch.

    One sentence for each reason, and after the arrow what would change it. With -a the guards of the job's task are
    asked, too, here and now.

    \b
      duly why 42
      duly why 42 -a shop.background
      duly why mail
      duly why tenant:acme
      duly why resource:stripe
      duly why batch:42
    """
    session = session_of(context)
    app = session.data()
    answer = app.inspect.why(target, guards=session.app_reference is not None)

    def lines() -> list[str]:
        text = [click.style(printable(answer.text), bold=True)]
        for reason in answer.reasons:
            change = "" if reason.change is None or session.quiet else f"  -> {printable(reason.change)}"
            text.append(f"  - {printable(reason.text)}{change}")
        return text

    session.out.answer(plain(answer), lines, (plain(reason) for reason in answer.reasons))
