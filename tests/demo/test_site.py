"""The photo site as a person starts it: one command, real processes, a picture by HTTP, a killed worker, Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from click.testing import CliRunner
from PIL import Image

from duly import App
from duly.cli.main import cli
from duly.demo.photos import draw
from tests.children import living_in
from tests.waiting import wait_until
from tests.web.test_ticket_server import Listener

JSON = {"Accept": "application/json"}
SIZES = {"thumb.webp": 160, "small.jpg": 480, "medium.jpg": 960, "large.jpg": 1600, "square.png": 512}


@dataclass
class Running:
    process: subprocess.Popen[str]
    told: dict[str, Any]
    client: httpx2.Client
    app: App

    def send(self, picture: bytes) -> dict[str, str]:
        answer = self.client.post("/photos", content=picture, headers={"Content-Type": "image/jpeg"})
        assert answer.status_code == 202, answer.text
        told: dict[str, str] = answer.json()
        return told

    def look(self, ticket: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(ticket, headers=JSON).json()
        return found

    def kill_worker_of(self, job: int) -> None:
        """The process that holds the job."""
        record = self.app.inspect.job(job).job
        (pid,) = {row.pid for row in self.app.inspect.workers() if row.incarnation == record.incarnation}
        os.kill(pid, signal.SIGKILL)


@contextmanager
def opened(folder: Path, *options: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "duly.cli.main", "demo", "--site", "-o", "json", *options]
    with (folder / "errors.log").open("wb") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, (folder / "errors.log").read_text()
            text += line
        told = msgspec.json.decode(text)
        app = App(told["url"])
        with httpx2.Client(base_url=told["site"], timeout=60) as client:
            yield Running(process, told, client, app)
        app.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        wait_until(lambda: not living_in(folder), what="nothing runs any more")


def opens_once(login: str) -> bool:
    """Whether the printed link leads into the dashboard, and a second time does not."""
    with httpx2.Client(
        base_url=login.partition("/ui/")[0], timeout=60, headers={"Accept": "text/html"}
    ) as person:
        before = person.get("/ui").status_code
        code = login.partition("code=")[2]
        assert person.get(login).status_code == 200
        own = {"Origin": str(person.base_url).rstrip("/")}
        first = person.post("/ui/login", data={"code": code}, headers=own)
        inside = person.get("/ui")
    with httpx2.Client(
        base_url=login.partition("/ui/")[0], timeout=60, headers={"Accept": "text/html"}
    ) as other:
        second = other.post("/ui/login", data={"code": code}, headers=own)
    assert (before, first.status_code, inside.status_code) == (303, 303, 200)
    return "photos" in inside.text and second.status_code != 303


def photograph(seed: int, width: int = 2400, height: int = 1600) -> bytes:
    file = io.BytesIO()
    draw(width, height, seed).save(file, "JPEG", quality=88)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(180)
def test_a_picture_becomes_five_thumbnails_though_its_worker_is_killed(tmp_path: Path) -> None:
    with opened(tmp_path, "--pace", "1500ms") as site:
        accepted = site.send(photograph(7))
        job, ticket = int(accepted["job_id"]), accepted["ticket_url"]
        listener = Listener(site.client, f"{ticket}/events")
        wait_until(lambda: site.look(ticket).get("progress"), timeout=60, what="the first thumbnail")

        site.kill_worker_of(job)

        wait_until(lambda: site.look(ticket)["state"] == "done", timeout=60, what="the end")
        assert listener.ended()
        assert listener.states()[-1] == "done"
        assert any("<progress" in str(told["html"]) for told in listener.told)
        assert site.app.inspect.job(job).job.counters.lost == 1
        page = site.client.get(site.look(ticket)["link"])
        assert "All 5 thumbnails are made" in page.text
        for ending, longest in SIZES.items():
            name = f"{site.look(ticket)['link'].removeprefix('/photos/')}.{ending}"
            assert f'src="/files/{name}"' in page.text
            with Image.open(io.BytesIO(site.client.get(f"/files/{name}").content)) as thumbnail:
                assert max(thumbnail.size) == longest
        assert opens_once(site.told["login"])
        made = {path.name for path in (tmp_path / "duly-demo-site" / "made").iterdir()}
        assert len(made) == 5

        # The whole worker, supervisor and all: another one is started.
        os.kill(site.told["worker"], signal.SIGKILL)
        other = site.send(photograph(8, 400, 300))["ticket_url"]
        wait_until(lambda: site.look(other)["state"] == "done", timeout=60, what="the end of the second")

        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(60) == 0, (tmp_path / "errors.log").read_text()
        wait_until(lambda: not living_in(tmp_path), what="nothing runs any more")
        assert (tmp_path / "errors.log").read_text() == ""


@pytest.mark.process
@pytest.mark.timeout(120)
def test_a_site_that_is_killed_leaves_no_process_and_opens_again_with_its_pictures(tmp_path: Path) -> None:
    with opened(tmp_path, "--pace", "1ms") as site:
        ticket = site.send(photograph(7, 400, 300))["ticket_url"]
        wait_until(lambda: site.look(ticket)["state"] == "done", timeout=60, what="the end")
        cut = tmp_path / "duly-demo-site" / "uploaded" / ".0123456789abcdef.part"
        cut.write_bytes(b"half a picture")
        site.process.kill()
        wait_until(lambda: not living_in(tmp_path), what="nothing runs any more")

    with opened(tmp_path) as site:
        assert site.look(ticket)["state"] == "done"
        assert site.client.get("/").text.count("/files/") == 1
        assert not cut.exists()


def test_flags_of_the_one_demo_are_refused_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    headless = CliRunner().invoke(cli, ["demo", "--site", "--headless"])
    port = CliRunner().invoke(cli, ["demo", "--port", "9000"])

    assert (headless.exit_code, port.exit_code) == (2, 2)
    assert "add --site" in port.stderr
    assert list(tmp_path.iterdir()) == []
