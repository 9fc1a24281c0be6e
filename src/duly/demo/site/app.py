"""The site's App: one queue, one task, five thumbnails a picture. Knows neither requests nor pages.

The handler may be killed at any moment and run again: each file appears whole, under a name that follows from the
picture's content, and what is there already is not made a second time.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from duly.app import App
from duly.client.job import Job
from duly.core.endings import Skip
from duly.core.keys import Unique
from duly.demo.pictures import (
    FORMATS,
    BrokenPhoto,
    TooManyPixels,
    clear_leftovers,
    cropped,
    file_of,
    open_upright,
    shrunk,
    write_whole,
)
from duly.demo.pillow import UnidentifiedImageError

UPLOADED: Final = "uploaded"
MADE: Final = "made"

jobs: Final = App()
# Beyond its bound an upload is answered with 503 and Retry-After, instead of a promise for tomorrow.
photos: Final = jobs.queue("photos", owner="you", max_depth=1_000)


@jobs.task(
    queue=photos,
    # Decoding is what crashes and hangs in other people's libraries: in a child, it takes nothing else along.
    isolation="process",
    timeout="1m",
    attempts=3,
    permanent=(UnidentifiedImageError, BrokenPhoto, TooManyPixels),
    # Whoever sends a picture that is being worked on gets a ticket for the job that is there.
    unique=Unique("photo:{photo}", scope="live"),
)
def make_thumbnails(job: Job, photo: str, folder: str, pace: float = 0.0) -> str:
    """Make the thumbnails of an uploaded picture that are missing; return the address of its page.

    `pace` is a pause in seconds after each, so that a person can watch.
    """
    source, target = Path(folder) / UPLOADED / photo, Path(folder) / MADE
    clear_leftovers(photo, target)
    missing = [form for form in FORMATS if not file_of(target, photo, form).exists()]
    done = len(FORMATS) - len(missing)
    job.progress(done, len(FORMATS))
    if missing:
        if not source.exists():
            # The power failed before its sender was told that it is here: nobody waits for it.
            raise Skip("the picture never arrived")
        upright = open_upright(source)
        for form in missing:
            picture = cropped(upright, form.box) if form.square else shrunk(upright, form.box)
            write_whole(picture, file_of(target, photo, form), form.extension)
            done += 1
            job.progress(done, len(FORMATS), f"{form.name} is ready")
            time.sleep(pace)
    return f"/photos/{photo}"
