"""Where a setting comes from, and what is said about one that is wrong."""

from datetime import timedelta
from pathlib import Path

import pytest

from duly.client.settings import READERS, resolve
from duly.core.errors import UsageError


def write_project(directory: Path, text: str) -> Path:
    (directory / "pyproject.toml").write_text(text, encoding="utf-8")
    return directory


def test_a_flag_goes_before_code_before_the_environment_before_the_project_before_the_default(
    tmp_path: Path,
) -> None:
    directory = write_project(
        tmp_path, '[tool.duly]\nlease = "50s"\ngrace = "5s"\nattempts = 3\nthreads = 4\n'
    )
    environ = {"DULY_LEASE": "40s", "DULY_GRACE": "4s", "DULY_ATTEMPTS": "4"}

    settings = resolve({"lease": "20s", "grace": "3s"}, environ=environ, directory=directory).overridden(
        lease="1m"
    )

    assert settings.lease == timedelta(minutes=1)
    assert settings.grace == timedelta(seconds=3)
    assert settings.attempts == 4
    assert settings.threads == 4
    assert settings.concurrency == 50
    assert [
        str(settings.origins[name]) for name in ("lease", "grace", "attempts", "threads", "concurrency")
    ] == [
        "flag (--lease)",
        "code",
        "environment (DULY_ATTEMPTS)",
        f"pyproject.toml ({directory / 'pyproject.toml'})",
        "default",
    ]


def test_an_unknown_variable_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"DULY_CONCURENCY.*did you mean DULY_CONCURRENCY\?"):
        resolve({}, environ={"DULY_CONCURENCY": "4"}, directory=tmp_path)


def test_an_unknown_key_of_the_project_file_is_an_error_that_names_file_and_nearest(tmp_path: Path) -> None:
    directory = write_project(tmp_path, '[tool.duly]\nurll = "sqlite:///x.db"\n')

    with pytest.raises(UsageError, match=r"pyproject\.toml: \[tool\.duly\].*'urll'; did you mean url\?"):
        resolve({}, environ={}, directory=directory)


def test_a_broken_project_file_is_named(tmp_path: Path) -> None:
    directory = write_project(tmp_path, "[tool.duly\n")

    with pytest.raises(UsageError, match=r"pyproject\.toml cannot be read"):
        resolve({}, environ={}, directory=directory)


