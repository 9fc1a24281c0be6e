"""A role that may use the schema works with jobs, and sees neither keys nor tokens nor what people did."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from duly.core.errors import UsageError
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import put
from tests.stores.postgres.conftest import Open

SECRET = b"32 bytes that nobody else may see"


@pytest.fixture
def shop(store: PostgresStore, open_store: Open, url: str) -> Iterator[PostgresStore]:
    """A store as seen by a role that may use the schema, and nothing else."""
    store.tokens.secret("ticket", SECRET)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop role if exists shop")
        connection.execute("create role shop login")
        connection.execute("grant usage on schema duly to shop")
    opened = open_store(url.replace("//postgres@", "//shop@"))
    yield opened
    opened.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop owned by shop")
        connection.execute("drop role shop")


def test_keys_tokens_and_the_audit_are_not_for_everybody(shop: PostgresStore) -> None:
    refused: dict[str, Callable[[], object]] = {
        "read a key": lambda: shop.tokens.secrets("ticket"),
        "make a key": lambda: shop.tokens.secret("ticket", b"mine"),
        "rotate a key": lambda: shop.tokens.rotate("ticket", b"mine", "eve", "x"),
        "forget a key": lambda: shop.tokens.forget("ticket", 1, "eve", "x"),
        "make a token": lambda: shop.tokens.put("eve", b"digest", ("admin",), None, "eve", "x"),
        "revoke a token": lambda: shop.tokens.revoke(1, "eve", "x"),
        "find a token": lambda: shop.tokens.find(b"digest"),
        "list tokens": shop.tokens.all,
        "read the audit": shop.audits.page,
        "read seals": shop.audits.seals,
        "verify the audit": shop.audits.verify,
    }

    for name, act in refused.items():
        with pytest.raises(UsageError, match="GRANT"):
            act()
            pytest.fail(f"it could {name}")


def test_whoever_works_acts_and_keeps_the_rest_without_a_right_of_its_own(
    shop: PostgresStore, store: PostgresStore
) -> None:
    (id,) = put(store)

    shop.operator.cancel([id], "ann", "not needed")
    sealed = shop.audits.seal()
    shop.triage.mark("feed", "default", "ok", by="ann", reason="seen", state="acknowledged")
    shop.alerts.change("dead_letter", "queue:mail", 0, "firing", {}, ["log"])
    shop.answers.forget()
    shop.tallies.fold()

    assert sealed is not None
    assert [entry.verb for entry in store.audits.page()] == ["mark", "cancel"]
    assert [one.sink for one in shop.alerts.due(["log"])] == ["log"]
    assert store.audits.verify().faults == ()


def test_a_role_that_is_told_so_may(shop: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("grant execute on function duly.secrets_1, duly.keep_secret_1 to shop")
        connection.execute(
            "grant execute on function duly.audit_page_1, duly.audit_seals_1, duly.audit_entries_1, "
            "duly.audit_totals_1 to shop"
        )

    assert shop.tokens.secret("ticket", b"mine").value == SECRET
    assert shop.audits.page() == []
    assert shop.audits.verify().faults == ()
