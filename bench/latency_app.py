"""The tasks of bench/latency.py: slow reports of three kinds, and the password reset that must not wait behind them."""

import asyncio
import os
import struct
import time

from duly import App

jobs = App()
reports = jobs.queue("reports")
mail = jobs.queue("mail")


@jobs.task(queue=reports)
async def report_on_the_loop(seconds: float) -> None:
    await asyncio.sleep(seconds)


@jobs.task(queue=reports)
def report_in_a_thread(seconds: float) -> None:
    time.sleep(seconds)


@jobs.task(queue=reports, isolation="process")
def report_in_a_process(seconds: float) -> None:
    time.sleep(seconds)


def note(sent_at: float) -> None:
    file = os.open(os.environ["LATENCY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, struct.pack("dd", time.time(), sent_at))
    os.close(file)


@jobs.task(queue=mail)
async def reset_on_the_loop(sent_at: float) -> None:
    note(sent_at)


@jobs.task(queue=mail)
def reset_in_a_thread(sent_at: float) -> None:
    note(sent_at)


@jobs.task(queue=mail, isolation="process")
def reset_in_a_process(sent_at: float) -> None:
    note(sent_at)
