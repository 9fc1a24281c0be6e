"""Browsers, more or less: clients that are signed in, follow no redirect, and send a page's own forms."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.web.conftest import Place, new_token
from tests.web.pages.scene import Night, night

Answer = httpx2.Response
_MARK = re.compile(r'name="form_mark" value="([0-9a-f]+)"')


@dataclass
class Browser:
    """One person at the dashboard."""

    client: httpx2.Client
    url: str

    def get(self, path: str, **params: str) -> Answer:
        return self.client.get(f"/ui{path}", params=params, headers={"Accept": "text/html"})

    def mark(self, path: str = "") -> str:
        found = _MARK.search(self.get(path).text)
        assert found is not None, "the page holds no form"
        return found[1]

    def post(self, path: str, page: str = "", **fields: object) -> Answer:
        """Send a form of `page`."""
        data = {"form_mark": self.mark(page), **fields}
        return self.client.post(f"/ui{path}", data=data, headers={"Origin": self.url})

    def followed(self, answer: Answer) -> str:
        """The text of the page that an act leads to."""
        assert answer.status_code == 303, answer.text
        return html.unescape(self.client.get(answer.headers["location"]).text)


Visitors = Callable[..., Browser]


def browser_of(place: Place, *scopes: str) -> Browser:
    """Signed in with a token of these scopes; with none, not signed in."""
    client = place.stack.enter_context(httpx2.Client(base_url=place.serving.url, timeout=60))
    if scopes:
        token = new_token(place.app, *scopes)
        answer = client.post("/ui/login", data={"token": token}, headers={"Origin": place.serving.url})
        assert answer.status_code == 303, answer.text
    return Browser(client, place.serving.url)


@pytest.fixture
def admin(small: Place) -> Browser:
    return browser_of(small, "admin")


@pytest.fixture(params=["sqlite", "postgres"])
def nights(request: pytest.FixtureRequest) -> Iterator[Night]:
    """On each kind of store, with what operators look at."""
    with night(request.getfixturevalue(f"{request.param}_url")) as made:
        yield made


@pytest.fixture
def one_night(sqlite_url: str) -> Iterator[Night]:
    """The same on SQLite alone."""
    with night(sqlite_url) as made:
        yield made
