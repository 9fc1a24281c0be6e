"""A command whose end is tied to that of another process: `python -m duly.demo.site.tied PARENT NICENESS ARGUMENTS`.

Becomes `duly ARGUMENTS`. On Linux, even a parent that was killed leaves nothing behind.
"""

from __future__ import annotations

import os
import sys

from duly.worker.process import die_with


def main() -> None:
    """Tie this process, make it yield to others by its niceness, and become the command."""
    parent, niceness, *arguments = sys.argv[1:]
    die_with(int(parent))
    os.nice(int(niceness))
    # What the kernel was asked for outlives this.
    os.execv(sys.executable, [sys.executable, "-m", "duly.cli.main", *arguments])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
