"""Where the demo's photographs come from: made once, taken from a folder, or from the system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from duly import demo
from duly.core.errors import UsageError
from duly.demo.gather import Advance, gather, named, pictures_in, system_pictures
from duly.demo.photos import plans

SMALL = ((60, 40),)


class Watched:
    """A stage that keeps what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    @contextmanager
    def __call__(self, label: str) -> Iterator[Advance]:
        yield lambda done, of, note: self.seen.append((label, done, of))


def picture(path: Path, size: tuple[int, int] = (60, 40), camera: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if camera:
        exif[0x010F] = camera
    Image.new("RGB", size, "teal").save(path, exif=exif)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Photographs of 60 pixels: the real ones take a quarter of a second each."""
    monkeypatch.setattr(demo.gather, "plans", lambda count: plans(max(count, 14), SMALL))


@pytest.mark.process
@pytest.mark.usefixtures("small")
def test_a_folder_of_photographs_is_filled_up_to_forty_and_never_written_to(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    picture(mine / "a.jpg")
    picture(mine / "deep" / "a.jpg")
    (mine / "broken.png").write_text("no picture")
    watched = Watched()

    photos = gather(tmp_path / "work", mine, watched)

    taken = [photo for photo in photos if photo.kind == "taken"]
    assert [(photo.name, photo.expected is None) for photo in taken] == [
        ("taken-a.jpg", False),
        ("taken-broken.png", True),
        ("taken-a-2.jpg", False),
    ]
    assert sorted(path.name for path in mine.rglob("*")) == ["a.jpg", "a.jpg", "broken.png", "deep"]
    assert len(photos) == 37 + 2 + 3
    assert ("looking at photographs", 3, 3) in watched.seen


@pytest.mark.process
@pytest.mark.usefixtures("small")
def test_photographs_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.gather, "system_pictures", list)
    first = gather(tmp_path, None, Watched())
    watched = Watched()

    second = gather(tmp_path, None, watched)

    assert second == first
    assert watched.seen == []


def test_a_folder_that_is_not_there_or_holds_no_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        pictures_in(tmp_path / "none")
    with pytest.raises(UsageError, match="no picture files in it"):
        pictures_in(tmp_path)


def test_system_pictures_are_large_jpegs_and_real_cameras_come_first(tmp_path: Path) -> None:
    picture(tmp_path / "nature" / "drawn.jpg", (1200, 900))
    picture(tmp_path / "nature" / "shot.jpg", (1200, 900), camera="Canon")
    picture(tmp_path / "nature" / "icon.jpg", (64, 64))

    found = system_pictures(tmp_path)

    assert [path.name for path in found] == ["shot.jpg", "drawn.jpg"]
    assert system_pictures(tmp_path / "none") == []


def test_photographs_of_one_name_get_names_of_their_own() -> None:
    given = named([Path("a/x.jpg"), Path("b/x.jpg"), Path("x-2.jpg")])

    names = [name for _, name in given]
    assert names == ["taken-x.jpg", "taken-x-2.jpg", "taken-x-2-2.jpg"]
