"""A terminal for a program that redraws it: its other screen, keys one at a time, and all put back at the end."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Final, Self

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x04": "q",
}


class Screen:
    """As a block. Ctrl-C stays KeyboardInterrupt."""

    def __init__(self) -> None:
        self._out = sys.stdout
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] | None = None
        self._typed = ""

    def __enter__(self) -> Self:
        if self._keys is not None:
            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(_ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(_LEAVE)
        if self._keys is not None and self._before is not None:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    @property
    def size(self) -> tuple[int, int]:
        """(columns, rows)."""
        found = shutil.get_terminal_size((80, 24))
        return max(20, found.columns), max(5, found.lines)

    def show(self, lines: list[str]) -> None:
        """Draw over what was there, without a flash in between."""
        self._write("\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[K\x1b[J")

    def key(self, seconds: float) -> str | None:
        """The next key within so many seconds: a character, or up, down, enter, escape, backspace."""
        if self._keys is None:
            select.select([], [], [], seconds)
            return None
        if not self._typed:
            if not select.select([self._keys], [], [], seconds)[0]:
                return None
            data = os.read(self._keys, 1024)
            if not data:
                # The terminal is gone.
                return "q"
            self._typed = data.decode(errors="replace")
        for text, name in _NAMES.items():
            if self._typed.startswith(text) and (text != "\x1b" or len(self._typed) == 1):
                self._typed = self._typed[len(text) :]
                return name
        if self._typed.startswith("\x1b"):
            # A key that nobody asked for.
            self._typed = ""
            return ""
        first, self._typed = self._typed[0], self._typed[1:]
        return first

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
