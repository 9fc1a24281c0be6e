"""Handlers to be drilled: some keep their promises, some do not. What they do is in files of one folder."""

import os
from pathlib import Path

from duly import App, Job
from duly.drills import Drill, effect

FOLDER = "DRILLED_FOLDER"

jobs = App()


def told(name: str) -> Path:
    return Path(os.environ[FOLDER]) / name


def tell(name: str, text: object) -> None:
    with told(name).open("a") as file:  # WRITTEN
        file.write(f"{text}\n")


def lines(name: str) -> list[str]:
    return told(name).read_text().split() if told(name).exists() else []


def forget() -> None:
    for name in ("charges", "sent", "last"):
        told(name).unlink(missing_ok=True)


@jobs.task
def careless(order_id: int) -> None:
    with effect("charge", order_id):  # CHARGED
        tell("charges", order_id)


@jobs.task
async def careful(job: Job, order_id: int) -> None:
    key = job.effect_key("charge")
    with effect("charge", order_id, idempotency_key=key):
        if key not in lines("charges"):
            tell("charges", key)


@jobs.task(isolation="process")
def isolated(job: Job, order_id: int) -> int:
    done = job.step("ask", lambda: order_id)
    if str(order_id) not in lines("charges"):
        tell("charges", order_id)
    return done


@jobs.task
def forgetful(order_id: int) -> None:
    if str(order_id) in lines("sent"):
        return
    tell("sent", order_id)
    with effect("mail", order_id):  # MAILED
        pass


@jobs.task
def last_wins(order_id: int) -> None:
    told("last").write_text(str(order_id))


@jobs.task(ordering_key="one")
def in_turn(order_id: int) -> None:
    told("last").write_text(str(order_id))


def made(task: object) -> Drill:
    drill = Drill(jobs, lambda n: task.draft(order_id=n))  # type: ignore[attr-defined]
    drill.before(forget)
    return drill


twice = made(careless)
once = made(careful)
alone = made(isolated)
never = made(forgetful)
latest = made(last_wins)
turns = made(in_turn)


@twice.invariant
@alone.invariant
def nobody_pays_twice() -> None:
    charges = lines("charges")
    assert len(charges) == len(set(charges)), f"charged {charges}"


@alone.outcome
@once.outcome
def everybody_pays(numbers: list[int]) -> bool:
    return len(lines("charges")) == len(numbers)


@latest.outcome
@turns.outcome
def the_newest_is_last(numbers: list[int]) -> bool:
    return lines("last") == [str(numbers[-1])]
