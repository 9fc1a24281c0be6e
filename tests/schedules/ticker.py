"""An App whose tick reads the table `purchase`; as a program it works until it is killed, or dies in the middle.

`python -m tests.schedules.ticker URL CLOCK [die]`: its clock is a file; with `die` it kills itself once it has read
its rows and stored their jobs, before the commit.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from duly import App
from tests.scenarios.schedulers import Scheduler, read_clock

READY = "select id as purchase_id, amount from purchase where ready order by id"


def app_at(url: str, *, dies: bool = False) -> App:
    app = App(url)

    def purchases(connection: Any) -> Iterator[tuple[Any, ...]]:
        yield from connection.execute(READY).fetchall()
        if dies:
            # The first thousand are stored by now, and the schedule has moved on, all of it uncommitted.
            os.kill(os.getpid(), signal.SIGKILL)

    @app.tick("10s", source=purchases, key="purchase:{purchase_id}")
    @app.task
    def ship(purchase_id: int, amount: int) -> None:
        pass

    return app


def main() -> None:
    url, clock, *how = sys.argv[1:]
    app = app_at(url, dies=bool(how))
    app.client.clock = lambda: read_clock(Path(clock))
    scheduler = Scheduler(app.store, app.client.registry.schedules)
    os.write(1, b"ready\n")
    pause = threading.Event()
    while not pause.wait(0.02):
        scheduler.work()


if __name__ == "__main__":
    main()
