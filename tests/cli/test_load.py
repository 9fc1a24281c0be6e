"""What `duly status` says of the database that it shares with others."""

from __future__ import annotations

from datetime import timedelta

from duly.app import App
from tests.cli.conftest import Terminal, run


def test_status_tells_the_share_of_a_server_that_others_use(postgres_url: str) -> None:
    app = App(postgres_url)
    app.store.schema.migrate()

    fresh = run("status", "--url", postgres_url)
    app.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(minutes=1))
    document = run("status", "--url", postgres_url, "-o", "json").json

    assert fresh.lines[-1].startswith("the queue's share: ")
    assert fresh.lines[-1].endswith("; commits and WAL are known once a worker has run for a minute")
    assert isinstance(document, dict)
    assert document["load"]["most_connections"] == 97
    assert document["load"]["span_s"] is None
    app.close()


def test_status_says_nothing_of_a_file_that_nobody_else_uses(duly: Terminal) -> None:
    assert "share" not in duly("status").out
    document = duly("status", "-o", "json").json
    assert isinstance(document, dict)
    assert document["load"] is None
