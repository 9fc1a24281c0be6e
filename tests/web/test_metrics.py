"""/metrics: for who may read every queue, and of what a scraper understands."""

from tests.web.conftest import Place


def test_metrics_are_scraped_with_a_token_that_may_read_every_queue(place: Place) -> None:
    place.app.find_task("send_receipt").enqueue(order_id=7)

    scraped = place.client("read").get("/metrics")
    one_queue = place.client("read:mail").get("/metrics")
    nobody = place.client().get("/metrics")

    assert (scraped.status_code, one_queue.status_code, nobody.status_code) == (200, 403, 401)
    assert scraped.headers["Content-Type"].startswith(("text/plain", "application/openmetrics-text"))
    assert 'queue="mail"' in scraped.text
