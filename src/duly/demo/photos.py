"""Making photographs: deterministic, several megapixels each, with the hard cases that real folders hold.

Each is drawn with a colour of its own in every corner, so that its turn can be told from its quadrants. What a
right decoder must see is kept in a list beside the files, taken from the drawing and not from the file.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from .pictures import ORIENTATION, TURNS, cropped, flattened
from .pillow import Image, ImageDraw

Colour = tuple[int, int, int]
Quadrants = tuple[Colour, Colour, Colour, Colour]

MADE: Final = 40
SIZES: Final = ((3000, 2000), (3264, 2448), (4000, 3000), (2448, 3264), (3600, 2400))
_TILE: Final = 512

_BACK: Final = {
    Image.Transpose.ROTATE_90: Image.Transpose.ROTATE_270,
    Image.Transpose.ROTATE_270: Image.Transpose.ROTATE_90,
}


class Plan(Struct, frozen=True):
    """One photograph to make."""

    name: str
    kind: str
    """plain, progressive, grey, orientation, cmyk, alpha, palette, png16, grey16, truncated or text."""
    seed: int
    width: int
    """As a person sees it, turned upright."""
    height: int
    orientation: int = 1


class Expected(Struct, frozen=True):
    """What the files made of one photograph must show."""

    width: int
    height: int
    whole: Quadrants
    """Mean colours of the upright picture on white: top left, top right, bottom left, bottom right."""
    square: Quadrants
    transparent: bool = False


class Photo(Struct, frozen=True):
    """One source file. `expected` is None for a file that cannot be decoded."""

    path: str
    name: str
    """What its files are called after; no other photograph of the run has the same."""
    kind: str
    expected: Expected | None


def plans(count: int = MADE, sizes: tuple[tuple[int, int], ...] = SIZES) -> list[Plan]:
    """`count` good photographs, hard cases first, and two bad ones; always the same."""
    hard: list[tuple[str, str, int]] = [("orientation", "jpg", turn) for turn in TURNS]
    hard += [
        ("cmyk", "jpg", 1),
        ("png16", "png", 1),
        ("grey16", "png", 1),
        ("alpha", "png", 1),
        ("palette", "png", 1),
        ("progressive", "jpg", 1),
        ("grey", "jpg", 1),
    ]
    hard += [("plain", "jpg", 1)] * (count - len(hard))
    hard += [("truncated", "jpg", 1), ("text", "jpg", 1)]
    made: list[Plan] = []
    for number, (kind, extension, orientation) in enumerate(hard, start=1):
        width, height = sizes[0] if extension == "png" else sizes[number % len(sizes)]
        label = f"{kind}-{orientation}" if kind == "orientation" else kind
        name = f"{number:02d}-{label}.{extension}"
        made.append(Plan(name, kind, number, width, height, orientation))
    return made


def make(plan: Plan, folder: Path) -> Photo:
    """Draw one photograph and write it into `folder`."""
    path = folder / plan.name
    if plan.kind == "text":
        path.write_text("This is a shopping list, not a photograph.\nmilk, bread, film\n" * 40)
        return Photo(str(path), plan.name, plan.kind, None)
    scene = draw(plan.width, plan.height, plan.seed)
    if plan.kind in {"grey", "grey16"}:
        scene = scene.convert("L")
    elif plan.kind in {"alpha", "palette"}:
        scene = with_hole(scene, hard=plan.kind == "palette")
    _SAVE[plan.kind](scene, path, plan)
    if plan.kind == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
        return Photo(str(path), plan.name, plan.kind, None)
    return Photo(str(path), plan.name, plan.kind, expect(scene))


def expect(upright: Image.Image) -> Expected:
    """What files made of this upright picture must show."""
    paper = flattened(upright)
    square = cropped(paper, min(paper.size))
    return Expected(*upright.size, quadrants(paper), quadrants(square), upright.mode == "RGBA")


def quadrants(picture: Image.Image) -> Quadrants:
    """The mean colours of the four quarters of an RGB picture."""
    small = picture.resize((2, 2), Image.Resampling.BOX)
    pixels = small.tobytes()
    first, second, third, fourth = ((p[0], p[1], p[2]) for p in (pixels[i : i + 3] for i in (0, 3, 6, 9)))
    return first, second, third, fourth


def draw(width: int, height: int, seed: int) -> Image.Image:
    """A scene of four colours that run into each other, film grain, and round things of all sizes."""
    random = Random(seed)
    # Four brightnesses far apart: a turned or mirrored picture shows it, in grey as well.
    levels = random.sample((40, 98, 157, 215), 4)
    hues = (random.sample((-35, 0, 35), 3) for _ in levels)
    corners = bytes(level + shift for level, hue in zip(levels, hues, strict=True) for shift in hue)
    scene = Image.frombytes("RGB", (2, 2), corners).resize((width, height), Image.Resampling.BILINEAR)
    tile = Image.frombytes("RGB", (_TILE, _TILE), random.randbytes(_TILE * _TILE * 3))
    grain = Image.new("RGB", (width, height))
    for left in range(0, width, _TILE):
        for top in range(0, height, _TILE):
            grain.paste(tile, (left, top))
    scene = Image.blend(scene, grain, 0.06)
    pen = ImageDraw.Draw(scene)
    for _ in range(48):
        x, y, radius = random.randrange(width), random.randrange(height), random.randrange(4, 4 + width // 24)
        fill = (random.randrange(256), random.randrange(256), random.randrange(256))
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    return scene


def with_hole(scene: Image.Image, *, hard: bool) -> Image.Image:
    """See-through towards one corner: softly, or (`hard`) wholly or not at all, as a palette can hold it."""
    width, height = scene.size
    if hard:
        alpha = Image.new("L", scene.size, 255)
        ImageDraw.Draw(alpha).ellipse((0, 0, width // 2, height // 2), fill=0)
    else:
        alpha = Image.linear_gradient("L").resize(scene.size, Image.Resampling.BILINEAR)
    pierced = scene.copy()
    pierced.putalpha(alpha)
    return pierced


def _save_jpeg(scene: Image.Image, path: Path, plan: Plan) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = plan.orientation
    turn = TURNS.get(plan.orientation)
    stored = scene if turn is None else scene.transpose(_BACK.get(turn, turn))
    if plan.kind == "cmyk":
        stored = stored.convert("CMYK")
    stored.save(path, "JPEG", quality=85, exif=exif, progressive=plan.kind == "progressive")


def _save_png(scene: Image.Image, path: Path, plan: Plan) -> None:
    if plan.kind == "palette":
        scene = scene.quantize(256, method=Image.Quantize.FASTOCTREE)
    scene.save(path, "PNG", compress_level=1)


def _save_png16(scene: Image.Image, path: Path, plan: Plan) -> None:
    """Sixteen bits a channel, which Pillow reads and does not write in colour."""
    eight = scene.tobytes()
    sixteen = bytearray(2 * len(eight))
    sixteen[0::2] = eight
    sixteen[1::2] = eight
    colour = 0 if plan.kind == "grey16" else 2
    row = 2 * plan.width * (1 if plan.kind == "grey16" else 3)
    lines = b"".join(b"\0" + sixteen[start : start + row] for start in range(0, len(sixteen), row))
    header = struct.pack(">IIBBBBB", plan.width, plan.height, 16, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_SAVE: Final = {
    "plain": _save_jpeg,
    "progressive": _save_jpeg,
    "grey": _save_jpeg,
    "orientation": _save_jpeg,
    "cmyk": _save_jpeg,
    "truncated": _save_jpeg,
    "alpha": _save_png,
    "palette": _save_png,
    "png16": _save_png16,
    "grey16": _save_png16,
}
