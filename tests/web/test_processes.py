"""`duly serve --processes`: one answer whichever process gives it, and no process that is missed or left behind."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx2
import pytest

from duly import App
from duly.client.logins import make_login
from tests.children import command_line
from tests.waiting import wait_until
from tests.web.conftest import new_token

pytestmark = pytest.mark.process

DULY = [sys.executable, "-m", "duly.cli.main"]
SHOP = """\
from duly import App

jobs = App()

@jobs.task
def send(order_id: int) -> None: ...
"""
# Nothing of ours fails to start once its parent has, so that the user's code has to.
BROKEN = """
import os
from pathlib import Path

os.register_at_fork(after_in_child=lambda: Path("broken").exists() and os._exit(7))
"""
_MARK = re.compile(r'name="form_mark" value="([0-9a-f]+)"')


class Group:
    """A real `duly serve` of two processes, in a session of its own."""

    def __init__(self, folder: Path, url: str, code: str = SHOP) -> None:
        (folder / "shop_app.py").write_text(code)
        self.log = folder / "serve.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._stack = ExitStack()
        errors = self._stack.enter_context(self.log.open("w"))
        self.parent = subprocess.Popen(
            [*DULY, "serve", "shop_app", "--url", url, "--port", str(self.port), "--processes", "2"],
            cwd=folder,
            stderr=errors,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.parent.pid, signal.SIGKILL)
        self.parent.wait(60)

    @property
    def pids(self) -> list[int]:
        """Its processes that run, the oldest first; what the parent has not collected yet is none."""
        with suppress(FileNotFoundError, ProcessLookupError):
            listed = Path(f"/proc/{self.parent.pid}/task/{self.parent.pid}/children").read_text()
            return [pid for pid in map(int, listed.split()) if command_line(pid)]
        return []

    def both(self) -> list[int]:
        return wait_until(lambda: pids if len(pids := self.pids) == 2 else [], timeout=60)

    def both_after(self, one: int) -> list[int]:
        """As `both`, once somebody in place of `one` has begun to serve."""

        def seen() -> list[int]:
            pids, said = self.pids, self.said()
            begun = all(f"Started server process [{pid}]" in said for pid in pids)
            return pids if begun and len(pids) == 2 and one not in pids else []

        return wait_until(seen, timeout=60)

    def client_of(self, pid: int, **headers: str) -> httpx2.Client:
        """A client whose connection this process has taken: the other one is stopped meanwhile."""
        client = self._stack.enter_context(httpx2.Client(base_url=self.url, headers=headers, timeout=60))
        with stopped([other for other in self.pids if other != pid]):
            assert wait_until(lambda: answered(client), timeout=60)
        return client

    def clients(self, **headers: str) -> tuple[httpx2.Client, httpx2.Client]:
        one, other = self.both()
        return self.client_of(one, **headers), self.client_of(other, **headers)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def said(self) -> str:
        return self.log.read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def answered(client: httpx2.Client) -> bool:
    """Asks nothing of the store, whose lock a stopped process may hold."""
    try:
        return client.get("/livez").status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def app(store: str) -> Iterator[App]:
    app = App(store)
    yield app
    app.close()


@pytest.fixture
def group(app: App, store: str, tmp_path: Path) -> Iterator[Group]:
    """On each kind of store."""
    new_token(app, "read")
    with Group(tmp_path, store) as group:
        yield group


@pytest.fixture
def small(sqlite_url: str, tmp_path: Path) -> Iterator[Group]:
    """On SQLite alone, for what no store has a part in; its folder may say that no process can start."""
    app = App(sqlite_url)
    new_token(app, "read")
    app.close()
    with Group(tmp_path, sqlite_url, SHOP + BROKEN) as group:
        yield group


def test_a_repeated_request_gets_the_first_answer_from_another_process(group: Group, app: App) -> None:
    bearer = f"Bearer {new_token(app, 'enqueue', 'read')}"
    one, other = group.clients(Authorization=bearer)
    key = {"Idempotency-Key": "receipt:7"}

    first = one.post("/v1/jobs", json={"task": "send", "args": {"order_id": 7}}, headers=key)
    again = other.post("/v1/jobs", json={"task": "send", "args": {"order_id": 7}}, headers=key)
    another = other.post("/v1/jobs", json={"task": "send", "args": {"order_id": 8}}, headers=key)
    found = other.get(f"/v1/jobs/{first.json()['job_id']}")

    assert (first.status_code, again.status_code) == (202, 202), first.text
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert another.status_code == 422
    assert found.status_code == 200


def test_a_login_a_form_and_a_ticket_of_one_process_hold_for_another(group: Group, app: App) -> None:
    one, other = group.clients()
    code = make_login(app.operate, app.client).code
    here = {"Origin": group.url}

    opened = one.post("/ui/login", data={"code": code}, headers=here)
    twice = other.post("/ui/login", data={"code": code}, headers=here)
    cookie = {"Cookie": f"duly_session={one.cookies['duly_session']}"}
    page = other.get("/ui", headers={**cookie, "Accept": "text/html"})
    mark = _MARK.search(page.text)
    assert mark is not None, page.text
    form = {"form_mark": mark[1]}
    sent = one.post("/ui/logout", data=form, headers={**here, **cookie})
    stranger = one.post("/ui/logout", data={"form_mark": "0" * 32}, headers={**here, **cookie})
    bearer = {"Authorization": f"Bearer {new_token(app, 'enqueue')}"}
    stored = one.post("/v1/jobs", json={"task": "send", "args": {"order_id": 7}}, headers=bearer)
    ticket = other.get(f"/t/{stored.json()['ticket']}", headers={"Accept": "application/json"})

    assert (opened.status_code, twice.status_code, page.status_code) == (303, 403, 200)
    assert (sent.status_code, stranger.status_code) == (303, 403)
    assert (ticket.status_code, ticket.json()["state"]) == (200, "queued")


def test_what_one_process_has_claimed_is_ended_at_another(group: Group, app: App) -> None:
    one, other = group.clients(Authorization=f"Bearer {new_token(app, 'work', 'enqueue')}")
    one.post("/v1/jobs", json={"task": "send", "args": {"order_id": 7}})

    (job,) = one.post("/v1/claim", json={"queues": ["default"]}).json()["jobs"]
    ended = other.post("/v1/ack", json={"acks": [{"token": job["token"]}]})

    assert [result["ok"] for result in ended.json()["results"]] == [True], ended.text


def test_one_that_dies_is_replaced_while_the_other_answers(small: Group) -> None:
    one, other = small.both()
    kept = small.client_of(other)

    os.kill(one, signal.SIGKILL)
    pids = small.both_after(one)
    replacement = small.client_of(next(pid for pid in pids if pid != other))

    assert other in pids
    assert (kept.get("/readyz").status_code, replacement.get("/readyz").status_code) == (200, 200)
    told = [line for line in small.said().splitlines() if "takes its place" in line]
    assert told == [f"server process {one} was ended by SIGKILL; another one takes its place"]
    assert small.said().count("duly serves") == 1


def test_a_start_that_fails_is_tried_again_while_another_process_answers(
    small: Group, tmp_path: Path
) -> None:
    one, other = small.both()
    kept = small.client_of(other)
    small.client_of(one)

    (tmp_path / "broken").touch()
    os.kill(one, signal.SIGKILL)
    wait_until(lambda: "ended with exit code 7" in small.said(), timeout=60)
    meanwhile = kept.get("/readyz").status_code
    (tmp_path / "broken").unlink()
    pids = small.both_after(one)
    late = small.client_of(next(pid for pid in pids if pid != other))

    assert (meanwhile, late.get("/readyz").status_code) == (200, 200)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_in_order_when_one_signal_says_so(small: Group, number: int) -> None:
    pids = small.both()
    for pid in pids:
        small.client_of(pid)

    # A terminal's Ctrl-C reaches them all at once.
    if number == signal.SIGINT:
        os.killpg(small.parent.pid, number)
    else:
        small.parent.send_signal(number)
    code = small.parent.wait(60)

    assert code == 0, small.said()
    assert not any(map(command_line, pids))
    assert not small.listens()
    assert small.said().count("Finished server process") == 2
    assert "takes its place" not in small.said()


def test_nobody_listens_once_their_parent_is_killed(small: Group) -> None:
    pids = small.both()
    for pid in pids:
        small.client_of(pid)

    small.parent.kill()
    small.parent.wait(60)

    wait_until(lambda: not any(map(command_line, pids)), timeout=60)
    # The system closes what an ended process had open a moment after its end.
    wait_until(lambda: not small.listens(), timeout=60)


def test_a_server_that_cannot_start_ends_with_code_1(sqlite_url: str, tmp_path: Path) -> None:
    app = App(sqlite_url)
    new_token(app, "read")
    app.close()
    (tmp_path / "broken").touch()

    with Group(tmp_path, sqlite_url, SHOP + BROKEN) as group:
        code = group.parent.wait(60)

        assert (code, group.listens()) == (1, False)
        assert "ended with exit code 7 before it answered" in group.said()


def test_what_cannot_be_shared_is_said_at_once(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "own_app.py").write_text("from duly import App\n\njobs = App('memory://')\n")

    def asked(*options: str) -> tuple[int, str]:
        done = subprocess.run(
            [*DULY, "serve", *options], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        in_use = asked("--url", sqlite_url, "--open", "--port", port, "--processes", "2")
    private = asked("own_app", "--open", "--processes", "2")
    many = asked("--url", sqlite_url, "--open", "--processes", "65")

    assert (in_use[0], private[0], many[0]) == (1, 2, 2)
    assert in_use[1].splitlines() == [
        f"error: cannot listen on 127.0.0.1, port {port}: Address already in use"
    ]
    assert "a store of its own" in private[1]


# What a process is told, without a server: it leaves its number and its part in the folder.
PARTS = """\
import os, signal, sys
from pathlib import Path
from duly.web.processes import Processes

def serve(first, started):
    started()
    Path(f"{os.getpid()}-{'first' if first else 'other'}").touch()
    signal.pause()
    return 0

def fork(real=os.fork):
    if Path("full").exists():
        raise BlockingIOError("the machine is full")
    return real()

os.fork = fork
sys.exit(Processes(3, serve, []).run())
"""


def test_exactly_one_process_is_the_first_and_its_replacement_is_it_again(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    log = tmp_path / "parts.log"

    def said(part: str) -> set[int]:
        return {int(path.name.partition("-")[0]) for path in tmp_path.glob(f"*-{part}")}

    with log.open("w") as errors:
        parent = subprocess.Popen([sys.executable, "parts.py"], cwd=tmp_path, stderr=errors)
    try:
        wait_until(lambda: len(said("other")) == 2 and said("first"), timeout=60)
        (first,) = said("first")
        (tmp_path / "full").touch()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: "the machine is full" in log.read_text(), timeout=60)
        (tmp_path / "full").unlink()
        wait_until(lambda: len(said("first")) == 2, timeout=60)
        others = said("other")
        parent.terminate()
        code = parent.wait(60)
    finally:
        parent.kill()
        parent.wait()

    assert len(others) == 2
    assert code == 0
