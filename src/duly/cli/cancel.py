"""`duly cancel`: jobs that wait are cancelled, running ones are asked to stop."""

from __future__ import annotations

import click

from duly.core.filters import Filter

from .acts import Bulk, perform
from .options import Act, Rate, acting, common, filters, rated
from .session import session_of


@click.command()
@common
@filters
@acting
@rated
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...")
@click.pass_context
def cancel(
    context: click.Context,
    ids: tuple[int, ...],
    filter: Filter,
    everything: bool,
    act: Act,
    rate: Rate | None,
) -> None:
    """Cancel jobs: those of the ids, or all that fit a filter.

    Waiting jobs are cancelled at once. A running one is asked to stop and is cancelled when its attempt ends;
    a handler sees the wish as `job.should_stop`. `duly dead redrive ID` takes a cancellation back.

    \b
      duly cancel 42
      duly cancel --task send_receipt --where 'args.order_id = 7' --reason "order was withdrawn"
      duly cancel --queue mail --rate max --reason INC-311
    """
    session = session_of(context)
    perform(session, session.data(), Bulk("cancel", ids, filter, everything, rate=rate), act)
