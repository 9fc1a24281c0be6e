"""What the made photographs are, and that the files made of them are right. Small pictures, no jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, UnidentifiedImageError

from duly.demo.photos import MADE, SIZES, Photo, Plan, draw, expect, make, plans, quadrants
from duly.demo.pictures import (
    FORMATS,
    ORIENTATION,
    TURNS,
    BrokenPhoto,
    file_of,
    resize_photo,
)
from duly.demo.verify import TOLERANCE, check_names, check_photo

SMALL = ((300, 200), (326, 244), (240, 328))
HARD = [plan for plan in plans(14, SMALL) if plan.kind not in {"truncated", "text"}]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    photos, resized = tmp_path / "photos", tmp_path / "resized"
    photos.mkdir()
    resized.mkdir()
    return photos, resized


def resized(photo: Photo, folder: Path) -> Photo:
    resize_photo(Path(photo.path), folder, photo.name)
    return photo


def test_forty_good_photographs_and_two_bad_ones_are_planned_with_every_hard_case() -> None:
    planned = plans()

    kinds = [plan.kind for plan in planned]
    assert len(planned) == MADE + 2
    assert {plan.orientation for plan in planned if plan.kind == "orientation"} == set(TURNS)
    assert {"cmyk", "png16", "grey16", "alpha", "palette", "progressive", "grey", "plain"} <= set(kinds)
    assert kinds[-2:] == ["truncated", "text"]
    assert len({plan.name for plan in planned}) == len(planned)
    assert all(width * height >= 6_000_000 for width, height in SIZES)


def test_the_same_plan_makes_the_same_file(tmp_path: Path) -> None:
    plan = plans(14, SMALL)[0]
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()

    first, second = make(plan, one), make(plan, other)

    assert Path(first.path).read_bytes() == Path(second.path).read_bytes()
    assert first.expected == second.expected


def test_each_hard_case_is_stored_as_what_it_is_called(folders: tuple[Path, Path]) -> None:
    seen: dict[str, tuple[str | None, str]] = {}

    for plan in HARD:
        photo = make(plan, folders[0])
        with Image.open(photo.path) as image:
            seen[plan.kind] = (image.format, image.mode)
            assert image.getexif().get(ORIENTATION, 1) == plan.orientation
            if plan.kind == "progressive":
                assert image.info["progressive"]
        if plan.kind == "png16":
            assert Path(photo.path).read_bytes()[24] == 16

    assert seen == {
        "orientation": ("JPEG", "RGB"),
        "cmyk": ("JPEG", "CMYK"),
        "png16": ("PNG", "RGB"),
        "grey16": ("PNG", "I;16"),
        "alpha": ("PNG", "RGBA"),
        "palette": ("PNG", "P"),
        "progressive": ("JPEG", "RGB"),
        "grey": ("JPEG", "L"),
    }


@pytest.mark.parametrize("plan", HARD, ids=[plan.name for plan in HARD])
def test_all_five_files_of_a_hard_case_are_right(plan: Plan, folders: tuple[Path, Path]) -> None:
    photo = make(plan, folders[0])

    resized(photo, folders[1])

    assert check_photo(photo, folders[1]) == []
    assert check_names([photo], folders[1]) == []


def test_a_text_file_named_jpg_is_no_picture(folders: tuple[Path, Path]) -> None:
    photo = make(Plan("text.jpg", "text", 1, 0, 0), folders[0])

    with pytest.raises(UnidentifiedImageError, match="cannot identify image file"):
        resized(photo, folders[1])

    assert list(folders[1].iterdir()) == []


def test_a_truncated_photograph_is_broken_for_good(folders: tuple[Path, Path]) -> None:
    photo = make(Plan("cut.jpg", "truncated", 1, 300, 200), folders[0])

    with pytest.raises(BrokenPhoto, match="truncated"):
        resized(photo, folders[1])

    assert list(folders[1].iterdir()) == []


def test_a_missing_photograph_is_an_os_error_that_may_pass(folders: tuple[Path, Path]) -> None:
    with pytest.raises(FileNotFoundError):
        resize_photo(folders[0] / "none.jpg", folders[1], "none.jpg")


def test_a_second_run_replaces_the_first_and_removes_what_a_killed_one_left(
    folders: tuple[Path, Path],
) -> None:
    photo = resized(make(HARD[0], folders[0]), folders[1])
    target = file_of(folders[1], photo.name, FORMATS[0])
    target.write_bytes(b"half a fi")
    (folders[1] / f".{target.name}.4711.part").write_bytes(b"half a fi")

    resized(photo, folders[1])

    assert check_names([photo], folders[1]) == []
    assert check_photo(photo, folders[1]) == []


def test_no_file_is_larger_than_its_photograph(folders: tuple[Path, Path]) -> None:
    photo = resized(make(Plan("tiny.jpg", "plain", 1, 120, 90), folders[0]), folders[1])

    sizes = {}
    for form in FORMATS:
        with Image.open(file_of(folders[1], photo.name, form)) as image:
            sizes[form.name] = image.size
    assert sizes == {
        "thumb": (120, 90),
        "small": (120, 90),
        "medium": (120, 90),
        "large": (120, 90),
        "square": (90, 90),
    }
    assert check_photo(photo, folders[1]) == []


def test_a_panorama_is_fitted_by_its_longest_side(folders: tuple[Path, Path]) -> None:
    photo = resized(make(Plan("wide.jpg", "plain", 3, 5000, 700), folders[0]), folders[1])

    assert check_photo(photo, folders[1]) == []


def test_every_turn_of_a_made_photograph_shows_in_its_quadrants() -> None:
    for plan in plans():
        width, height = plan.width // 20, plan.height // 20
        upright = draw(width, height, plan.seed)
        seen = quadrants(upright)

        for turn in TURNS.values():
            turned = quadrants(upright.transpose(turn))
            furthest = max(
                abs(one - other)
                for colours in zip(seen, turned, strict=True)
                for one, other in zip(*colours, strict=True)
            )
            assert furthest > 2 * TOLERANCE, (plan.name, turn)


def test_what_is_expected_is_counted_on_white_paper() -> None:
    clear = Image.new("RGBA", (40, 20), (0, 0, 0, 0))

    expected = expect(clear)

    assert expected.whole == ((255, 255, 255),) * 4
    assert expected.transparent
