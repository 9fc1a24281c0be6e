"""A whole worker inside the calling process, for a store that no other process can reach.

Blocks until a signal, or until idle where that was asked for. Nobody replaces this process.
"""

from typing import Final

from duly.core.errors import UsageError
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from duly.worker.signals import Signals
from duly.worker.source import AppLike

_LOOK: Final = 0.2


def run_inside(app: AppLike, options: WorkerOptions) -> int:
    """Work until SIGTERM or SIGINT; a second one cuts the grace short. The exit code."""
    for name in ("processes", "max_jobs", "max_memory"):
        if getattr(options, name) is not None:
            raise UsageError(f"{app.settings.url} is worked on by this process alone; leave {name}= out")
    signals = Signals()
    signals.install()
    try:
        with Embedded(app, options) as worker:
            heard = 0
            while not worker.is_over:
                signals.wait(_LOOK, [])
                for name in signals.seen[heard:]:
                    grace = worker.engine.plan.grace if heard == 0 else 0.0
                    worker.engine.ask_to_stop(name, grace)
                    heard += 1
    finally:
        signals.restore()
    return 0
