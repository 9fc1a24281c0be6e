"""The stories of security that are no page: payloads that choose code, tenants and callers that share nothing."""

import ast
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import App
from duly.core.job import NewJob
from duly.core.lifecycle import State
from tests.scenarios.inside import record_of, run_until_final

SOURCE = Path(__file__).parents[2] / "src/duly"
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
UNPACKS = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "yaml"}


class Payload:
    """What a pickle may do when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


def test_a_payload_never_chooses_what_is_run(jobs: App, tmp_path: Path) -> None:
    mark = tmp_path / "run"
    said: list[str] = []

    @jobs.task
    def harmless(note: str = "") -> None:
        said.append(note)

    command = f'{{"command": "touch {mark}", "args": ["touch {mark}"], "__class__": "os.system"}}'
    names = (
        "os.system",
        "os:system",
        "subprocess.call",
        "duly.cli.main:main",
        "builtins.exec",
        "harmless.__init__",
    )
    foreign = [
        one.id
        for one in jobs.store.jobs.enqueue([NewJob("default", name, command.encode()) for name in names])
    ]
    known = harmless.enqueue(note=f"!!python/object/apply:os.system ['touch {mark}']").id

    run_until_final(jobs, known)

    assert said == [f"!!python/object/apply:os.system ['touch {mark}']"]
    # No worker knows such a task: they wait for one that does, and nothing was imported to find out.
    records = [record_of(jobs, id) for id in foreign]
    assert [
        one for one in records if one.state in {State.running, State.completed} or one.counters.failed
    ] == []
    assert not mark.exists()


def test_a_pickle_in_the_place_of_arguments_is_text_that_cannot_be_read(
    jobs: App, url: str, tmp_path: Path
) -> None:
    mark = tmp_path / "run"
    blob = pickle.dumps(Payload(mark))
    pickle.loads(blob)
    assert mark.exists()
    mark.unlink()

    @jobs.task
    def harmless(note: str = "") -> None: ...

    id = harmless.enqueue(note="x").id
    written = write_arguments(url, blob)

    (record,) = run_until_final(jobs, id)

    assert record.state is (State.dead if written else State.completed)
    jobs.inspect.job(id)
    assert not mark.exists()


def write_arguments(url: str, blob: bytes) -> bool:
    """By hand, past every check of duly's; False where the database itself takes no such thing."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("update duly_job set args = ?", (blob,))
        return True
    with psycopg.connect(url, autocommit=True) as server:
        try:
            server.execute("update duly.job set args = %s", (blob,))
        except psycopg.Error:
            return False
    return True


def test_nothing_in_the_product_unpacks_objects_or_runs_text() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                {alias.name.partition(".")[0] for alias in node.names}
                if isinstance(node, ast.Import)
                else set()
            )
            if isinstance(node, ast.ImportFrom):
                names = {(node.module or "").partition(".")[0]}
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {node.func.id} & RUNS_CODE
            if names & (UNPACKS | RUNS_CODE):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {names}")  # type: ignore[attr-defined]

    assert found == []


@pytest.mark.parametrize("kind", ["unique_key", "idempotency_key"])
def test_keys_of_two_tenants_are_two_keys(jobs: App, kind: str) -> None:
    @jobs.task(tenant="{tenant}")
    def sync(tenant: str, of: int) -> None: ...

    key: Any = {kind: "nightly"}

    theirs, ours = (sync.using(**key).enqueue(tenant=name, of=7) for name in ("acme", "globex"))
    again = sync.using(**key).enqueue(tenant="acme", of=7)

    assert theirs.id != ours.id
    assert again.id == theirs.id
