"""The demo as a person starts it: photographs, a real worker, a kill, and the ledger. Only twenty photographs."""

from __future__ import annotations

import builtins
import importlib
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from PIL import Image

from duly import demo
from duly.cli.main import cli
from duly.core.errors import UsageError
from duly.demo.app import jobs
from duly.demo.photos import draw
from duly.demo.run import prepare


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
# On a file `make demo` does it, which is a part of `make ci`.
@pytest.mark.parametrize("store", [pytest.param("sqlite", marks=pytest.mark.long), "postgres"])
def test_every_photograph_is_resized_once_though_a_worker_is_killed(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo.gather, "MADE", 20)
    monkeypatch.setattr(demo.gather, "system_pictures", list)
    mine = tmp_path / "mine"
    mine.mkdir()
    draw(1600, 1200, 99).save(mine / "holiday.jpg")
    where = [] if store == "sqlite" else ["--url", request.getfixturevalue("postgres_url")]

    result = CliRunner().invoke(cli, ["demo", "--headless", "--photos", str(mine), "-o", "json", *where])

    assert result.exit_code == 0, result.stderr
    ledger = msgspec.json.decode(result.stdout)
    assert ledger["ok"] is True
    assert ledger["failures"] == []
    assert (ledger["photographs"], ledger["taken"], ledger["broken"]) == (22, 1, 2)
    assert (ledger["jobs"], ledger["completed"], ledger["dead"], ledger["unfinished"]) == (22, 20, 2, 0)
    assert ledger["lost"] >= 1
    assert len(ledger["kills"]) >= 1
    assert ledger["attempts"] == 22 + ledger["lost"]
    assert [letter["photo"] for letter in ledger["dead_letters"]] == ["20-truncated.jpg", "21-text.jpg"]
    files = sorted(path.name for path in (tmp_path / "duly-demo" / "resized").iterdir())
    assert len(files) == ledger["files"] == 100
    with Image.open(tmp_path / "duly-demo" / "resized" / "taken-holiday.jpg.large.jpg") as large:
        assert large.size == (1600, 1200)
    assert not jobs.client.is_open


def test_a_folder_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "mine" / "resized" / "letter.txt"
    letter.parent.mkdir(parents=True)
    letter.write_text("keep me")

    with pytest.raises(UsageError, match="is not the demo's"):
        prepare(tmp_path / "mine")

    assert letter.read_text() == "keep me"


def test_the_demos_own_folder_is_emptied_of_files_only(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "duly-demo")
    (folder / "resized" / "old.jpg").write_text("old")
    (folder / "photos").mkdir()

    prepare(tmp_path / "duly-demo")

    assert list((folder / "resized").iterdir()) == []
    assert (folder / "photos").is_dir()


def test_a_folder_of_photographs_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(cli, ["demo", "--photos", "none"])

    assert (result.stderr, result.exit_code) == ("error: --photos none: there is no such folder\n", 2)


@pytest.mark.parametrize("module", ["app", "run", "ledger", "gather", "verify", "pictures", "photos"])
def test_without_pillow_it_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "PIL" or name.startswith("PIL."):
            raise ModuleNotFoundError("No module named 'PIL'", name="PIL")
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    loaded = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("duly.demo")}
    monkeypatch.setattr(builtins, "__import__", without)
    try:
        with pytest.raises(UsageError, match=r"pip install 'duly\[demo\]'"):
            importlib.import_module(f"duly.demo.{module}")
    finally:
        for name in list(sys.modules):
            if name.startswith("duly.demo"):
                del sys.modules[name]
        sys.modules.update(loaded)
