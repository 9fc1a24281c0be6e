"""`duly keys`: everything is encrypted anew, and an old key goes only when nothing needs it."""

import asyncio
import json
from typing import Any

import pytest

from duly import App
from duly.core.envelope import Keys, key_of
from duly.core.job import JobId
from tests.cli.conftest import run

OLD, NEW = "an old key of many letters", "a new key of many letters"
OLD_ID, NEW_ID = (Keys([text.encode()]).first for text in (OLD, NEW))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    where: str = request.getfixturevalue(f"{request.param}_url")
    app = App(where)
    app.store.schema.migrate()
    app.close()
    return where


def declare(app: App) -> Any:
    @app.task(encrypt=True)
    def pay(iban: str) -> str:
        return iban * 2000

    return pay


def use(patch: pytest.MonkeyPatch, *keys: str) -> None:
    patch.setenv("DULY_KEYS", ",".join(keys))


def keys_in_use(app: App, ids: list[int]) -> set[str]:
    records = [
        record for record in app.store.inspection.lookup([JobId(id) for id in ids]) if record is not None
    ]
    return {key_of(data) for record in records for data in (record.args, record.result) if data is not None}


async def _one_result(app: App, task: Any) -> int:
    made = await task.aenqueue("DE89")
    async with app.working():
        await made.aresult(timeout="60s")
    id: int = made.id
    return id


def test_everything_is_encrypted_anew_and_the_old_key_may_be_dropped(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, OLD)
    app = App(url)
    pay = declare(app)
    ids = [
        asyncio.run(_one_result(app, pay)),
        *(pay.using(delay="1h").enqueue(f"DE{n}").id for n in range(5)),
    ]
    app.close()
    use(monkeypatch, NEW, OLD)

    found = json.loads(run("keys", "rotate", "--reason", "yearly", "-o", "json", "--url", url).out)
    again = run("keys", "rotate", "--url", url)

    assert (found["done"], found["unreadable"], found["droppable"]) == (7, {}, [OLD_ID])
    assert "0 payloads encrypted anew" in again.out
    assert f"the key {OLD_ID} may be dropped" in again.out
    use(monkeypatch, NEW)
    after = App(url)
    pay = declare(after)
    assert keys_in_use(after, ids) == {NEW_ID}
    for id in ids[1:]:
        after.operate.run_now([id])
    asyncio.run(_one_result(after, pay))
    assert [entry.reason for entry in after.inspect.audit(verb="rotate_keys")] == ["", "yearly"]
    after.close()


def test_a_key_that_a_follow_up_needs_is_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)
    app = App(url)
    pay = declare(app)

    @app.task
    def first() -> None: ...

    first.using(delay="1h", then=[pay.draft("DE1")]).enqueue()
    app.close()
    use(monkeypatch, NEW, OLD)

    answer = run("keys", "rotate", "--url", url)

    assert answer.code == 0
    assert f"the key {OLD_ID} is still needed by 1 payload" in answer.out


def test_what_cannot_be_read_is_left_and_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, OLD)
    app = App(url)
    id = declare(app).enqueue("DE1").id
    app.close()
    use(monkeypatch, NEW)

    answer = run("keys", "rotate", "--url", url)

    assert answer.code == 1
    assert f"1 payload of the key {OLD_ID} could not be read" in answer.out
    after = App(url)
    assert keys_in_use(after, [id]) == {OLD_ID}
    after.close()


def test_keys_are_listed_by_their_ids_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    use(monkeypatch, NEW, OLD)

    listed = run("keys", "list", "--url", sqlite_url)
    settings = run("check", "--url", sqlite_url)

    assert listed.out.splitlines() == [f"{NEW_ID}  encrypts", f"{OLD_ID}  decrypts only"]
    assert OLD not in listed.out + settings.out
    assert "2 set, not shown" in settings.out
    monkeypatch.delenv("DULY_KEYS")
    none = run("keys", "list", "--url", sqlite_url)
    assert (none.code, "no key is set" in none.err) == (2, True)


def test_a_new_key_is_long_and_another_one_each_time() -> None:
    made = {run("keys", "new", "-q").out.strip() for _ in range(3)}

    assert len(made) == 3
    assert all(len(text) >= 43 for text in made)
