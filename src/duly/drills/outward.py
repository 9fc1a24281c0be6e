"""Calls that leave the process, as Python's audit events tell: which lines of a handler do something to the world.

Sees sockets, mail, HTTP, processes and files that are written; not what drivers in C do by themselves.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from duly.client.job import current
from duly.drills.plan import Outward

_EVENTS: Final = {
    "http.client.send": "sends HTTP",
    "urllib.Request": "sends HTTP",
    "smtplib.send": "sends mail",
    "ftplib.sendcmd": "speaks FTP",
    "socket.connect": "connects",
    "socket.sendto": "sends a packet",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "shutil.move": "moves a file",
    "shutil.copyfile": "copies a file",
    "shutil.rmtree": "removes a folder",
}
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class Outside:
    """Listens from `install` on until the process ends; audit hooks cannot be taken back."""

    def __init__(self, ours: str, is_theirs: Callable[[str], bool], tell: Callable[[Outward], None]) -> None:
        self._ours = ours
        self._is_theirs = is_theirs
        self._tell = tell

    def install(self) -> None:
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        what = _EVENTS.get(event)
        if what is None:
            if event != "open" or not _writes(args):
                return
            what = "writes a file"
        job = current.get()
        frame = None if job is None else self._line(sys._getframe(1))
        if job is None or frame is None:
            return
        code = frame.f_code
        self._tell(Outward(job.correlation_id, what, code.co_filename, frame.f_lineno, code.co_name))

    def _line(self, frame: FrameType | None) -> FrameType | None:
        """The user's line behind the call; None when it is something of ours."""
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._ours):
                return None
            if self._is_theirs(file):
                return frame
            frame = frame.f_back
        return None


def _writes(args: tuple[Any, ...]) -> bool:
    flags = args[2] if len(args) > 2 else 0
    return isinstance(flags, int) and bool(flags & _WRITING) and args[0] not in ("/dev/null", "/dev/tty")
