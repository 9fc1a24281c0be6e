"""From `MODULE[:NAME]` to an App, as a command needs it. Workers import it the same way, each in its own process.

Knows nothing of commands and stores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from duly.app import App
from duly.core.errors import UsageError
from duly.worker import source

MISSING: Final = (
    "which App? Give MODULE[:NAME] as argument or with -a, set DULY_APP, or write "
    'app = "shop.background:jobs" under [tool.duly] in pyproject.toml'
)


def use_working_directory() -> None:
    """Let modules of the working directory be imported, by this process and by the workers that it starts."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def load_app(reference: str) -> App:
    """Import the App that a reference means, and all it includes. UsageError says what to write instead."""
    use_working_directory()
    app = source.load_app(reference)
    if not isinstance(app, App):
        raise UsageError(f"{reference} is {type(app).__name__} and no App; write `jobs = App()`")
    return app
