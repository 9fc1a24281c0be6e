"""Database URLs as people write them."""

from pathlib import Path

import pytest

from duly.core.errors import UsageError
from duly.stores.open import open_store
from duly.stores.urls import parse_url, shown


def test_three_slashes_are_relative_and_four_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    assert parse_url("sqlite:///shop.db").path == tmp_path / "shop.db"
    assert parse_url("sqlite:////var/lib/shop.db").path == Path("/var/lib/shop.db")
    assert parse_url("sqlite:///my%20shop.db").path == tmp_path / "my shop.db"


def test_opening_makes_no_file(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/jobs.db")

    assert store.url == f"sqlite:///{tmp_path}/jobs.db"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h/d",
        "postgres://u:p@h/d",
        "postgresql+psycopg://u:p@h/d",
        "postgresql+asyncpg://u:p@h/d",
        " postgresql://u:p@h/d ",
    ],
)
def test_every_spelling_of_postgresql_is_taken(url: str) -> None:
    address = parse_url(url)

    assert (address.kind, address.url, address.shown) == (
        "postgres",
        "postgresql://u:p@h/d",
        "postgresql://u:***@h/d",
    )


class _Url:
    """As SQLAlchemy's: its text hides the password."""

    def __str__(self) -> str:
        return "postgresql://u:***@h/d"

    def render_as_string(self, hide_password: bool = True) -> str:
        return str(self) if hide_password else "postgresql+psycopg://u:secret@h/d"


def test_a_url_object_of_sqlalchemy_is_taken_with_its_password() -> None:
    assert parse_url(_Url()).url == "postgresql://u:secret@h/d"


def test_a_hidden_password_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="hide_password=False"):
        parse_url(str(_Url()))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://h/d", "write sqlite:///"),
        ("shop.db", "write sqlite:///"),
        ("", "write sqlite:///"),
        (None, "not text"),
        ("sqlite://shop.db", "sqlite:///shop.db"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///shop.db?mode=ro", "takes none"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(url: object, words: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_url(url)

    assert words in str(error.value)


def test_a_url_is_shown_without_its_password() -> None:
    assert shown("postgresql://u:p@ss@h:5/d?x=1") == "postgresql://u:***@h:5/d?x=1"
    assert shown("postgresql://u@h/d") == "postgresql://u@h/d"
    assert shown("postgresql://h/d") == "postgresql://h/d"
