"""Which processes run: children of this one, and those that work in a folder. Reads /proc; elsewhere it sees none."""

import os
from contextlib import suppress
from pathlib import Path

# Keepers belong to tests.services; the others are Python's own helpers, one per process.
EXPECTED = ("keeper", "multiprocessing.resource_tracker", "multiprocessing.forkserver")


def strangers() -> dict[int, str]:
    """The running children of this process that no session-wide part of the tests owns: {pid: command line}."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in map(int, _children(task).split()):
            line = command_line(pid)
            if line and not any(part in line for part in EXPECTED):
                found[pid] = line
    return found


def _children(task: Path) -> str:
    """Empty for a thread that has ended meanwhile."""
    try:
        return task.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def command_line(pid: int) -> str:
    """Empty for a process that runs no more, zombies included: whoever started those will collect them."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def living_in(directory: Path) -> set[int]:
    """The processes whose working directory is `directory`."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == directory:
                found.add(int(link.parent.name))
    return found
