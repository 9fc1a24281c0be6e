"""`duly worker`: runs the jobs of an App until it is told to stop."""

from __future__ import annotations

from datetime import timedelta

import click

from duly.core.plan import read_processes
from duly.worker.options import WorkerOptions, read_queues
from duly.worker.vitals import HealthPlace

from .loading import use_working_directory
from .options import common, duration, size
from .session import session_of


@click.command()
@common
@click.argument("module", required=False, metavar="[APP]")
@click.option(
    "--queues", metavar="NAME[:SLOTS],…", help="Only these; mail:8 gives mail eight slots of its own."
)
@click.option("--except", "excepted", metavar="NAME,…", help="All declared queues but these.")
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Async handlers at once. [50]")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Plain `def` handlers at once. [10]")
@click.option(
    "--isolated", type=click.IntRange(1), metavar="N", help='isolation="process" handlers at once. [cores]'
)
@click.option(
    "--processes",
    metavar="N|N..M",
    help="Worker processes; 1..8 starts and stops them by how long jobs wait. [1]",
)
@click.option(
    "--grace", type=duration("--grace"), metavar="DURATION", help="For running jobs at a stop. [25s]"
)
@click.option("--max-jobs", type=click.IntRange(1), metavar="N", help="Replace a process after so many jobs.")
@click.option(
    "--max-memory", type=size("--max-memory"), metavar="SIZE", help="Replace a process above this, as 1GiB."
)
@click.option("--until-idle", is_flag=True, help="End when nothing is ready or running.")
@click.option(
    "--health", metavar="[HOST:]PORT", help="Answer /livez, /readyz and /metrics there. Host: 127.0.0.1."
)
@click.pass_context
def worker(
    context: click.Context,
    module: str | None,
    queues: str | None,
    excepted: str | None,
    concurrency: int | None,
    threads: int | None,
    isolated: int | None,
    processes: str | None,
    grace: timedelta | None,
    max_jobs: int | None,
    max_memory: int | None,
    until_idle: bool,
    health: str | None,
) -> None:
    """Run jobs of APP (MODULE[:NAME]) until SIGTERM or Ctrl-C.

    On the first signal it claims nothing more, gives running jobs their grace, hands the rest back without spending
    an attempt, and exits 0; a second signal makes it quicker and loses nothing.

    \b
      duly worker shop.background
      duly worker shop.background:jobs --queues mail:8,reports:2
      duly worker shop.background --processes 1..8
      duly worker --until-idle            the App of DULY_APP or pyproject.toml; ends when nothing is ready or running
    """
    from duly.worker.supervisor import run

    session = session_of(context)
    place = None if health is None else _health(health)
    reference = session.reference(module)
    # The App itself is imported by the worker processes only: this one, which keeps their leases, runs no user code.
    use_working_directory()
    least, most = (None, None) if processes is None else read_processes(processes)
    options = WorkerOptions(
        url=session.url,
        queues=None if queues is None else read_queues(queues),
        except_queues=() if excepted is None else tuple(read_queues(excepted)),
        concurrency=concurrency,
        threads=threads,
        isolated=isolated,
        processes=least,
        processes_most=most,
        grace=grace,
        max_jobs=max_jobs,
        max_memory=max_memory,
        until_idle=until_idle,
        counts=place is not None,
    )
    context.exit(run(reference, options, place))


def _health(text: str) -> HealthPlace:
    """A place to listen at, as `9000`, `0.0.0.0:9000` or `[::1]:9000`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise click.UsageError(f"--health {text!r} is no port; write --health 9000, or --health 0.0.0.0:9000")
    return HealthPlace(host.strip("[]") or "127.0.0.1", int(port))
