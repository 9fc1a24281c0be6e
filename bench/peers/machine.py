"""What a measurement ran on and who else was busy meanwhile, from /proc. Standard library only: peers import it too."""

import ctypes
import os
import platform
import signal
import time
from collections.abc import Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat behind the name: parent; user and system time, then those of children that have ended.
PARENT, TIMES = 1, slice(11, 15)
IDLE, IO_WAIT, GUEST = 3, 4, 8

LIBRARY = ctypes.CDLL(None)
PARENT_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """In a child before it runs its program: however its parent ends, it is told to end, too."""
    LIBRARY.prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def processor_seconds(roots: Iterable[int]) -> float:
    """Used so far by these processes and by all below them, those that have ended included."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        pid = int(entry.name)
        children.setdefault(int(fields[PARENT]), []).append(pid)
        used[pid] = sum(map(int, fields[TIMES]))
    total, waiting = 0, list(roots)
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0)
        waiting += children.get(pid, [])
    return total / TICKS


def _machine_seconds() -> float:
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields[:GUEST]) - fields[IDLE] - fields[IO_WAIT]) / TICKS


class Others:
    """How many cores all that is not ours has used since this was made."""

    def __init__(self, servers: Iterable[int] = ()) -> None:
        self._roots = [os.getpid(), *servers]
        self._began = time.monotonic()
        self._ours, self._all = processor_seconds(self._roots), _machine_seconds()

    def cores(self) -> float:
        elapsed = max(time.monotonic() - self._began, 0.001)
        others = (_machine_seconds() - self._all) - (processor_seconds(self._roots) - self._ours)
        return max(0.0, others / elapsed)


def wait_for_quiet(servers: list[int], cores: float, seconds: float) -> None:
    """Until others use less than `cores` for half a second; `seconds` at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        others = Others(servers)
        time.sleep(0.5)
        if others.cores() < cores:
            return


def description() -> str:
    """One line: processor, cores, memory, system, Python."""
    return ", ".join(
        [
            f"{os.cpu_count()} cores {_first('/proc/cpuinfo', 'model name')}",
            f"{int(_first('/proc/meminfo', 'MemTotal').split()[0]) / 2**20:.0f} GiB",
            _first("/etc/os-release", "PRETTY_NAME", "=").strip('"'),
            f"Linux {platform.release()}",
            f"Python {platform.python_version()}",
        ]
    )


def _first(path: str, name: str, separator: str = ":") -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(separator)
        if key.strip() == name:
            return value.strip()
    return "0 (unknown)"
