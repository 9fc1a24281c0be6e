"""Gathering what the demo works on: photographs it makes, those of a folder, and camera pictures of the system.

Everything slow runs in a pool of processes. Writes only into the folder it is given.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from duly.core.errors import UsageError

from .photos import MADE, Photo, Plan, expect, make, plans
from .pictures import as_colour
from .pillow import Image, ImageOps

Advance = Callable[[int, int, str], None]
"""(done, of, what else to say)."""
Stage = Callable[[str], AbstractContextManager[Advance]]
"""A stretch of work under its name, shown to somebody or not."""

EXTENSIONS: Final = frozenset({".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"})
SYSTEM_PICTURES: Final = Path("/usr/share/backgrounds")
"""Where Debian's package mate-backgrounds and others keep photographs taken with real cameras."""
_MOST_SYSTEM: Final = 12
_MEGAPIXEL: Final = 1_000_000
_LIST: Final = "photographs.json"

Given = TypeVar("Given")
Made = TypeVar("Made")


def gather(folder: Path, taken_from: Path | None, stage: Stage) -> list[Photo]:
    """At least 40 good photographs and two bad ones: those of `taken_from`, else of the system, and made ones.

    Made ones are kept in `folder` and made once. UsageError when `taken_from` is no folder with pictures.
    """
    if taken_from is None:
        found = system_pictures()
        fill = MADE
    else:
        found = pictures_in(taken_from)
        fill = max(0, MADE - len(found))
    made = _made(plans(fill), folder, stage)
    taken = parallel(_look, named(found), "looking at photographs", stage)
    return made + list(taken)


def pictures_in(folder: Path) -> list[Path]:
    """The picture files below a folder, by name. UsageError when there are none."""
    if not folder.is_dir():
        raise UsageError(f"--photos {folder}: there is no such folder")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS and path.is_file())
    if not found:
        raise UsageError(f"--photos {folder}: no picture files in it ({', '.join(sorted(EXTENSIONS))})")
    return found


def system_pictures(folder: Path = SYSTEM_PICTURES) -> list[Path]:
    """JPEG files of at least a megapixel, first those that name their camera; none where there are none."""
    ranked: list[tuple[bool, Path]] = []
    for path in sorted(folder.rglob("*.jpg")) if folder.is_dir() else []:
        with Image.open(path) as image:
            if image.width * image.height >= _MEGAPIXEL:
                ranked.append((image.getexif().get(0x010F) is None, path))
    return [path for _, path in sorted(ranked)][:_MOST_SYSTEM]


def named(found: Iterable[Path]) -> list[tuple[Path, str]]:
    """A name for each that no other has."""
    taken: dict[str, Path] = {}
    for path in found:
        name, number = path.name, 1
        while name in taken:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        taken[name] = path
    return [(path, f"taken-{name}") for name, path in taken.items()]


def parallel(work: Callable[[Given], Made], over: Iterable[Given], what: str, stage: Stage) -> Iterator[Made]:
    """`map` over a pool of processes, as one stage."""
    items = list(over)
    if not items:
        return
    # Spawned and not forked: the caller has threads. Ctrl-C is the caller's to obey.
    pool = ProcessPoolExecutor(
        _cores(),
        mp_context=get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        with stage(what) as advance:
            for done, made in enumerate(pool.map(work, items), start=1):
                advance(done, len(items), "")
                yield made
    finally:
        pool.shutdown(cancel_futures=True)


def _made(wanted: list[Plan], folder: Path, stage: Stage) -> list[Photo]:
    kept = folder / _LIST
    known = _read(kept)
    if [photo.name for photo in known] == [plan.name for plan in wanted] and all(
        Path(photo.path).is_file() for photo in known
    ):
        return known
    folder.mkdir(parents=True, exist_ok=True)
    made = list(parallel(_make, [(plan, folder) for plan in wanted], "making photographs", stage))
    kept.write_bytes(msgspec.json.encode(made))
    return made


def _read(kept: Path) -> list[Photo]:
    try:
        return msgspec.json.decode(kept.read_bytes(), type=list[Photo])
    except (FileNotFoundError, msgspec.DecodeError):
        return []


def _make(given: tuple[Plan, Path]) -> Photo:
    return make(*given)


def _look(given: tuple[Path, str]) -> Photo:
    """What a photograph shows; by another road than the resizing, so that both can be compared."""
    path, name = given
    try:
        with Image.open(path) as image:
            image.load()
            upright = as_colour(ImageOps.exif_transpose(image))
    except (OSError, SyntaxError, Image.DecompressionBombError):
        return Photo(str(path.resolve()), name, "taken", None)
    return Photo(str(path.resolve()), name, "taken", expect(upright))


def _cores() -> int:
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
