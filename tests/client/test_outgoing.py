"""One POST to a stranger's address: where it goes, and where it never goes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.client.outgoing import NotDelivered, Refused, check_url, post
from duly.core.errors import UsageError
from tests.client.sinks import Sink, sink


@pytest.fixture
def told() -> Iterator[Sink]:
    with sink() as kept:
        yield kept


def test_a_message_arrives_byte_for_byte(told: Sink) -> None:
    receipt = post(told.url, b'{"a": 1}', {"webhook-id": "msg_1"}, private=True)

    assert (receipt.status, told.bodies) == (204, [b'{"a": 1}'])
    assert told.headers[0]["webhook-id"] == "msg_1"


def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(told: Sink) -> None:
    url = told.url.replace("http://127.0.0.1", "https://metadata.example")
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34", "127.0.0.1"]

    with pytest.raises(Refused, match=r"127\.0\.0\.1, which is no public address"):
        post(url, b"{}", {}, resolve=resolve)

    assert (asked, told.bodies) == (["metadata.example"], [])


def test_the_connection_goes_to_the_address_that_was_checked(told: Sink) -> None:
    port = told.url.split(":")[2].split("/", maxsplit=1)[0]
    answers = iter([["127.0.0.1"]])

    receipt = post(
        f"http://name.invalid:{port}/", b"{}", {}, private=True, resolve=lambda host, port: next(answers)
    )

    # A second look at the name would have failed: it leads nowhere, and the resolver has no second answer.
    assert receipt.status == 204
    assert told.headers[0]["host"] == f"name.invalid:{port}"


def test_a_redirect_is_an_answer_and_is_not_followed(told: Sink) -> None:
    told.answers = [(307, {"Location": told.url})]

    assert post(told.url, b"{}", {}, private=True).status == 307
    assert len(told.bodies) == 1


def test_how_long_to_wait_is_read_from_the_answer_within_bounds(told: Sink) -> None:
    told.answers = [
        (429, {"Retry-After": "30"}),
        (503, {"Retry-After": "999999"}),
        (503, {"Retry-After": "soon"}),
    ]

    waits = [post(told.url, b"{}", {}, private=True).retry_after for _ in range(3)]

    assert waits == [timedelta(seconds=30), timedelta(hours=1), None]


def test_nobody_there_is_not_delivered() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        with pytest.raises(NotDelivered, match="cannot be reached"):
            post(f"http://127.0.0.1:{port}/", b"{}", {}, private=True)


def test_a_name_without_an_address_is_not_delivered() -> None:
    with pytest.raises(NotDelivered, match="has no address"):
        post("https://name.invalid/", b"{}", {}, resolve=lambda host, port: [])


@contextmanager
def dripping(first: bytes) -> Iterator[int]:
    """A server that sends a byte now and then, for as long as anybody listens; its port."""
    stop = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            rest = iter(first)
            while not stop.is_set():
                try:
                    connection.sendall(bytes([next(rest, ord("H"))]))
                except OSError:
                    return
                stop.wait(0.05)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


def test_an_answer_that_drips_is_cut_off() -> None:
    with dripping(b"") as port, pytest.raises(NotDelivered, match="did not answer"):
        post(f"http://127.0.0.1:{port}/", b"{}", {}, private=True, timeout=timedelta(seconds=0.3))


def test_a_handshake_that_drips_is_cut_off() -> None:
    # The head of a TLS record that announces 16 KiB, of which a byte comes now and then.
    record = b"\x16\x03\x03\x40\x00"

    with dripping(record) as port, pytest.raises(NotDelivered, match="cannot be reached"):
        post(f"https://127.0.0.1:{port}/", b"{}", {}, private=True, timeout=timedelta(seconds=0.3))


def test_a_certificate_of_nobody_is_not_delivered(told: Sink) -> None:
    with pytest.raises(NotDelivered, match="cannot be reached"):
        post(told.url.replace("http://", "https://"), b"{}", {}, private=True)

    assert told.bodies == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop.example/told",
        "http://shop.example/told",
        "ftp://shop.example/",
        "https://",
        "https:///told",
        "https://user:secret@shop.example/",
        "https://shop.example:99999/",
        "https://[::1",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://shop.example/a b",
        "https://shop.example/\r\nX-Evil: 1",
        "https://shop.example/ü",
        "https://shop.example/" + "x" * 2_000,
        "javascript:alert(1)",
        "file:///etc/passwd",
        7,
        None,
    ],
)
def test_what_is_no_url_to_be_told_at_is_refused(url: object) -> None:
    with pytest.raises(UsageError) as caught:
        check_url(url)

    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://shop.example/told?x=1", "https://1.1.1.1:8443/", "HTTPS://shop.example"]
)
def test_a_public_url_is_taken(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "017700000001"])
def test_an_address_in_disguise_is_caught_when_it_is_resolved(host: str) -> None:
    with pytest.raises((Refused, NotDelivered, UsageError)):
        post(f"https://{host}/", b"{}", {})


@given(st.text())
def test_no_text_breaks_the_check(text: str) -> None:
    try:
        assert check_url(text).lower().startswith("https://")
    except UsageError:
        pass
