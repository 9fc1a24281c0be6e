"""Commands that touch the user's code: finding the App, check, migrate, enqueue, worker's refusals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from duly.cli.loading import load_app
from duly.core.errors import UsageError
from tests.cli.conftest import Answer, run

SHOP = """
from duly.app import App

jobs = App("sqlite:///shop.db")
mail = jobs.queue("mail", owner="growth@shop")


@jobs.task(queue=mail)
def send_receipt(order_id: int, note: str = "") -> str:
    return "sent"


def create() -> App:
    return jobs
"""


@pytest.fixture(autouse=True)
def fresh_modules(tmp_path: Path) -> Iterator[None]:
    """Modules that a test writes are imported anew by the next."""
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def rows(answer: Answer) -> dict[str, object]:
    document = answer.json
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("reference", ["shop", "shop:jobs", "shop:create"])
def test_an_app_is_found_by_module_name_or_factory(reference: str, shop: Path) -> None:
    app = load_app(reference)

    assert list(app.tasks) == ["send_receipt"]


def test_a_resource_and_a_lock_beside_the_app_are_no_apps(shop: Path) -> None:
    (shop / "shop.py").write_text(
        SHOP + '\napi = jobs.resource("api", max_running=4)\nledger = jobs.lock("ledger", ttl="5m")'
    )

    app = load_app("shop")

    assert list(app.tasks) == ["send_receipt"]
    with pytest.raises(UsageError, match="shop:api is Resource, neither an App"):
        load_app("shop:api")


@pytest.mark.parametrize(
    ("source", "reference", "error"),
    [
        (None, "shpo", "there is no module 'shpo', looked for in "),
        (None, "shop.py", "'shop.py' is no module; write shop"),
        (None, "./src/shop.py:jobs", "'./src/shop.py:jobs' is no module; write src.shop:jobs"),
        ("x = 1", "shop", "shop holds no App; write `jobs = App()` there"),
        (SHOP + "\nother = App()", "shop", "shop holds 2 Apps; write shop:jobs or shop:other"),
        (SHOP, "shop:job", "shop has no 'job'; it holds jobs"),
        (SHOP, "shop:mail", "shop:mail is Queue, neither an App nor a function that returns one"),
        ("1 / 0", "shop", "ZeroDivisionError: division by zero; `python -c 'import shop'` shows all of it"),
        ("import nosuchthing", "shop", "importing shop failed at "),
    ],
)
def test_an_app_that_cannot_be_had_says_what_to_write(
    source: str | None, reference: str, error: str, tmp_path: Path
) -> None:
    if source is not None:
        (tmp_path / "shop.py").write_text(source)

    with pytest.raises(UsageError) as refused:
        load_app(reference)

    assert error in str(refused.value)


def test_the_app_comes_from_the_flag_the_environment_or_pyproject(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = run("enqueue", "send_receipt", "order_id=7")
    flag = run("enqueue", "send_receipt", "order_id=7", "-a", "shop", "-q")
    monkeypatch.setenv("DULY_APP", "shop:jobs")
    environment = run("enqueue", "send_receipt", "order_id=7", "-q")
    monkeypatch.delenv("DULY_APP")
    (shop / "pyproject.toml").write_text('[tool.duly]\napp = "shop"\n')
    project = run("enqueue", "send_receipt", "order_id=7", "-q")

    assert nowhere.code == 3
    assert [flag.code, environment.code, project.code] == [0, 0, 0]
    assert len({flag.out, environment.out, project.out}) == 3
    assert (shop / "shop.db").exists()


def test_data_commands_work_when_the_code_does_not_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("raise RuntimeError('broken')")
    monkeypatch.setenv("DULY_APP", "shop")
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")

    answer = run("status", "-q")

    assert (answer.err, answer.code) == ("", 0)


def test_data_commands_use_the_apps_store_when_nothing_else_is_said(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_APP", "shop")

    answer = run("status")

    assert answer.lines[0].startswith(f"{shop}/shop.db")


def test_a_job_is_enqueued_with_checked_arguments(shop: Path) -> None:
    good = run("enqueue", "send_receipt", "order_id=7", "note=by hand", "-a", "shop", "-o", "json")
    bad = run("enqueue", "send_receipt", "order_id=seven", "-a", "shop")
    unknown = run("enqueue", "send_recipe", "-a", "shop")

    created = rows(good)
    assert (created["outcome"], created["queue"], created["run_at"]) == ("created", "mail", None)
    stored = rows(run("job", str(created["id"]), "-a", "shop", "-o", "json"))["job"]
    assert isinstance(stored, dict)
    assert stored["args"] == {"order_id": 7, "note": "by hand"}
    assert bad.code == 2
    assert "order_id" in bad.err
    assert (unknown.code, "did you mean 'send_receipt'?" in unknown.err) == (3, True)


def test_text_that_looks_like_a_number_fits_a_text_parameter(shop: Path) -> None:
    answer = run("enqueue", "send_receipt", "order_id=7", "note=2026", "-a", "shop", "-q")

    stored = rows(run("job", answer.out.strip(), "-a", "shop", "-o", "json"))["job"]
    assert isinstance(stored, dict)
    assert stored["args"] == {"order_id": 7, "note": "2026"}


def test_a_job_is_enqueued_by_name_alone_once_the_task_is_written_down(shop: Path) -> None:
    url = ("--url", f"sqlite:///{shop}/shop.db")

    unknown = run("enqueue", "send_receipt", "order_id=7", *url)
    declared = run("migrate", "shop")
    known = run("enqueue", "send_receipt", "order_id=7", *url)
    elsewhere = run("enqueue", "unheard_of", "--queue", "reports", "--delay", "10m", *url)

    assert unknown.code == 3
    assert unknown.err.startswith("error: no worker has registered a task 'send_receipt'")
    assert declared.lines[-1] == "declared 1 queue, 1 task and 0 schedules"
    assert known.out.endswith("created: send_receipt in mail\n")
    assert elsewhere.out.endswith("created: unheard_of in reports, due in 10m\n")


def test_a_full_queue_refuses_with_code_and_without(shop: Path) -> None:
    url = ("--url", f"sqlite:///{shop}/shop.db")
    (shop / "shop.py").write_text(SHOP.replace('owner="growth@shop"', "max_depth=1"))
    run("migrate", "shop")
    run("enqueue", "send_receipt", "order_id=7", "-a", "shop")

    checked = run("enqueue", "send_receipt", "order_id=8", "-a", "shop")
    by_name = run("enqueue", "send_receipt", "order_id=8", *url)

    for refused in (checked, by_name):
        assert refused.code == 4
        assert refused.err.startswith(
            "error: the queue 'mail' is full: 1 job waits, 1 more is above max_depth=1"
        )
        assert len(refused.err.splitlines()) == 1


def test_arguments_come_from_a_json_file(shop: Path) -> None:
    (shop / "order.json").write_text('{"order_id": 7}')
    (shop / "list.json").write_text("[7]")

    good = run("enqueue", "send_receipt", "--json", "order.json", "-a", "shop")
    piped = run("enqueue", "send_receipt", "--json", "-", "-a", "shop", typed='{"order_id": 8}')
    wrong = run("enqueue", "send_receipt", "--json", "list.json", "-a", "shop")
    missing = run("enqueue", "send_receipt", "--json", "none.json", "-a", "shop")

    assert [good.code, piped.code, wrong.code, missing.code] == [0, 0, 2, 2]
    assert 'must hold a JSON object, such as {"order_id": 7}' in wrong.err
    assert missing.err == "error: --json none.json: No such file or directory\n"


@pytest.mark.parametrize("pair", ["order_id", "=7", "order id=7"])
def test_an_argument_that_is_no_pair_says_what_to_write(pair: str, shop: Path) -> None:
    answer = run("enqueue", "send_receipt", pair, "-a", "shop")

    assert answer.code == 2
    assert "write it like order_id=7" in answer.err


def test_check_finds_nothing_wrong_and_shows_every_origin(shop: Path) -> None:
    answer = run("check", "shop")

    assert answer.code == 0
    assert any(line.split() == ["url", f"sqlite:///{shop}/shop.db", "code"] for line in answer.lines)
    assert any(line.split() == ["lease", "30s", "default"] for line in answer.lines)


def test_check_says_what_hides_a_variable_of_the_environment(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_URL", "sqlite:///other.db")

    answer = run("check", "shop")

    assert (
        "warning: code hides the environment's DULY_URL; leave the argument of App() out to obey it"
        in answer.lines
    )


def test_check_is_exit_1_when_the_code_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from duly import Nothing")

    answer = run("check", "shop")

    assert answer.code == 1
    assert answer.lines[0].startswith("error: importing shop failed at ")
    assert answer.err == "error: 1 error found\n"


def test_check_for_programs_is_one_document(shop: Path) -> None:
    document = rows(run("check", "shop", "-o", "json"))

    assert document["ok"] is True
    assert {
        "name": "url",
        "value": f"sqlite:///{shop}/shop.db",
        "origin": "code",
        "from": None,
    } in msgspec.convert(document["settings"], list[dict[str, str | None]])


def test_a_new_file_is_migrated_once(tmp_path: Path) -> None:
    url = ("--url", f"sqlite:///{tmp_path}/new.db")

    before = run("migrate", "--check", *url)
    first, second = run("migrate", *url), run("migrate", *url)
    after = run("migrate", "--check", *url)

    assert before.code == 1
    assert before.err.endswith("has schema version 0 and needs 4; run duly migrate\n")
    assert first.lines == [
        f"sqlite:///{tmp_path}/new.db: schema version 0 -> 4",
        "  applied 0001_jobs",
        "  applied 0002_keys",
        "  applied 0003_control",
        "  applied 0004_operating",
    ]
    assert second.lines == [f"sqlite:///{tmp_path}/new.db: schema version 4 is current"]
    assert (after.code, after.lines) == (0, second.lines)


def test_the_sql_of_a_migration_can_be_read_and_touches_no_file(tmp_path: Path) -> None:
    answer = run("migrate", "--sql", "--url", f"sqlite:///{tmp_path}/none.db")

    assert "CREATE TABLE" in answer.out.upper()
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ((), "which App? Give MODULE[:NAME]"),
        (("shop", "--queues", "mial"), "queue 'mial' is not declared; the App knows default, mail"),
        (("shop", "--queues", "mail:none"), "must be NAME or NAME:SLOTS"),
        (("shop", "--concurrency", "0"), "--concurrency"),
        (("shop", "--grace", "30"), "has no unit; write '30s'"),
        (("shop", "--max-memory", "1"), "error: --max-memory='1' is no size; write one such as '1B'"),
    ],
)
def test_a_worker_that_cannot_start_says_why(flags: tuple[str, ...], error: str, shop: Path) -> None:
    answer = run("worker", *flags)

    assert error in answer.err
    assert answer.code == 2
