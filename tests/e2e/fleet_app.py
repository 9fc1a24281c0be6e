"""An App that this release and the one before can both run: it notes which of them ran what."""

import json
import os
import time
from pathlib import Path

import duly
from duly import App, Job

jobs = App()
LEDGER = Path(os.environ.get("CHORES", ".")) / "ledger"


@jobs.task
def work(job: Job, key: str) -> None:
    line = json.dumps({"id": job.id, "key": key, "by": str(Path(duly.__file__).parent), "run": job.attempt})
    descriptor = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)
    time.sleep(0.01)
