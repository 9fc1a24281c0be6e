"""What the photo site takes: pictures of bounded size by any way of sending, and nothing else; a real server."""

import asyncio
import io
import re
import socket
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
from PIL import Image

from duly import Skip
from duly.demo.site import uploads
from duly.demo.site.app import jobs, make_thumbnails
from duly.demo.site.run import prepare
from duly.demo.site.web import Place, build
from tests.waiting import wait_until
from tests.web.conftest import Client, Serving

JPEG = {"Content-Type": "image/jpeg"}
PAGE = {"Accept": "text/html"}


@dataclass
class Site:
    client: Client
    port: int
    folder: Path

    def uploaded(self) -> set[str]:
        return {path.name for path in (self.folder / "uploaded").iterdir()}

    def stored(self) -> int:
        return len(jobs.inspect.jobs().jobs)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = prepare(tmp_path / "site")
    jobs.client.override(url=f"sqlite:///{folder / 'site.db'}")
    with (
        Serving(build(jobs, Place(folder))) as serving,
        Client(base_url=serving.url, timeout=60) as client,
    ):
        yield Site(client, serving.port, folder)
    jobs.close()


def picture(kind: str = "JPEG", size: tuple[int, int] = (64, 48)) -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(file, kind)
    return file.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it has so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_is_on_the_disk_under_its_content_before_it_is_accepted(site: Site, kind: str) -> None:
    content = picture(kind)

    answer = site.client.post("/photos", content=content, headers={"Content-Type": f"image/{kind.lower()}"})

    assert answer.status_code == 202
    name = sha256(content).hexdigest()
    assert (site.folder / "uploaded" / name).read_bytes() == content
    told = site.client.get(answer.json()["ticket_url"], headers={"Accept": "application/json"}).json()
    assert (answer.headers["Location"], told["state"]) == (answer.json()["ticket_url"], "queued")
    (job,) = jobs.inspect.jobs().jobs
    assert str(job.id) == answer.json()["job_id"]
    waiting = site.client.get(f"/photos/{name}")
    assert "0 of 5 thumbnails are made" in waiting.text


def test_nothing_is_promised_before_the_disk_has_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = threading.Event()
    monkeypatch.setattr(uploads, "_settle", lambda *paths: settled.wait(30))

    with ThreadPoolExecutor(1) as sender:
        answer = sender.submit(site.client.post, "/photos", content=picture(), headers=JPEG)
        wait_until(lambda: site.stored() == 1, what="the job")
        early = answer.done()
        settled.set()

    assert not early
    assert answer.result().status_code == 202


def test_a_picture_that_never_reached_the_disk_leaves_no_dead_letter(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "site")

    with pytest.raises(Skip, match="never arrived"):
        make_thumbnails("a" * 64, folder=str(folder))


def test_a_form_without_scripts_is_answered_with_202_and_a_page_that_leads_to_the_ticket(site: Site) -> None:
    content = picture()
    file = {"photo": ('<script>alert(1)</script>"; x=.jpg', content, "image/jpeg")}

    answer = site.client.post("/photos", files=file, headers=PAGE)

    assert answer.status_code == 202
    assert site.uploaded() == {sha256(content).hexdigest()}
    assert answer.headers["Refresh"] == f"0;url={answer.headers['Location']}"
    ticket = site.client.get(answer.headers["Location"], headers=PAGE)
    assert "<script>alert(1)" not in answer.text + ticket.text
    assert "&lt;script&gt;alert(1)" in ticket.text


def test_a_form_is_read_alike_however_it_is_cut_into_pieces() -> None:
    content = b"\r\n--xy\r\n--x" + bytes(range(256))
    body = b'--xyz\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\n\r\n' + content
    body += b"\r\n--xyz--\r\n"

    async def chunks(cut: int) -> AsyncIterator[bytes]:
        for start in range(0, len(body), cut):
            yield body[start : start + cut]

    async def read(cut: int) -> tuple[str, bytes]:
        field = uploads._Field(chunks(cut), "xyz")
        return await field.begin(), b"".join([part async for part in field.content()])

    found = {asyncio.run(read(cut)) for cut in range(1, len(body) + 1)}

    assert found == {("a.jpg", content)}


def test_a_picture_that_is_being_worked_on_is_not_worked_on_twice(site: Site) -> None:
    content = picture()

    first, second = (site.client.post("/photos", content=content, headers=JPEG).json() for _ in range(2))

    assert (first["outcome"], second["outcome"]) == ("created", "duplicate")
    assert first["job_id"] == second["job_id"]
    assert site.stored() == 1


