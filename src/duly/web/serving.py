"""uvicorn, told of its end in time: streams are let go of before it waits for them. Knows no route."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from duly.telemetry.hub import Hub
from duly.worker.duties import Duties, Duty


class Server(uvicorn.Server):
    """Calls `on_exit` in its loop's thread as soon as a signal asks it to end, and `on_start` once it answers."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_exit: Callable[[], None],
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._on_exit = on_exit
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_exit()
        super().handle_exit(sig, frame)


def run(server: Server, duties: Sequence[Duty], hub: Hub, sockets: list[socket.socket] | None = None) -> int:
    """Answer until a signal, in the main thread, with `duties` in another one; the exit code."""
    beside = Duties(duties, hub) if duties else None
    if beside is not None:
        beside.start()
    # It takes them itself once its loop runs, and has sent itself the signal again when it has ended in order: one that
    # comes before is not lost, and that one ends nothing.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    try:
        server.run(sockets)
    finally:
        if beside is not None:
            beside.stop()
    return 0 if server.started else 1
