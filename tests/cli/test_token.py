"""`duly token`: a token is shown once, does what its scopes say, and is revoked by its name."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly import App
from duly.client.logins import use_code
from duly.core.bearer import digest_of, is_text
from duly.core.errors import NotFound, UsageError
from tests.cli.conftest import run


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    where = f"sqlite:///{tmp_path}/duly.db"
    app = App(where)
    app.store.schema.migrate()
    yield where
    app.close()


def test_a_token_is_shown_once_and_only_its_digest_is_stored(url: str, tmp_path: Path) -> None:
    made = run(
        "token", "create", "--scope", "enqueue:mail", "--scope", "read", "--name", "shop", "--url", url
    )
    listed = run("token", "list", "--url", url)

    text, said = made.out.splitlines()
    app = App(url)
    record = app.store.tokens.find(digest_of(text))
    app.close()
    assert is_text(text)
    assert "may enqueue:mail read until" in said
    assert record is not None
    assert (record.name, record.scopes, record.by, record.state) == (
        "shop",
        ("enqueue:mail", "read"),
        "ada@ops",
        "live",
    )
    assert "shop" in listed.out
    assert text not in listed.out
    assert not any(text.encode() in path.read_bytes() for path in tmp_path.glob("duly.db*"))


def test_only_the_token_is_printed_where_a_script_asks(url: str) -> None:
    quiet = run("token", "create", "--scope", "read", "--expires", "never", "-q", "--url", url)
    document = json.loads(run("token", "create", "--scope", "read", "-o", "json", "--url", url).out)

    assert is_text(quiet.out.strip())
    assert is_text(document["token"])
    assert document["record"]["name"].startswith("read-")


def test_a_revoked_token_is_dead_and_cannot_be_revoked_again(url: str) -> None:
    text = run("token", "create", "--scope", "read", "--name", "shop", "-q", "--url", url).out.strip()

    gone = run("token", "revoke", "shop", "--reason", "left the team", "--url", url)
    again = run("token", "revoke", "shop", "--url", url)

    app = App(url)
    record = app.store.tokens.find(digest_of(text))
    app.close()
    assert gone.code == 0
    assert record is not None
    assert record.state == "revoked"
    assert (again.code, "no live token is 'shop'" in again.err) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--scope", "enque:mail"], "did you mean 'enqueue:mail'?"),
        (["--scope", "read", "--expires", "30"], "30s"),
        ([], "--scope"),
    ],
)
def test_what_cannot_be_meant_says_what_to_write(url: str, arguments: list[str], hint: str) -> None:
    answer = run("token", "create", *arguments, "--url", url)

    assert answer.code == 2
    assert hint in answer.err


def test_the_app_makes_and_revokes_tokens_too(url: str) -> None:
    app = App(url)

    made = app.operate.create_token(["work:mail"], name="go", expires="1h", reason="a worker in Go")
    other = app.operate.create_token(["read"], expires=None)

    assert made.text not in repr(made)
    assert [one.name for one in app.inspect.tokens()] == [other.record.name, "go"]
    assert app.operate.revoke_token(made.record.id).name == "go"
    with pytest.raises(NotFound):
        app.operate.revoke_token("go")
    with pytest.raises(UsageError):
        app.operate.create_token("read")
    with pytest.raises(UsageError):
        app.operate.create_token([])
    with pytest.raises(UsageError):
        app.operate.create_token(["read"], name=other.record.name)
    app.close()


def test_a_login_is_a_link_that_opens_the_dashboard_once(url: str) -> None:
    link, said = run(
        "token", "login", "--scope", "read", "--scope", "dead:mail", "--url", url
    ).out.splitlines()
    quiet = run("token", "login", "-q", "--url", url).out.strip()
    app = App(url)
    code = link.partition("code=")[2]

    used = [use_code(app.client, code) is not None for _ in range(2)]
    names = [(one.name[:8], one.scopes) for one in app.inspect.tokens()]
    app.close()

    assert link.startswith("http://127.0.0.1:8899/ui/login?code=")
    assert "opens once, within 10 minutes, as ada@ops-" in said
    assert "who may dead:mail read" in said
    assert quiet.startswith("http://127.0.0.1:8899/ui/login?code=")
    assert used == [True, False]
    assert names == [("ada@ops-", ("admin",)), ("ada@ops-", ("dead:mail", "read"))]
