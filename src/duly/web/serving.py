"""uvicorn, told of its end in time: streams are let go of before it waits for them. Knows no route."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

import uvicorn


class Server(uvicorn.Server):
    """Calls `on_exit` in its loop's thread as soon as a signal asks it to end."""

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_exit()
        super().handle_exit(sig, frame)
