"""The plugin in a pytest of its own: which App, where its jobs are, and what it does without being asked."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from duly import App
from duly.client.settings import resolve
from duly.core.errors import UsageError
from duly.stores.open import clear_schema
from duly.testing.kit import standing
from duly.testing.place import own_url, place_of

APP = """
from duly import App

jobs = App("sqlite:///own.db")


@jobs.task
def hello() -> None: ...
"""
TESTS = """
import asyncio
import shop


def test_plain() -> None:
    pass


def test_the_app_of_the_project(duly_test) -> None:
    assert duly_test.app is shop.jobs
    shop.hello.enqueue()
    duly_test.assert_enqueued(shop.hello, times=1)


def test_an_empty_store_each_time(duly_test) -> None:
    duly_test.refute_enqueued(shop.hello)


def test_forgotten(duly_test) -> None:
    async def main() -> None:
        shop.hello.aenqueue()

    asyncio.run(main())
"""


def run_pytest(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", str(folder)],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("DULY_")},
        capture_output=True,
        text=True,
        timeout=55,
    )
    return done.stdout + done.stderr


@pytest.mark.process
def test_the_app_of_the_project_stands_on_a_store_of_the_test(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.duly]\napp = "shop:jobs"\n[tool.pytest.ini_options]\n')

    told = run_pytest(tmp_path)

    assert "4 passed, 1 error" in told, told
    assert "ERROR test_shop.py::test_forgotten" in told
    assert "the job was not stored" in told
    assert not (tmp_path / "own.db").exists()


@pytest.mark.process
def test_without_an_app_only_those_fail_that_ask_for_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "test_it.py").write_text("def test_plain(): pass\n\ndef test_asks(duly_test): pass\n")

    told = run_pytest(tmp_path)

    assert "1 passed, 1 error" in told, told
    assert 'app = "shop.background:jobs" under [tool.duly]' in told


def test_jobs_stand_in_a_file_of_the_test_unless_the_app_is_on_a_server(tmp_path: Path) -> None:
    file = resolve({"url": "sqlite:///shop.db"}, environ={}, directory=tmp_path)
    memory = resolve({"url": "memory://?max=4"}, environ={}, directory=tmp_path)
    server = resolve({"url": "postgresql://u@h/d"}, environ={}, directory=tmp_path)

    assert own_url(file, tmp_path) == own_url(memory, tmp_path) == f"sqlite:///{tmp_path}/duly.db"
    assert own_url(server, tmp_path) == "postgresql://u@h/d"


def test_each_process_of_a_run_has_a_schema_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = resolve({"url": "postgresql://u@h/d"}, environ={}, directory=tmp_path)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    alone = place_of(server, server.url)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    second = place_of(server, server.url)

    assert (alone.schema, second.schema) == ("duly_test_main", "duly_test_gw1")
    assert second.settings(server).schema == "duly_test_gw1"


def test_a_schema_that_is_not_for_tests_is_never_cleared(empty_postgres_url: str) -> None:
    with pytest.raises(UsageError, match="not one for tests"):
        clear_schema(empty_postgres_url, "duly", drop=True)


def test_on_a_server_each_test_finds_its_schema_empty(postgres_url: str) -> None:
    app = App(postgres_url)

    @app.task
    def hello(number: int) -> None: ...

    for _ in range(2):
        with standing(app, postgres_url) as kit:
            hello.using(delay="1d").enqueue(1)
            hello.enqueue(2)
            kit.assert_enqueued(hello, times=2)
            assert kit.drain().completed == 1
            assert kit.drain(scheduled=True).completed == 1
            hello.enqueue(3)


def test_on_a_server_a_transaction_that_is_rolled_back_leaves_nothing(postgres_url: str) -> None:
    app = App(postgres_url)

    @app.task
    def hello(number: int) -> None: ...

    with standing(app, postgres_url) as kit, psycopg.connect(postgres_url) as connection:
        hello.using(connection=connection).enqueue(1)
        kit.assert_enqueued(hello.draft(1), times=1, connection=connection)
        kit.refute_enqueued(hello)
        connection.rollback()

        kit.refute_enqueued(hello, connection=connection)
        assert kit.drain().ran == 0


def test_on_a_server_too_a_job_survives_a_death_at_every_step(postgres_url: str) -> None:
    app = App(postgres_url)
    seen: list[int] = []

    @app.task
    def hello() -> None:
        seen.append(1)

    with standing(app, postgres_url) as kit:
        assert kit.kill_at_every_step(hello.draft(), lambda: len(seen) <= 2, before=seen.clear) > 3
