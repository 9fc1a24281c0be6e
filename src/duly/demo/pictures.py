"""From one photograph to its five files: decoding, turning upright, converting, resizing, writing.

Plain Pillow, nothing of duly's jobs in it: whoever calls it decides what an error means.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from .pillow import Image

TooManyPixels: Final = Image.DecompressionBombError


class Format(NamedTuple):
    """One of the files made of each photograph."""

    name: str
    extension: str
    box: int
    """The longest side in pixels; both sides when `square`."""
    square: bool = False


FORMATS: Final = (
    Format("thumb", "webp", 160),
    Format("small", "jpg", 480),
    Format("medium", "jpg", 960),
    Format("large", "jpg", 1600),
    Format("square", "png", 512, square=True),
)

_KIND: Final = {"jpg": "JPEG", "webp": "WEBP", "png": "PNG"}
# By what writers save: progressive where it is large, quick where a person never sees the difference.
_OPTIONS: Final[dict[str, dict[str, object]]] = {
    "jpg": {"quality": 82, "progressive": True},
    "webp": {"quality": 82, "method": 2},
    "png": {"compress_level": 3},
}
ORIENTATION: Final = 0x0112
# What turns the stored pixels upright, by EXIF orientation; 1 is upright already.
TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ALPHA: Final = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_LARGEST: Final = max(form.box for form in FORMATS if not form.square)
_SQUARE: Final = max(form.box for form in FORMATS if form.square)


class BrokenPhoto(Exception):
    """The file begins like a photograph, but its picture cannot be decoded: trying again will not help."""


def file_of(folder: Path, photo: str, form: Format) -> Path:
    """Where one resized file belongs. The same for every attempt, so that a second run replaces the first."""
    return folder / f"{photo}.{form.name}.{form.extension}"


def resize_photo(source: Path, folder: Path, photo: str) -> list[Path]:
    """Write the five files of `photo` (a name of its own) into `folder`, each at once or not at all; return them.

    UnidentifiedImageError when it is no picture, BrokenPhoto when it cannot be decoded, OSError when a file cannot
    be read or written.
    """
    clear_leftovers(photo, folder)
    upright = open_upright(source)
    written: list[Path] = []
    large = shrunk(upright, _LARGEST)
    for form in FORMATS:
        picture = cropped(upright, form.box) if form.square else shrunk(large, form.box)
        target = file_of(folder, photo, form)
        write_whole(picture, target, form.extension)
        written.append(target)
    return written


def clear_leftovers(photo: str, folder: Path) -> None:
    """Remove what an attempt of this photograph that was killed while writing has left."""
    for leftover in folder.iterdir():
        if leftover.name.startswith(f".{photo}.") and leftover.suffix == ".part":
            leftover.unlink(missing_ok=True)


def open_upright(source: Path) -> Image.Image:
    """Decode as RGB, or RGBA when it has transparency, turned as its EXIF orientation says."""
    with Image.open(source) as image:
        width, height = image.size
        scale = max(_LARGEST / max(width, height), _SQUARE / min(width, height))
        if scale < 1:
            # A JPEG decoder can leave out what a smaller picture does not need: half the time on large ones.
            image.draft(None, (round(width * scale), round(height * scale)))
        try:
            image.load()
        except OSError as error:
            if error.errno is not None:
                raise
            raise BrokenPhoto(str(error)) from error
        except SyntaxError as error:
            raise BrokenPhoto(str(error)) from error
        return as_colour(turned_upright(image))


def turned_upright(image: Image.Image) -> Image.Image:
    """As a person holds it: the EXIF orientation applied."""
    turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
    return image if turn is None else image.transpose(turn)


def as_colour(image: Image.Image) -> Image.Image:
    """RGB, or RGBA where there is transparency. Sixteen bits are scaled, not clipped as a plain convert does."""
    profile = image.info.get("icc_profile") if image.mode in {"RGB", "RGBA"} else None
    if image.mode.startswith("I"):
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    transparent = image.mode in _ALPHA or "transparency" in image.info
    colour = image.convert("RGBA" if transparent else "RGB")
    colour.info = {} if profile is None else {"icc_profile": profile}
    return colour


def shrunk(image: Image.Image, box: int) -> Image.Image:
    """Fitted into a square of `box` pixels, never enlarged."""
    longest = max(image.size)
    if longest <= box:
        return image
    width, height = (max(1, round(side * box / longest)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)


def cropped(image: Image.Image, box: int) -> Image.Image:
    """The middle of the picture as a square of at most `box` pixels."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    middle = image.crop((left, top, left + side, top + side))
    return shrunk(middle, box)


def flattened(image: Image.Image) -> Image.Image:
    """Without transparency, on white."""
    if image.mode != "RGBA":
        return image.convert("RGB")
    paper = Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper


def write_whole(image: Image.Image, target: Path, extension: str) -> None:
    """Write beside the target and rename: nobody ever sees half a file, and a second run replaces the first."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    picture = flattened(image) if extension == "jpg" else image
    with part.open("wb") as file:
        picture.save(file, _KIND[extension], icc_profile=image.info.get("icc_profile"), **_OPTIONS[extension])
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


__all__ = [
    "FORMATS",
    "ORIENTATION",
    "TURNS",
    "BrokenPhoto",
    "Format",
    "TooManyPixels",
    "cropped",
    "file_of",
    "flattened",
    "open_upright",
    "resize_photo",
]
