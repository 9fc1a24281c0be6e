"""What is secret is in the stored arguments, and nowhere else."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duly import App, Dead, Job, JobDead, PayloadError, Secret, UsageError
from duly.core.secret import masked, sounds_secret, unmarked, without_secrets
from duly.logs import JsonFormatter, TextFormatter
from duly.web.shapes import job_answer
from tests.cli.conftest import run

VALUE = "S3CRET-of-ann"


@dataclass
class User:
    name: str
    password: Secret[str]


@dataclass
class Account:
    iban: str
    holder: str


def test_no_form_of_a_secret_shows_its_value() -> None:
    secret = Secret(VALUE)

    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>20}",
        f"{secret} {secret!r}",
        repr([secret]),
        repr(User("ann", secret)),
    ]

    assert secret.reveal() == VALUE
    assert not any(VALUE in text for text in shown)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(secret)
    assert copy.deepcopy(secret).reveal() == VALUE
    assert secret == Secret(VALUE)
    assert secret != Secret("another")
    assert secret != VALUE


def test_words_lose_a_secret_as_long_as_it_lives() -> None:
    secret = Secret({"user": "ann", "key": VALUE})

    during = masked(f"login with {VALUE} failed")
    del secret

    assert during == "login with *** failed"
    assert masked(f"login with {VALUE} failed") == f"login with {VALUE} failed"


def test_stored_json_is_shown_without_and_handed_on_with_it() -> None:
    data = b'{"a":{"$secret":"x1"},"b":[{"$secret":{"c":1}}],"d":"$secret"}'

    assert json.loads(without_secrets(data)) == {"a": "***", "b": ["***"], "d": "$secret"}
    assert json.loads(unmarked(data)) == {"a": "x1", "b": [{"c": 1}], "d": "$secret"}
    assert without_secrets(b'{"a":{"$secret":') == b'"***"'
    plain = b'{"a":1}'
    assert without_secrets(plain) is plain


def test_a_secret_argument_is_typed_and_named_in_errors_without_its_value(jobs: App) -> None:
    @jobs.task
    def log_in(password: Secret[str], pins: list[Secret[int]] | None = None) -> None: ...

    with pytest.raises(PayloadError) as wrong:
        log_in.enqueue(Secret(12345678))  # type: ignore[arg-type]
    with pytest.raises(PayloadError) as bare:
        log_in.enqueue(VALUE)  # type: ignore[arg-type]

    assert "'password'" in str(wrong.value)
    assert "12345678" not in str(wrong.value)
    assert VALUE not in str(bare.value)
    assert VALUE not in str(log_in.draft(Secret(VALUE)))
    assert log_in.enqueue(Secret(VALUE), pins=[Secret(1234)]).id


def test_a_secret_makes_no_key(jobs: App) -> None:
    @jobs.task(unique="{token}")
    def call(token: Secret[str]) -> None: ...

    with pytest.raises(UsageError, match="is Secret"):
        call.enqueue(Secret(VALUE))


def test_a_failing_handler_tells_nobody(both: App, caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    handlers = [logging.StreamHandler(stream), logging.StreamHandler(stream)]
    handlers[0].setFormatter(JsonFormatter())
    handlers[1].setFormatter(TextFormatter())
    log = logging.getLogger("shop.secrets")
    log.propagate = False
    for handler in handlers:
        log.addHandler(handler)
    seen: list[str] = []

    @both.task(attempts=1)
    def fail(job: Job, user: User) -> None:
        value = user.password.reveal()
        seen.append(value)
        job.progress(1, 2, note=f"with {value}")
        log.warning("trying %s", value, extra={"given": value})
        try:
            raise ValueError(f"{value} was refused")
        except ValueError:
            log.exception("no luck")
            raise

    @both.task
    def give_up(user: User) -> None:
        raise Dead(f"{user.password.reveal()} is no password")

    with caplog.at_level(logging.DEBUG):
        ids = asyncio.run(_run(both, fail, give_up))
    for handler in handlers:
        log.removeHandler(handler)

    details = [both.inspect.job(id) for id in ids]
    told = [
        *map(repr, details),
        *(str(job_answer(detail.job)) for detail in details),
        stream.getvalue(),
        *(record.getMessage() for record in caplog.records if record.name.startswith("duly")),
        repr(both.inspect.trace(details[0].job.correlation_id)),
        repr(both.inspect.dead_groups()),
        *(run("job", str(id), "-o", "json", "--url", both.settings.url).out for id in ids),
        *(run("job", str(id), "--url", both.settings.url).out for id in ids),
        run("dead", "list", "-o", "json", "--url", both.settings.url).out,
    ]
    assert seen == [VALUE]
    assert "trying ***" in stream.getvalue()
    assert "*** was refused" in repr(details[0])
    assert "*** is no password" in repr(details[1])
    assert [index for index, text in enumerate(told) if VALUE in text] == []
    stored = both.store.inspection.lookup([ids[0]])[0]
    assert stored is not None
    assert json.loads(stored.args) == {"user": {"name": "ann", "password": {"$secret": VALUE}}}


async def _run(app: App, *tasks: Any) -> list[Any]:
    made = [await task.aenqueue(User("ann", Secret(VALUE))) for task in tasks]
    async with app.working():
        for one in made:
            with pytest.raises(JobDead) as dead:
                await one.aresult(timeout="60s")
            assert VALUE not in str(dead.value)
    return [one.id for one in made]


def test_a_result_that_is_secret_comes_back_to_its_caller_only(jobs: App) -> None:
    @jobs.task
    def make_key() -> Secret[str]:
        return Secret(VALUE)

    async def main() -> tuple[int, Secret[str]]:
        made = await make_key.aenqueue()
        async with jobs.working():
            return made.id, await made.aresult(timeout="60s")

    id, result = asyncio.run(main())

    assert result.reveal() == VALUE
    assert jobs.inspect.job(id).job.result == b'"***"'


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "userPassword",
        "token",
        "access_token",
        "api_key",
        "apikey",
        "secret",
        "authorization",
        "iban",
        "card",
        "card_number",
        "CVC",
    ],
)
def test_a_name_that_sounds_secret(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "order_id",
        "tokenizer",
        "cardinality",
        "secretary_id",
        "passwords_sent",
        "author",
        "discard",
        "card_id",
    ],
)
def test_a_name_that_does_not(name: str) -> None:
    assert not sounds_secret(name)


def test_check_names_arguments_that_sound_secret_and_are_shown(jobs: App) -> None:
    @jobs.task
    def pay(
        account: Account, api_key: str, password: Secret[str], token: Secret[str] | None, has_secret: bool
    ) -> None: ...

    @jobs.task
    def mail(to: list[User], token: bool) -> None: ...

    texts = [finding.text for finding in jobs.check().findings if "Secret[str]" in finding.text]

    assert len(texts) == 1
    assert texts[0].startswith("task 'pay' takes account.iban, api_key, which")


def test_a_secret_over_http_is_shown_to_who_runs_the_job_only(jobs: App, tmp_path: Path) -> None:
    from duly.client.outside import Outside
    from duly.web.api.workers import _reserved

    @jobs.task
    def log_in(password: Secret[str]) -> None: ...

    log_in.enqueue(Secret(VALUE))
    outside = Outside(jobs.client)
    incarnation = outside.open(["default"], None, jobs.settings.lease, "go", 1)

    (reserved,) = outside.take(incarnation, ["default"], 1, (), suspects=False)

    assert json.loads(bytes(_reserved(reserved).args)) == {"password": VALUE}
