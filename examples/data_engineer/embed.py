"""Long work in killable processes: resumable item by item, large inputs beside the queue, one follow-up per result.

duly worker embed:jobs --isolated 2
python embed.py 2030-05-01 a.jpg b.jpg c.jpg
"""

import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from duly import RESULT, App, Blob, Job, Snooze

DATA = Path(os.environ.get("DATA", "."))

jobs = App(blobs=f"file://{DATA.absolute()}/blobs")
gpu = jobs.queue("gpu", owner="ml@corp")


@cache
def model() -> str:
    """Loaded once per process, not once per job."""
    with (DATA / "loads").open("a") as loads:
        loads.write(f"{os.getpid()}\n")
    return "model"


@jobs.lifespan
def warm() -> Iterator[None]:
    model()
    yield


@jobs.task(queue=gpu, timeout="2h", isolation="process")
def embed(job: Job, photos: list[str], out: Path) -> Path:
    for number, photo in enumerate(job.each("photos", photos)):
        with (out / "embedded").open("a") as done:
            done.write(f"{photo} {model()}\n")
        job.progress(number + 1, of=len(photos), note=photo)
        if job.should_stop:  # the deadline is near, a shutdown, a cancel
            raise Snooze("0s", f"cut after {photo}")
        time.sleep(float(os.environ.get("PACE", "0")))
    # The next attempt does not count again what was counted once.
    lines = job.step("count", lambda: len((out / "embedded").read_text().splitlines()))
    (out / "count").write_text(f"{lines}\n")
    return out


@jobs.task(timeout="10m", isolation="process")
def pack(folder: Path) -> int:
    names = sorted(item.name for item in folder.iterdir() if item.is_file())
    (folder / "packed").write_text("\n".join(names))
    return len(names)


@jobs.task
def load(blob: Blob) -> int:
    with blob.open() as stream:
        return len(stream.read())


def main(day: str, photos: list[str]) -> None:
    out = DATA / day
    out.mkdir(parents=True, exist_ok=True)
    embed.using(then=[pack.draft(RESULT)], idempotency_key=day).enqueue(photos, out)
    if (big := DATA / "big.npy").exists():
        load.enqueue(Blob.of(big))  # 40 MB do not belong into a queue: their place does


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
