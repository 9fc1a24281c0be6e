"""`App.once`: true the first time, in whatever transaction the effect is in."""

from __future__ import annotations

from typing import Any

import pytest

from duly import App, UsageError


def test_a_key_is_new_once(both: App) -> None:
    answers = [both.once("webhook:7", connection=None) for _ in range(3)]

    assert answers == [True, False, False]
    assert both.once("webhook:8", connection=None)


def test_a_key_in_a_transaction_that_is_rolled_back_is_free_again(both: App) -> None:
    with pytest.raises(ZeroDivisionError), both.transaction() as connection:
        first = both.once("webhook:7", connection=connection)
        raise ZeroDivisionError
    with both.transaction() as connection:
        second = both.once("webhook:7", connection=connection)
        repeated = both.once("webhook:7", connection=connection)

    assert (first, second, repeated) == (True, True, False)
    assert not both.once("webhook:7", connection=None)


@pytest.mark.asyncio
async def test_async_code_asks_the_same(both: App) -> None:
    async with both.atransaction() as connection:
        first = await both.aonce("webhook:7", connection=connection)
    second = await both.aonce("webhook:7", connection=None, keep="1d")

    assert (first, second) == (True, False)


@pytest.mark.parametrize(
    ("key", "options", "told"),
    [
        ("", {}, r"once\(\): a key must not be empty"),
        ("x" * 256, {}, r"once\(\): .* at most 255 fit"),
        (7, {}, r"once\(\): a key is text"),
        ("k", {"keep": 30}, "write '30s'"),
        ("k", {"keep": "0s"}, "longer than zero"),
    ],
)
def test_a_wrong_key_or_time_says_what_to_write(
    jobs: App, key: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        jobs.once(key, connection=None, **options)
