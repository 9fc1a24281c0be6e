"""A real Chromium, the shop, and pages with or without a session. `make test-browser` runs these tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, StorageState, expect, sync_playwright

from tests.browser.scene import Scene, scene
from tests.browser.watched import Watched, signed_in, watching
from tests.conftest import without_service

HERE = Path(__file__).parent
ARGUMENTS = (
    "--no-sandbox",  # it runs as root in CI, and sees nothing but our own pages
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 30_000
"""Milliseconds: so long a page may take to show what is expected of it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(240))
            # Playwright's own event loop counts as running in this thread; nobody else is held up on it.
            item.add_marker(pytest.mark.filterwarnings("ignore::duly.client.blocking.BlockingCallWarning"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        without_service("chromium is not installed. Run: make test-browser, which installs it")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shop(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """After the browser: without one, nothing needs to be built."""
    with scene(tmp_path_factory.mktemp("shop")) as made:
        yield made


@pytest.fixture
def stranger(chromium: Browser, shop: Scene) -> Iterator[Watched]:
    """A page of somebody without a session."""
    with watching(chromium, shop.url) as page:
        yield page


@pytest.fixture
def without_scripts(chromium: Browser, shop: Scene) -> Iterator[Watched]:
    """The same in a browser that runs no scripts."""
    with watching(chromium, shop.url, scripts=False) as page:
        yield page


@pytest.fixture(scope="session")
def sessions(chromium: Browser, shop: Scene) -> dict[str, StorageState]:
    """The cookies of who may do everything, and of who may only look: nobody signs in for every page."""
    return {scope: signed_in(chromium, shop.url, shop.token(scope)) for scope in ("admin", "read")}


@pytest.fixture
def admin(chromium: Browser, shop: Scene, sessions: dict[str, StorageState]) -> Iterator[Watched]:
    """A page of somebody who may do everything."""
    with watching(chromium, shop.url, sessions["admin"]) as page:
        yield page


@pytest.fixture
def reader(chromium: Browser, shop: Scene, sessions: dict[str, StorageState]) -> Iterator[Watched]:
    """A page of somebody who may only look."""
    with watching(chromium, shop.url, sessions["read"]) as page:
        yield page
