"""An App whose one process of one thread does five jobs a second, and whose jobs should start within one."""

import time

from duly import App

jobs = App()
slow = jobs.queue("slow", wait_target="1s")


@jobs.task(queue=slow)
def nap() -> None:
    time.sleep(0.2)
