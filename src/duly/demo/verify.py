"""Checking the files that a run has made: there once, readable, the right size, turn and colours.

Compares with what the photographs were known to show beforehand; knows nothing of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .gather import Stage, parallel
from .photos import Expected, Photo, Quadrants, quadrants
from .pictures import FORMATS, ORIENTATION, Format, file_of, flattened
from .pillow import Image

# Of 255, for the mean of a quarter of a picture: what JPEG and WebP change stays below three.
TOLERANCE: Final = 8


def check_all(photos: Iterable[Photo], folder: Path, stage: Stage) -> list[str]:
    """One sentence for everything that is wrong with the files in `folder`; empty when all is right."""
    good = [photo for photo in photos if photo.expected is not None]
    wrong = check_names(good, folder)
    for found in parallel(_check, [(photo, folder) for photo in good], "checking files", stage):
        wrong += found
    return wrong


def check_names(good: Iterable[Photo], folder: Path) -> list[str]:
    """Every file that is missing or should not be there."""
    wanted = {file_of(folder, photo.name, form).name for photo in good for form in FORMATS}
    there = {path.name for path in folder.iterdir()}
    wrong = [f"{name} is missing" for name in sorted(wanted - there)]
    return wrong + [f"{name} should not be there" for name in sorted(there - wanted)]


def check_photo(photo: Photo, folder: Path) -> list[str]:
    """What is wrong with the five files of one photograph that are there."""
    wrong: list[str] = []
    if photo.expected is None:
        return wrong
    for form in FORMATS:
        path = file_of(folder, photo.name, form)
        if path.is_file():
            wrong += [f"{path.name} {fault}" for fault in check_file(path, form, photo.expected)]
    return wrong


def check_file(path: Path, form: Format, expected: Expected) -> list[str]:
    """What is wrong with one file."""
    try:
        with Image.open(path) as image:
            image.load()
            kind, picture = image.format, image
            turned = image.getexif().get(ORIENTATION, 1)
    except (OSError, SyntaxError) as error:
        return [f"cannot be opened: {error}"]
    wrong: list[str] = []
    if kind != {"jpg": "JPEG", "webp": "WEBP", "png": "PNG"}[form.extension]:
        wrong.append(f"is a {kind}")
    if not right_size(picture.size, form, expected):
        wrong.append(
            f"is {picture.width}x{picture.height}, which is wrong for {expected.width}x{expected.height}"
        )
    if turned != 1:
        wrong.append(f"still says that it is turned ({turned})")
    if expected.transparent and form.extension != "jpg" and picture.mode != "RGBA":
        wrong.append("has lost its transparency")
    if fault := _colours(
        quadrants(flattened(_plain(picture))), expected.square if form.square else expected.whole
    ):
        wrong.append(fault)
    return wrong


def right_size(size: tuple[int, int], form: Format, expected: Expected) -> bool:
    """Whether a file has the size that its format makes of the photograph, to a pixel of rounding."""
    longest, shortest = max(expected.width, expected.height), min(expected.width, expected.height)
    if form.square:
        return size == (min(form.box, shortest),) * 2
    scale = min(1.0, form.box / longest)
    return all(
        abs(side - max(1.0, whole * scale)) <= 1
        for side, whole in zip(size, (expected.width, expected.height), strict=True)
    ) and max(size) == min(form.box, longest)


def _colours(seen: Quadrants, wanted: Quadrants) -> str | None:
    if _near(seen, wanted):
        return None
    first, second, third, fourth = wanted
    turns = {
        "upside down": (fourth, third, second, first),
        "turned to the right": (third, first, fourth, second),
        "turned to the left": (second, fourth, first, third),
        "mirrored": (second, first, fourth, third),
    }
    for turn, other in turns.items():
        if _near(seen, other):
            return f"is {turn}"
    return f"has other colours: {_shown(seen)}, not {_shown(wanted)}"


def _near(seen: Quadrants, wanted: Quadrants) -> bool:
    return all(
        abs(one - other) <= TOLERANCE
        for colours in zip(seen, wanted, strict=True)
        for one, other in zip(*colours, strict=True)
    )


def _shown(colours: Quadrants) -> str:
    return " ".join(f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in colours)


def _plain(image: Image.Image) -> Image.Image:
    return image if image.mode in {"RGB", "RGBA"} else image.convert("RGBA")


def _check(given: tuple[Photo, Path]) -> list[str]:
    return check_photo(*given)
