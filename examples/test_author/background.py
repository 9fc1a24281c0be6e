"""What a shop does in the background: the code under test."""

from pathlib import Path

from duly import App, Job, Snooze

jobs = App("sqlite:///shop.db")  # the tests never touch this file


@jobs.task
async def send_receipt(order_id: int) -> str:
    return f"receipt of order {order_id}"


@jobs.task
def report(job: Job, day: str) -> None:
    """Its row and the end of the job are one commit: however often the job is delivered, the row is there once."""
    with jobs.transaction() as connection:
        connection.execute("insert into report (day) values (?)", (day,))
        job.complete(connection=connection)


@jobs.task(timeout="2h", isolation="process")
def embed(job: Job, photos: list[str], out: str) -> Path:
    for number, photo in enumerate(job.each("photos", photos)):
        if job.should_stop:  # the deadline is near, a shutdown, a cancel
            raise Snooze("0s", f"cut at {number}")
        job.progress(number + 1, of=len(photos), note=photo)
    return Path(out)
