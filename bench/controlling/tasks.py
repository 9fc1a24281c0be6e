"""The application that workers of `make bench-control` run. FLAT_URL is the database, FLAT_COUNTER counts what was run.

CONTROL_SECONDS is how long jobs of tenants last; CONTROL_LOG takes their times: whose, when sent, started and ended.
"""

import asyncio
import itertools
import os
import struct
import time
from pathlib import Path

from bench.flatness.tasks import Counter
from duly import App

TIMES = struct.Struct("<?ddd")
SLOTS = 50
BIG = "big"

jobs = App(os.environ.get("FLAT_URL", "postgresql:///"))
tenants = jobs.queue("tenants", fair=True)
# An index takes what goes to its end at half the cost of what goes anywhere else: neither of the two stands there, for
# the key of "beyond" is larger than theirs.
limitless = jobs.queue("limitless")
roomy = jobs.queue("roomy", max_depth=10_000_000)
beyond = jobs.queue("beyond")
_counter = Counter(Path(os.environ["FLAT_COUNTER"])) if "FLAT_COUNTER" in os.environ else None
_seconds = float(os.environ.get("CONTROL_SECONDS", "0"))
_log = os.environ.get("CONTROL_LOG")
_file = os.open(_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if _log else None
_numbers = itertools.count(1)


@jobs.task
async def noop(x: int) -> None:
    del x
    if _counter is not None:
        _counter.add()


@jobs.task(ordering_key="{key}")
async def ordered(key: str) -> None:
    del key
    if _counter is not None:
        _counter.add()


@jobs.task(queue=tenants, tenant="{who}")
async def served(who: str, sent_at: float) -> None:
    started_at = time.time()
    if _seconds:
        # The first ones end at different times, so that slots are freed one by one.
        await asyncio.sleep(_seconds * min(1.0, next(_numbers) / SLOTS))
    if _counter is not None:
        _counter.add()
    # The flood of short jobs would drown the others here.
    if _file is not None and (_seconds or who != BIG):
        os.write(_file, TIMES.pack(who == BIG, sent_at, started_at, time.time()))


@jobs.task(queue=limitless)
async def free(x: int) -> None:
    del x


@jobs.task(queue=roomy)
async def deep(x: int) -> None:
    del x
