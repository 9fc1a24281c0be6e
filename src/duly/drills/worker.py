"""`python -m duly.drills.worker PARENT`: a worker on the drill's store, to be killed at a heartbeat, too."""

from __future__ import annotations

import sys
from typing import cast

from duly.core.errors import DulyError
from duly.drills.plan import Papers
from duly.drills.probe import BeatenStore
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.worker.options import WorkerOptions
from duly.worker.process import die_with
from duly.worker.restarts import Restarts
from duly.worker.supervisor import run

APP = "duly.drills.inside:app"


def main() -> int:
    """Until a signal; the exit code."""
    die_with(int(sys.argv[1]))
    papers = Papers.of_environment()
    plan = papers.plan()
    sys.path[:] = plan.path

    def opener(url: str, *, schema: str, pool: int, notify: bool) -> Store:
        store = open_store(url, schema=schema, pool=pool, notify=notify, durable=plan.durable)
        return cast(Store, BeatenStore(store, papers))

    options = WorkerOptions(processes=plan.processes)
    try:
        # Whoever dies so often would else be replaced later and later.
        return run(APP, options, opener=opener, restarts=Restarts(0.0))
    except DulyError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)  # noqa: T201 (a program of its own)
        return 2


if __name__ == "__main__":
    sys.exit(main())