@pytest.mark.parametrize(
    ("name", "content", "headers", "status"),
    [
        ("nothing", b"", JPEG, 415),
        ("text", b"no picture", JPEG, 415),
        ("cut head", picture("PNG")[:12], JPEG, 415),
        ("script", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", JPEG, 415),
        ("postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", JPEG, 415),
        ("gif", picture("GIF"), JPEG, 415),
        ("json", b"{}", {"Content-Type": "application/json"}, 415),
        ("bomb", bomb(60_000, 60_000), JPEG, 413),
        ("wide bomb", bomb(9_000, 9_000), JPEG, 413),
        ("thread", bomb(20_001, 1), JPEG, 413),
        ("form of nothing", b"", {"Content-Type": "multipart/form-data; boundary=x"}, 400),
        ("form without boundary", b"", {"Content-Type": "multipart/form-data"}, 400),
        (
            "endless head",
            b"--x\r\n" + b"a" * 20_000,
            {"Content-Type": "multipart/form-data; boundary=x"},
            400,
        ),
        (
            "other field",
            b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\n1\r\n--x--\r\n',
            {"Content-Type": "multipart/form-data; boundary=x"},
            400,
        ),
        (
            "form without an end",
            b'--x\r\nContent-Disposition: form-data; name="photo"\r\n\r\n' + picture(),
            {"Content-Type": "multipart/form-data; boundary=x"},
            400,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_picture_or_too_much_of_one_is_refused_and_leaves_nothing(
    site: Site, name: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = site.client.post("/photos", content=content, headers=headers)
    page = site.client.post("/photos", content=content, headers=headers | PAGE)

    assert (answer.status_code, page.status_code) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert page.headers["Content-Type"].startswith("text/html")
    assert answer.json()["title"] in page.text
    assert site.uploaded() == set()
    assert site.stored() == 0


@pytest.mark.parametrize("told", [True, False], ids=["told", "chunked"])
def test_a_file_beyond_the_limit_is_refused_whether_its_length_is_told_or_not(
    site: Site, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    monkeypatch.setattr(uploads, "MOST_BYTES", 400_000)
    content = picture("PNG", (700, 700))
    assert len(content) > 400_000 + uploads._ENVELOPE
    body = content if told else iter([content[:300_000], content[300_000:]])

    answer = site.client.post("/photos", content=body, headers=JPEG)

    assert answer.status_code == 413
    assert site.uploaded() == set()


def test_an_upload_that_is_cut_off_leaves_nothing(site: Site) -> None:
    content = picture("PNG", (900, 900))
    with socket.create_connection(("127.0.0.1", site.port)) as line:
        head = f"POST /photos HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: {len(content)}\r\n\r\n"
        line.sendall(head.encode() + content[: 600 * 1024])
        wait_until(site.uploaded, what="the unfinished file")

    wait_until(lambda: not site.uploaded(), what="nothing is left of it")
    assert site.stored() == 0


def test_nobody_sends_pictures_through_the_browser_of_somebody_else(site: Site) -> None:
    own = str(site.client.base_url).rstrip("/")
    foreign = [
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": own},
    ]

    refused = [site.client.post("/photos", content=picture(), headers=JPEG | sent) for sent in foreign]
    taken = site.client.post("/photos", content=picture(), headers=JPEG | {"Origin": own})

    assert {answer.status_code for answer in refused} == {403}
    assert taken.status_code == 202
    assert site.stored() == 1


@pytest.mark.parametrize(
    "path",
    [
        "/photos/../site.db",
        "/photos/%2e%2e%2fsite.db",
        "/photos/" + "a" * 64,
        "/photos/" + "A" * 64,
        "/files/%2e%2e%2fsite.db",
        "/files/" + "a" * 64 + ".thumb.webp",
        "/files/" + "a" * 64 + ".thumb.webp%00",
        "/files/.gitignore",
        "/-/web.py",
        "/-/%2e%2e%2fweb.py",
        "/nowhere",
    ],
)
def test_nothing_but_thumbnails_is_handed_out(site: Site, path: str) -> None:
    answer = site.client.get(path)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_every_page_is_strict_about_what_a_browser_may_do(site: Site) -> None:
    site.client.post("/photos", content=picture(), headers=JPEG)
    paths = ["/", f"/photos/{next(iter(site.uploaded()))}", "/nowhere", "/-/site.css", "/-/site.js"]

    answers = [site.client.get(path, headers=PAGE) for path in paths]

    for answer in answers:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=", answer.text)


def test_a_full_queue_is_told_as_one_and_not_as_a_ticket(site: Site, queue_of: Callable[[int], None]) -> None:
    queue_of(0)

    answer = site.client.post("/photos", content=picture(), headers=JPEG)
    page = site.client.post("/photos", content=picture(), headers=JPEG | PAGE)

    assert (answer.status_code, page.status_code) == (503, 503)
    assert int(answer.headers["Retry-After"]) > 0
    assert "was not taken" in page.text


@pytest.fixture
def queue_of() -> Callable[[int], None]:
    """Fill the queue of the site up to its bound, but for so many."""

    def fill(left: int) -> None:
        jobs.enqueue_many(make_thumbnails.draft(f"{n:064}", folder="none") for n in range(1_000 - left))

    return fill


def test_only_so_many_are_sent_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"POST /photos HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: 1000000\r\n\r\n"
    lines = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(16)]
    for line in lines:
        line.sendall(head + b"x")
    wait_until(lambda: len(site.uploaded()) == 16, what="sixteen uploads")

    answer = site.client.post("/photos", content=picture(), headers=JPEG)

    for line in lines:
        line.close()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    wait_until(
        lambda: (
            httpx2.post(f"http://127.0.0.1:{site.port}/photos", content=picture(), headers=JPEG).status_code
            == 202
        ),
        what="room again",
    )
