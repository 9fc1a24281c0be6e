"""What a token that may only look sees, and what becomes of it when it tries more; scripts that a job has brought."""

from playwright.sync_api import expect

from duly.core.lifecycle import State
from tests.browser import shop_app
from tests.browser.scene import Scene
from tests.browser.watched import Watched, look

SENT_ANYWAY = """([action, fields]) => {
    const form = document.querySelector("form[action$='/logout']").cloneNode(true);
    form.action = action;
    for (const [name, value] of Object.entries(fields)) {
        const input = document.createElement("input");
        input.name = name;
        input.value = value;
        form.append(input);
    }
    document.body.append(form);
    form.submit();
}"""
"""A form that the page does not have, with the mark of one that it has."""


def test_whoever_may_only_read_finds_buttons_that_say_so(shop: Scene, reader: Watched) -> None:
    reader.goto(f"/ui/jobs/{shop.jobs.scheduled}")

    cancel = reader.page.get_by_role("button", name="Cancel")

    expect(cancel).to_be_disabled()
    expect(cancel).to_have_accessible_name("Cancel: needs the scope operate:mail")
    look(reader, "job-read-only")


def test_whoever_acts_without_the_scope_is_refused_on_a_page_that_names_it(
    shop: Scene, reader: Watched
) -> None:
    job = shop_app.remind.using(app=shop.app, delay="5d").enqueue(10).id
    reader.goto(f"/ui/jobs/{job}")
    reader.expects(403)

    with reader.page.expect_navigation():
        reader.page.evaluate(
            SENT_ANYWAY,
            [f"/ui/jobs/{job}/act/cancel", {"reason": "let me", "state": "scheduled", "run": "0"}],
        )

    expect(reader.page.get_by_text("operate").first).to_be_visible()
    look(reader, "forbidden")
    assert shop.state(job) is State.scheduled


def test_what_a_job_says_is_shown_and_never_run(shop: Scene, admin: Watched) -> None:
    for path in ("/ui/jobs?q=state%3Ddead", f"/ui/jobs/{shop.jobs.hostile}"):
        admin.goto(path)

        expect(admin.page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
        assert admin.page.locator("main img, main script").count() == 0

    look(admin, "job-hostile")
