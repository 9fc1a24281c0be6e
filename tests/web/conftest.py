"""A real server on a real port over each kind of store, and clients with tokens of their own."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import httpx2
import pytest
import uvicorn

from duly import App
from duly.core.bearer import digest_of, make_text
from duly.web.site import Site
from tests.waiting import wait_until

Client = httpx2.Client


class Serving:
    """uvicorn in a thread of its own."""

    def __init__(self, web: object) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(web, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=1)  # type: ignore[arg-type]
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        wait_until(lambda: self.server.started, what="the server listens")
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        self.socket.close()
        assert not self.thread.is_alive()


def new_token(app: App, *scopes: str) -> str:
    text = make_text(os.urandom(32))
    app.store.tokens.put(f"test-{text[5:13]}", digest_of(text), scopes, None, "tester", "a test")
    return text


def declare(app: App) -> None:
    app.queue("mail", owner="growth@shop")
    app.queue("reports", max_depth=3)

    @app.task(queue="mail")
    async def send_receipt(order_id: int, note: str = "") -> str:
        return f"{order_id} {note}"

    @app.task(queue="reports")
    async def report(day: str) -> None: ...


@dataclass
class Place:
    """One App with its server, and clients of it."""

    app: App
    serving: Serving
    stack: ExitStack
    site: Site

    def client(self, *scopes: str) -> Client:
        """A client with a token of these scopes; without any it has no token."""
        headers = {"Authorization": f"Bearer {new_token(self.app, *scopes)}"} if scopes else {}
        client = Client(base_url=self.serving.url, headers=headers, timeout=60)
        return self.stack.enter_context(client)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    app = App(url)
    declare(app)
    app.store.schema.migrate()
    web = app.asgi()
    with ExitStack() as stack, Serving(web) as serving:
        yield Place(app, serving, stack, web.state.site)
        stack.close()
    app.close()


@pytest.fixture
def small(sqlite_url: str) -> Iterator[Place]:
    """On SQLite alone, for what no store has a part in."""
    app = App(sqlite_url)
    declare(app)
    app.store.schema.migrate()
    web = app.asgi()
    with ExitStack() as stack, Serving(web) as serving:
        yield Place(app, serving, stack, web.state.site)
        stack.close()
    app.close()
