"""Starting and ending processes of our own: spawned, never forked, and gone when their parent is gone.

Knows no job and no message.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


class Process:
    """A spawned process with our end of a socket pair to it."""

    def __init__(self, module: str, descriptors: Sequence[int] = (), arguments: Sequence[str] = ()) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            passed = (theirs.fileno(), *descriptors)
            # A session of its own: a terminal's Ctrl-C reaches only the supervisor, and a kill reaches the whole group.
            self._popen = subprocess.Popen(
                [sys.executable, "-m", module, str(os.getpid()), str(theirs.fileno()), *arguments],
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.socket = ours
        self.pid = self._popen.pid

    def poll(self) -> int | None:
        """Its return code as of now, negative for a signal; None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """As `poll`, after up to `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """SIGTERM to the process alone."""
        with suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGTERM)

    def hint(self) -> None:
        """SIGUSR2: a shutdown has begun."""
        with suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGUSR2)

    def kill(self) -> int:
        """SIGKILL to its whole group; blocks until it is gone. The return code."""
        with suppress(ProcessLookupError, PermissionError):
            if self._popen.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
        return self._popen.wait()

    def is_stopped(self) -> bool:
        """Whether SIGSTOP holds it; False where that cannot be seen."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def memory(self) -> int:
        """Resident bytes; 0 where that cannot be seen."""
        return resident(self.pid)


def resident(pid: int) -> int:
    """Resident memory of a process (0: this one) in bytes; 0 where that cannot be seen."""
    try:
        pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGESIZE")


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends; leave at once when it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