def test_the_project_file_is_found_from_a_folder_below(tmp_path: Path) -> None:
    write_project(tmp_path, '[tool.duly]\napp = "shop:jobs"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    assert resolve({}, environ={}, directory=below).app == "shop:jobs"


def test_an_empty_variable_counts_as_absent(tmp_path: Path) -> None:
    settings = resolve({}, environ={"DULY_LEASE": ""}, directory=tmp_path)

    assert settings.lease == timedelta(seconds=30)


def test_code_that_hides_a_variable_is_noted(tmp_path: Path) -> None:
    environ = {"DULY_URL": "sqlite:////env.db", "DULY_LEASE": "40s"}

    settings = resolve({"url": "sqlite:////code.db"}, environ=environ, directory=tmp_path)

    assert settings.url == "sqlite:////code.db"
    assert settings.hidden == ("DULY_URL",)


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    settings = resolve(
        {"url": "postgresql://ada:secret@db/shop?password=hidden"}, environ={}, directory=tmp_path
    )

    shown = {row.name: row.value for row in settings.rows()}

    assert settings.url == "postgresql://ada:secret@db/shop?password=hidden"
    assert shown["url"] == "postgresql://ada:***@db/shop?password=***"


def test_every_setting_has_a_row(tmp_path: Path) -> None:
    rows = resolve({}, environ={}, directory=tmp_path).rows()

    assert [row.name for row in rows] == list(READERS)


def test_a_relative_file_is_fixed_to_the_folder_of_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert resolve({}, environ={}).url == f"sqlite:///{tmp_path}/duly.db"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("DULY_LEASE", "30", "write '30s'"),
        ("DULY_LEASE", "0s", "longer than zero"),
        ("DULY_HEARTBEAT", "20s", "write a lease of '1m'"),
        ("DULY_ATTEMPTS", "many", "whole number from 1"),
        ("DULY_THREADS", "0", "whole number from 1"),
        ("DULY_MAX_PAYLOAD", "300", "write one such as"),
        ("DULY_LOG", "xml", "none of text, json"),
        ("DULY_DEBUG", "maybe", "'on' or 'off'"),
        ("DULY_KEEP_DEAD", "1h", "write '1d'"),
        ("DULY_URL", "mysql://db/shop", "postgresql://"),
        ("DULY_URL", "postgresql://u:***@db/shop", "render_as_string"),
        ("DULY_BLOBS", "/var/lib/duly/blobs", "write file:///var/lib/duly/blobs"),
        ("DULY_BLOBS", "s3://bucket/blobs", "write file:///var/lib/duly/blobs"),
        ("DULY_BLOBS", "file://server/blobs", "write file:///var/lib/duly/blobs"),
        ("DULY_BLOBS", "file:blobs", "has no absolute path"),
    ],
)
def test_a_value_that_cannot_be_read_says_what_to_write(
    tmp_path: Path, variable: str, value: str, told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        resolve({}, environ={variable: value}, directory=tmp_path)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("timeout", 30), ("timeout", 1.5), ("attempts", True), ("attempts", "0"), ("max_payload", 1000)],
)
def test_a_value_in_code_without_its_unit_is_refused(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(UsageError, match=name):
        resolve({name: value}, environ={}, directory=tmp_path)


def test_limits_may_be_switched_off(tmp_path: Path) -> None:
    environ = {"DULY_MAX_JOBS": "off", "DULY_MAX_MEMORY": "off", "DULY_NOTIFY": "auto", "DULY_GRACE": "0s"}

    settings = resolve({}, environ=environ, directory=tmp_path)

    assert (settings.max_jobs, settings.max_memory, settings.notify) == (None, None, None)
    assert settings.grace == timedelta(0)


def test_a_folder_of_blobs_is_a_url_of_an_absolute_path(tmp_path: Path) -> None:
    def folder(value: str) -> Path | None:
        return resolve({}, environ={"DULY_BLOBS": value}, directory=tmp_path).blobs

    assert folder("file:///var/lib/duly/my%20blobs") == Path("/var/lib/duly/my blobs")
    assert folder("file://localhost/blobs") == Path("/blobs")
    assert folder("off") is folder("") is None


SECRET = "the first secret of this site"


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    settings = resolve({}, environ={"DULY_SECRET": f"{SECRET}, the one before this one"}, directory=tmp_path)

    shown = {row.name: row.value for row in settings.rows()}

    assert settings.secret == (SECRET, "the one before this one")
    assert SECRET not in repr(settings) + str(settings.secret)
    assert shown["secret"] == "2 set, not shown"


def test_a_short_secret_is_refused_without_being_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="token_urlsafe") as caught:
        resolve({}, environ={"DULY_SECRET": f"{SECRET},hunter2"}, directory=tmp_path)

    assert "hunter2" not in str(caught.value)


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")

    settings = resolve({}, environ={"DULY_SECRET_FILE": str(tmp_path / "secret")}, directory=tmp_path)

    assert settings.secret == (SECRET,)


def test_a_secret_in_a_file_and_in_the_environment_is_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)

    with pytest.raises(UsageError, match="keep one"):
        resolve(
            {},
            environ={"DULY_SECRET_FILE": str(tmp_path / "secret"), "DULY_SECRET": SECRET},
            directory=tmp_path,
        )


def test_a_secret_file_that_is_missing_or_empty_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")

    for name, told in (("missing", "cannot be read"), ("empty", "is empty")):
        with pytest.raises(UsageError, match=told):
            resolve({}, environ={"DULY_SECRET_FILE": str(tmp_path / name)}, directory=tmp_path)
