"""Which files of a project have changed since the last look, by their times. Reads folders only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

_SUFFIXES: Final = (".py", ".toml", ".html", ".env")
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})
_MOST: Final = 20_000
_QUIET: Final = 0.2
_EVERY: Final = 0.5
_SHARE: Final = 10
"""A look at a large tree may take a tenth of the time at most."""

Stamps = dict[Path, tuple[int, int]]


class Changes:
    """Looks at most twice a second, less often at trees that take long, and tells when nothing changes any more."""

    def __init__(self, folders: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._clock = clock
        self._known = self._stamps()
        self._pending: dict[Path, None] = {}
        self._since = 0.0
        self._next = 0.0

    def look(self) -> list[Path]:
        """Files that were written, made or removed since the last answer, once they have rested a moment."""
        began = self._clock()
        if began < self._next:
            return []
        stamps = self._stamps()
        took = self._clock() - began
        self._next = began + max(_QUIET if self._pending else _EVERY, took * _SHARE)
        changed = [
            path for path in stamps.keys() | self._known.keys() if stamps.get(path) != self._known.get(path)
        ]
        self._known = stamps
        if changed:
            # Editors write a file in several steps, and version control many files one after the other.
            self._pending.update(dict.fromkeys(sorted(changed)))
            self._since = began
            self._next = began + _QUIET
            return []
        if not self._pending or began - self._since < _QUIET:
            return []
        told, self._pending = list(self._pending), {}
        return told

    def _stamps(self) -> Stamps:
        found: Stamps = {}
        for path in self._files():
            try:
                stat = path.stat()
            except OSError:
                continue
            found[path] = (stat.st_mtime_ns, stat.st_size)
            if len(found) >= _MOST:
                break
        return found

    def _files(self) -> Iterator[Path]:
        for top in self._folders:
            for folder, below, names in os.walk(top):
                below[:] = [name for name in below if name not in _LEFT_OUT and not name.startswith(".")]
                for name in names:
                    if name.endswith(_SUFFIXES):
                        yield Path(folder, name)
