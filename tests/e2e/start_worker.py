"""Starts a worker as `duly worker` does, with the options that only tests set: JSON on the command line."""

import json
import sys
from datetime import timedelta

from duly.worker.options import WorkerOptions
from duly.worker.supervisor import run


def main() -> int:
    app, said = sys.argv[1], json.loads(sys.argv[2])
    times = {"grace", "lease", "heartbeat", "poll", "patience", "unstarted"}
    options = {name: timedelta(seconds=value) if name in times else value for name, value in said.items()}
    return run(app, WorkerOptions(**options))


if __name__ == "__main__":
    sys.exit(main())
