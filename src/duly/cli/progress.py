"""Progress of long work: a bar on a terminal, a line now and then elsewhere, nothing for programs.

Writes to stderr only, so that an answer on stdout stays clean.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

import click

Advance = Callable[[int, int, str], None]
"""(done, of, what else to say)."""

_BAR: Final = 32
_REDRAW: Final = 0.1
_EVERY: Final = 5.0
"""Seconds between two plain lines, unless a tenth of the work was done before."""


class Plain:
    """Lines for a log: at the start, at each tenth, every few seconds, at the end."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._tenths = -1
        self._at = 0.0

    def __call__(self, done: int, of: int, note: str = "") -> None:
        tenths = 10 * done // of if of else 10
        now = time.monotonic()
        if tenths > self._tenths or (now - self._at >= _EVERY and done < of):
            self._tenths, self._at = tenths, now
            click.echo(f"{self._label} {done:,} of {of:,}" + (f"  {note}" if note else ""), err=True)

    def end(self) -> None:
        """Nothing is left on the line."""


class Bar:
    """One line that is redrawn; works on every terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._at = 0.0
        self._drawn = False

    def __call__(self, done: int, of: int, note: str = "") -> None:
        now = time.monotonic()
        if now - self._at < _REDRAW and done < of:
            return
        self._at, self._drawn = now, True
        share = min(1.0, done / of) if of else 1.0
        full = round(_BAR * share)
        bar = "█" * full + "·" * (_BAR - full)
        line = f"{self._label}  {bar}  {done:,}/{of:,}" + (f"  {note}" if note else "")
        click.echo(f"\r\x1b[2K{line}", err=True, nl=False)

    def end(self) -> None:
        """Leave the last state of the bar on the screen."""
        if self._drawn:
            click.echo("", err=True)


class RichBar:
    """The same with the package rich."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(label, total=None, note="")
        self._progress.start()

    def __call__(self, done: int, of: int, note: str = "") -> None:
        self._progress.update(self._task, completed=done, total=of, note=note)

    def end(self) -> None:
        """Leave the last state of the bar on the screen."""
        self._progress.stop()


@contextmanager
def progress(label: str, *, shown: bool = True, plain: bool = False) -> Iterator[Advance]:
    """Show how far the block's work is. `plain` asks for lines even on a terminal; not `shown` is silent."""
    if not shown:
        yield _silent
        return
    watcher: Plain | Bar | RichBar
    if plain or not sys.stderr.isatty():
        watcher = Plain(label)
    else:
        watcher = Bar(label) if find_spec("rich") is None else RichBar(label)
    try:
        yield watcher
    finally:
        watcher.end()


def _silent(done: int, of: int, note: str = "") -> None:
    """For programs and --quiet."""
