"""The demo's checks find each fault that they are there for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageOps

from duly.demo.photos import Photo, Plan, make
from duly.demo.pictures import FORMATS, ORIENTATION, file_of, resize_photo
from duly.demo.verify import check_names, check_photo

THUMB, SMALL, MEDIUM, LARGE, SQUARE = FORMATS


@pytest.fixture
def resized(tmp_path: Path) -> tuple[Photo, Path]:
    folder = tmp_path / "resized"
    folder.mkdir()
    photo = make(Plan("a.png", "alpha", 7, 1200, 800), tmp_path)
    resize_photo(Path(photo.path), folder, photo.name)
    assert check_photo(photo, folder) == []
    return photo, folder


def changed(path: Path, change: Callable[[Image.Image], Image.Image]) -> None:
    with Image.open(path) as image:
        image.load()
        kind = image.format
        picture = change(image)
    picture.save(path, kind)


def test_a_missing_and_a_surplus_file_are_named(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    file_of(folder, photo.name, MEDIUM).rename(folder / "other.jpg")

    wrong = check_names([photo], folder)

    assert wrong == ["a.png.medium.jpg is missing", "other.jpg should not be there"]


def test_half_a_file_cannot_be_opened(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    path = file_of(folder, photo.name, LARGE)
    path.write_bytes(path.read_bytes()[:2000])

    (wrong,) = check_photo(photo, folder)

    assert wrong.startswith("a.png.large.jpg cannot be opened: ")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (ImageOps.mirror, "is mirrored"),
        (lambda image: image.transpose(Image.Transpose.ROTATE_180), "is upside down"),
        (lambda image: image.transpose(Image.Transpose.ROTATE_270), "is turned to the right"),
        (lambda image: image.transpose(Image.Transpose.ROTATE_90), "is turned to the left"),
    ],
)
def test_a_turned_square_is_told_by_its_colours(
    resized: tuple[Photo, Path], change: Callable[[Image.Image], Image.Image], fault: str
) -> None:
    photo, folder = resized
    changed(file_of(folder, photo.name, SQUARE), change)

    assert check_photo(photo, folder) == [f"a.png.square.png {fault}"]


def test_swapped_colours_are_seen(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    changed(file_of(folder, photo.name, SMALL), lambda image: Image.merge("RGB", image.split()[::-1]))

    (wrong,) = check_photo(photo, folder)

    assert wrong.startswith("a.png.small.jpg has other colours: #")


def test_a_wrong_size_is_seen(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    changed(file_of(folder, photo.name, SMALL), lambda image: image.resize((480, 300)))

    assert check_photo(photo, folder) == ["a.png.small.jpg is 480x300, which is wrong for 1200x800"]


def test_a_file_of_another_kind_is_seen(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    path = file_of(folder, photo.name, THUMB)
    with Image.open(path) as image:
        image.load()
    image.save(path, "PNG")

    assert check_photo(photo, folder) == ["a.png.thumb.webp is a PNG"]


def test_lost_transparency_is_seen(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized

    def flat(image: Image.Image) -> Image.Image:
        paper = Image.new("RGB", image.size, "white")
        paper.paste(image, mask=image.getchannel("A"))
        return paper

    changed(file_of(folder, photo.name, SQUARE), flat)

    assert check_photo(photo, folder) == ["a.png.square.png has lost its transparency"]


def test_an_orientation_that_is_left_in_the_file_is_seen(resized: tuple[Photo, Path]) -> None:
    photo, folder = resized
    path = file_of(folder, photo.name, SMALL)
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    with Image.open(path) as image:
        image.load()
    image.save(path, "JPEG", exif=exif)

    assert check_photo(photo, folder) == ["a.png.small.jpg still says that it is turned (6)"]
