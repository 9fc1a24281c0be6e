"""The demo's App: one queue, one task, five files a photograph. `duly worker duly.demo.app` runs it on any store.

The task may be run twice, or be killed at any moment: its files have the same names each time and appear whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from duly.app import App

from .pictures import BrokenPhoto, TooManyPixels, resize_photo
from .pillow import UnidentifiedImageError

TAG: Final = "demo"

jobs: Final = App()
photos: Final = jobs.queue("photos", owner="you")


@jobs.task(
    queue=photos,
    # Decoding is what crashes and hangs in other people's libraries: in a child, it takes nothing else along.
    isolation="process",
    timeout="1m",
    attempts=3,
    permanent=(UnidentifiedImageError, BrokenPhoto, TooManyPixels),
)
def resize(source: str, folder: str, name: str) -> list[str]:
    """Make the five files of one photograph; return their names."""
    return [path.name for path in resize_photo(Path(source), Path(folder), name)]
