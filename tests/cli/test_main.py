"""The frame: help, version, errors as one line, exit codes, JSON errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from duly.cli.errors import Conflict, Exit, Failed, explain
from duly.cli.main import COMMANDS, cli
from duly.core.errors import (
    AlreadyOpen,
    ConnectionMismatch,
    DulyError,
    LeaseLost,
    MigrationNeeded,
    NotFound,
    PayloadError,
    StoreUnreachable,
    UsageError,
)
from tests.cli.conftest import run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def contexts(parent: click.Context | None = None, command: click.Command = cli) -> Iterator[click.Context]:
    """Every command there is."""
    context = click.Context(command, info_name=command.name if parent else "duly", parent=parent)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from contexts(context, inner)


EVERY = {context.command_path: context for context in contexts()}


def test_every_command_of_this_half_is_there() -> None:
    assert list(COMMANDS) == [
        "demo",
        "dev",
        "worker",
        "serve",
        "token",
        "migrate",
        "check",
        "enqueue",
        "status",
        "top",
        "why",
        "jobs",
        "job",
        "trace",
        "runs",
        "cancel",
        "pause",
        "resume",
        "limit",
        "block",
        "overrides",
        "tenants",
        "dead",
        "operations",
        "workers",
        "schedules",
        "alerts",
        "audit",
        "keys",
        "plan",
        "drill",
        "bench",
    ]
    assert {path for path in EVERY if path.count(" ") == 2} == {
        *(
            f"duly dead {verb}"
            for verb in ("groups", "list", "show", "ack", "assign", "fixed", "edit", "redrive", "purge")
        ),
        *(f"duly operations {verb}" for verb in ("list", "show", "pause", "resume", "cancel")),
        *(f"duly schedules {verb}" for verb in ("list", "run", "pause", "resume", "remove")),
        *(f"duly overrides {verb}" for verb in ("list", "lift")),
        *(f"duly audit {verb}" for verb in ("list", "verify")),
        *(f"duly keys {verb}" for verb in ("new", "list", "rotate")),
        *(f"duly drill {verb}" for verb in ("kill", "duplicate", "reorder", "load")),
        *(f"duly alerts {verb}" for verb in ("list", "history", "test", "silence", "unsilence")),
        *(f"duly token {verb}" for verb in ("create", "login", "list", "revoke")),
        *(f"duly tenants {verb}" for verb in ("list", "show")),
        *(f"duly workers {verb}" for verb in ("list", "show", "drain")),
    }


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_help_and_a_line_for_each_option(path: str) -> None:
    command = EVERY[path].command

    assert command.help
    assert command.get_short_help_str(60).rstrip(".")
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{path} {option.name}"


@pytest.mark.parametrize("path", [path for path in EVERY if path != "duly"])
def test_every_command_takes_the_common_options(path: str) -> None:
    names = {option.name for option in EVERY[path].command.params}

    assert {"app", "url", "output", "quiet"} <= names


@pytest.mark.parametrize("path", [path for path in EVERY if path != "duly"])
def test_every_command_is_in_the_docs(path: str) -> None:
    assert f"# {path}\n" in PAGE.read_text(encoding="utf-8")


def test_the_docs_say_what_the_commands_say() -> None:
    script = PAGE.parents[1] / "scripts" / "cli_reference.py"

    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_the_version_is_one_line() -> None:
    answer = run("--version")

    assert (answer.out, answer.code) == ("duly 0.1.0\n", 0)


def test_no_command_at_all_shows_the_help() -> None:
    answer = run()

    assert "first steps" in (answer.out + answer.err).lower()
    assert answer.code == Exit.usage


@pytest.mark.parametrize("path", ["--help", "status --help", "dead redrive -h"])
def test_help_is_an_answer(path: str) -> None:
    answer = run(*path.split())

    assert answer.out.startswith("Usage: duly")
    assert (answer.err, answer.code) == ("", 0)


def test_an_unknown_command_or_option_is_one_line() -> None:
    command, option = run("statsu"), run("status", "--nope")

    assert command.err == "error: there is no command 'statsu'; did you mean 'status'? (see duly --help)\n"
    assert option.err.startswith("error: no such option")
    assert option.err.endswith("(see duly status --help)\n")
    assert command.err.count("\n") == option.err.count("\n") == 1
    assert command.code == option.code == Exit.usage


def test_errors_are_objects_for_programs() -> None:
    for form in ("-ojson", "--output=ndjson"):
        answer = run("job", "7", form, "--url", "nosuch://place")

        assert answer.err.startswith('{"error":{"kind":"usage","message":"')
        assert answer.err.endswith(',"exit":2}}\n')
        assert answer.out == ""


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (Failed("no"), "failed", 1),
        (DulyError("odd"), "failed", 1),
        (UsageError("write"), "usage", 2),
        (PayloadError("too large"), "usage", 2),
        (ConnectionMismatch("other"), "usage", 2),
        (AlreadyOpen("late"), "usage", 2),
        (NotFound("gone"), "not_found", 3),
        (Conflict("done"), "conflict", 4),
        (LeaseLost("late"), "conflict", 4),
        (StoreUnreachable("down"), "unreachable", 5),
        (MigrationNeeded("old"), "migration_needed", 5),
    ],
)
def test_each_error_has_its_exit_code(error: DulyError, kind: str, code: int) -> None:
    problem = explain(error)

    assert problem is not None
    assert (problem.kind, problem.exit, problem.message) == (kind, code, str(error))


def test_a_fault_of_our_own_keeps_its_traceback() -> None:
    assert explain(KeyError("ours")) is None


def test_an_unknown_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_CONCURENCY", "5")

    answer = run("status")

    assert answer.err.startswith("error: the environment sets DULY_CONCURENCY, which duly does not know")
    assert "DULY_CONCURRENCY" in answer.err
    assert answer.code == Exit.usage


def test_an_unreachable_store_is_exit_5(tmp_path: Path) -> None:
    answer = run("status", "--url", f"sqlite:///{tmp_path}/no/such/folder/jobs.db")

    assert answer.code == Exit.unreachable
    assert answer.err.startswith("error: the folder ")
    assert answer.err.count("\n") == 1


def test_a_file_that_is_no_database_is_exit_5(tmp_path: Path) -> None:
    (tmp_path / "letter.db").write_text("Dear Ada, this is not a database. " * 100)

    answer = run("status", "--url", f"sqlite:///{tmp_path}/letter.db")

    assert answer.code == Exit.unreachable
    assert answer.err.count("\n") == 1


def test_an_unreachable_server_is_exit_5() -> None:
    answer = run("status", "--url", "postgresql://nobody:secret@127.0.0.1:1/none?connect_timeout=2")

    assert answer.code == Exit.unreachable
    assert "secret" not in answer.err
    assert answer.err.count("\n") == 1
