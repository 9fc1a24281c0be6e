"""An App of two queues that nobody owns, one of whose jobs dies at once."""

from duly import App, Dead

jobs = App()
first = jobs.queue("first")
jobs.queue("second")


@jobs.task(queue=first)
def die() -> None:
    raise Dead("for the alert")
