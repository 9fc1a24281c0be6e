"""Starts a worker as `duly worker` does, with the options that only tests set: JSON on the command line."""

import sys

import msgspec

from duly.worker.options import WorkerOptions
from duly.worker.supervisor import run


def main() -> int:
    return run(sys.argv[1], msgspec.json.decode(sys.argv[2], type=WorkerOptions))


if __name__ == "__main__":
    sys.exit(main())
