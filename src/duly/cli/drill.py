"""`duly drill`: kills, duplicates, another order and load for the user's own handlers, in real worker processes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from duly.core.errors import UsageError

from .errors import Conflict, Exit
from .loading import use_working_directory
from .options import Handler, common, duration
from .output import plain
from .progress import progress
from .session import session_of

if TYPE_CHECKING:
    from duly.drills import Drill, Report


@click.group()
@common
def drill() -> None:
    """Let the workers of your handlers die and jobs come twice, and see whether what you promise still holds.

    What is drilled is a Drill at the top of a module of yours, or a task and its --args. Its handlers really run: let
    the module put doubles in the place of gateways. The store is a temporary SQLite file unless --url says otherwise,
    and the exit code is 0 only if everything held.

    \b
      from duly.drills import Drill, effect
      receipts = Drill(jobs, lambda n: send_receipt.draft(order_id=n))
      @receipts.invariant
      def nobody_pays_twice(): return charges_by_order() <= 1
      # in the handler: with effect("charge", order_id): gateway.charge(order_id)

    \b
      duly drill kill shop_drill:receipts
      duly drill duplicate shop_drill
      duly drill load shop_drill --rate 500/s --for 60s --kills 10/min --duplicates 1%
      duly drill kill shop:send_receipt --args '{"order_id": 7}'
    """


def _drilled(command: Handler) -> Handler:
    """MODULE:NAME and what every drill takes; the command gets `run`, which makes the report and ends."""

    @functools.wraps(command)
    def wrapped(context: click.Context, reference: str, args: str | None, **kwargs: Any) -> None:
        yes_really: bool = kwargs.pop("yes_really")
        patience: timedelta | None = kwargs.pop("patience")

        def run(act: Callable[..., Report]) -> None:
            from duly.drills.ground import InUse

            session = session_of(context)
            more: dict[str, Any] = {} if patience is None else {"patience": patience}
            found = _drill(reference, args)
            shown = session.out.for_people and not session.quiet
            try:
                with progress(context.info_name or "drill", shown=shown) as advance:
                    found.advance = advance
                    report = act(found, url=session.url, yes_really=yes_really, **more)
            except InUse as error:
                raise Conflict(str(error)) from error
            session.out.answer(plain(msgspec.to_builtins(report) | {"held": report.held}), report.lines)
            context.exit(Exit.ok if report.held else Exit.failed)

        command(run=run, **kwargs)

    decorated: Handler = click.pass_context(wrapped)
    for option in (
        click.option(
            "--yes-really", is_flag=True, help="Also on a store with jobs, which are then run, too."
        ),
        click.option(
            "--patience", type=duration("--patience"), metavar="DURATION", help="For jobs to end in. [60s]"
        ),
        click.option("--args", metavar="JSON", help="The arguments, where MODULE:NAME is a task."),
    ):
        decorated = option(decorated)
    decorated = click.argument("reference", metavar="MODULE[:NAME]")(decorated)
    return common(decorated)


def _drill(reference: str, args: str | None) -> Drill:
    from duly.drills.drill import load_drill

    use_working_directory()
    if args is None:
        return load_drill(reference)
    try:
        given = msgspec.json.decode(args)
    except msgspec.DecodeError as error:
        raise UsageError(f"--args {args!r:.80} is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError(f"--args {args!r:.80} is no JSON object; write '{{\"order_id\": 7}}'")
    return load_drill(reference, given)


@drill.command()
@_drilled
@click.option("--most", type=click.IntRange(1), default=60, metavar="N", help="Deaths at most. [60]")
def kill(run: Callable[..., None], most: int) -> None:
    """Kill the worker at every moment in the life of a job, one job for each.

    A first job runs undisturbed and shows the moments: each line of your code that it passes, the middle of each line
    that takes long, and around each call of the store: claim, step, extension, heartbeat, end. Then one job for each
    moment; its worker process dies there by SIGKILL, and another one brings the job to its end.
    """
    run(lambda found, **more: found.kill(most=most, **more))


@drill.command()
@_drilled
@click.option("--jobs", type=click.IntRange(1), default=20, metavar="N", help="[20]")
def duplicate(run: Callable[..., None], jobs: int) -> None:
    """Deliver each job twice: its handler runs to its end, and then again."""
    run(lambda found, **more: found.duplicate(jobs=jobs, **more))


@drill.command()
@_drilled
@click.option("--jobs", type=click.IntRange(2), default=20, metavar="N", help="In each order. [20]")
@click.option(
    "--orders", type=click.IntRange(2), default=4, metavar="N", help="Forwards, backwards, shuffled… [4]"
)
@click.option("--seed", type=int, default=1, metavar="N", help="Of the shuffling. [1]")
def reorder(run: Callable[..., None], jobs: int, orders: int, seed: int) -> None:
    """Run the jobs backwards and shuffled. Those of one ordering key keep their order, as duly does."""
    run(lambda found, **more: found.reorder(jobs=jobs, orders=orders, seed=seed, **more))


@drill.command()
@_drilled
@click.option("--rate", default="100/s", metavar="RATE", help="Jobs enqueued. [100/s]")
@click.option(
    "--for", "lasting", type=duration("--for"), default="30s", metavar="DURATION", help="So long. [30s]"
)
@click.option(
    "--kills", default="0/min", metavar="RATE", help="SIGKILLs at random moments, as 10/min. [none]"
)
@click.option(
    "--duplicates", default="0%", metavar="SHARE", help="Of the jobs, delivered twice, as 1%. [none]"
)
@click.option("--processes", type=click.IntRange(1), default=2, metavar="N", help="Of the worker. [2]")
@click.option("--seed", type=int, default=1, metavar="N", help="Of the dice. [1]")
def load(
    run: Callable[..., None],
    rate: str,
    lasting: timedelta,
    kills: str,
    duplicates: str,
    processes: int,
    seed: int,
) -> None:
    """Enqueue at a rate while workers are killed and jobs come twice; then all of them must end."""
    share = _share(duplicates)

    def act(found: Drill, **more: Any) -> Report:
        return found.load(
            rate=rate,
            lasting=lasting,
            kills=kills,
            duplicates=share,
            processes=processes,
            seed=seed,
            **more,
        )

    run(act)


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise UsageError(f"--duplicates {text!r} is no share; write 1%") from error
