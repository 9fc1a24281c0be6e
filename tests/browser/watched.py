"""One page of a real Chromium, and whatever went wrong on it. Knows nothing of jobs.

Wrong is: an error on the console, a script that throws, a request that leaves this machine or fails, a violation of the
page's content security policy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    StorageState,
    ViewportSize,
    expect,
)

from tests.house.tree import ROOT
from tests.waiting import wait_until

Theme = Literal["light", "dark"]
PICTURES = ROOT / "build/screenshots"
SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 844},
}
THEMES: tuple[Theme, Theme] = ("light", "dark")
GRAVE = {"serious", "critical"}
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
JUDGED = {("light", "desktop"), ("dark", "phone")}
"""What axe looks at: each theme and each size once, since it takes longer than all the rest."""


class Watched:
    """A page that notes what goes wrong on it."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base.rstrip("/")
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self._expected: set[int] = set()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)
        self.page.on("dialog", self._alerted)

    def goto(self, path: str) -> None:
        self.page.goto(self.base + path)

    def fine(self) -> None:
        """AssertionError with whatever has gone wrong so far."""
        assert not self.wrong, "\n".join(self.wrong)

    def expects(self, *statuses: int) -> None:
        """Answers that this test asks for."""
        self._expected.update(statuses)

    def _said(self, message: ConsoleMessage) -> None:
        # A failed load is told by its response, with its status.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.wrong.append(f"console: {message.text}")

    def _alerted(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname != "127.0.0.1":
            self.wrong.append(f"leaves this machine: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._expected:
            self.wrong.append(f"{response.status} {response.request.method} {response.url}")


@contextmanager
def watching(
    chromium: Browser, base: str, session: StorageState | None = None, *, scripts: bool = True
) -> Iterator[Watched]:
    """A page with cookies of its own; whatever is asked of it waits at most 30 s."""
    context = chromium.new_context(
        storage_state=session,
        viewport=SIZES["desktop"],
        locale="en-GB",
        timezone_id="Europe/Berlin",
        java_script_enabled=scripts,
    )
    context.set_default_timeout(30_000)
    yield Watched(context, base)
    context.close()


def signed_in(chromium: Browser, base: str, token: str) -> StorageState:
    """The cookies of whoever signs in with a token; to be given to pages."""
    with watching(chromium, base) as watched:
        watched.goto("/ui/login")
        watched.page.get_by_label("Token").fill(token)
        watched.page.get_by_role("button", name="Sign in").click()
        expect(watched.page.get_by_role("navigation")).to_be_visible()
        watched.fine()
        return watched.page.context.storage_state()


def look(watched: Watched, name: str) -> None:
    """Take the page's picture in both themes and sizes: nothing grave for axe, nothing that scrolls sideways."""
    found = [fault for theme in THEMES for size in SIZES for fault in _faults(watched, name, theme, size)]
    assert not found, "\n".join(found)
    watched.fine()


def _faults(watched: Watched, name: str, theme: Theme, size: str) -> Iterator[str]:
    page = watched.page
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    # A drawing follows the new width a moment later. (The page's policy forbids it to evaluate what it waits for.)
    try:
        wait_until(lambda: page.evaluate(WIDER) <= 0, timeout=5, what="a page that fits")
    except AssertionError:
        yield f"{name}, {theme}, {size}: scrolls sideways by {page.evaluate(WIDER)} px"
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}-{theme}-{size}.png", full_page=True)
    if (theme, size) not in JUDGED:
        return
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in GRAVE:
            where = "; ".join(str(node["html"])[:150] for node in violation["nodes"][:3])
            yield f"{name}, {theme}, {size}: {violation['impact']} {violation['id']}: {violation['help']} at {where}"
