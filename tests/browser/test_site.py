"""The photo site as its visitors see it: a picture is sent, its ticket followed, and five smaller ones come of it."""

import re
from pathlib import Path

from playwright.sync_api import Browser, FilePayload, expect

from tests.browser.watched import look, watching
from tests.demo.test_site import opened, photograph


def test_a_picture_is_sent_followed_and_found_in_five_sizes(chromium: Browser, tmp_path: Path) -> None:
    with opened(tmp_path, "--pace", "2s") as site, watching(chromium, site.told["site"]) as visitor:
        page = visitor.page
        visitor.goto("/")
        look(visitor, "site")

        page.locator("#photo").set_input_files(
            FilePayload(name="fjord.jpg", mimeType="image/jpeg", buffer=photograph(1))
        )
        page.get_by_role("button", name="Make thumbnails").click()
        expect(page).to_have_url(re.compile("/t/"))
        expect(page.locator("#status progress")).to_be_visible()
        look(visitor, "site-ticket")

        page.get_by_role("link", name="Open the result").click()
        expect(page.get_by_role("img")).to_have_count(5)
        look(visitor, "site-thumbnails")
