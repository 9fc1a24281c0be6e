"""A Flask application with jobs, for the tests of the glue."""

import os

from flask import Flask, current_app

from duly import App
from duly.core.errors import KeyReused, StoreUnreachable
from duly.flask import init_app

web = Flask("site")
jobs = App(f"sqlite:///{os.environ['SITE_DB']}")
init_app(web, jobs)


@jobs.task
def greet(name: str) -> str:
    return f"{current_app.name} greets {name}"


@jobs.task
async def agreet(name: str) -> str:
    return f"{current_app.name} greets {name}"


@web.get("/reused")
def reused() -> str:
    raise KeyReused("the key 'a' belongs to job 7, which was enqueued with other arguments", job_id=7)


@web.get("/away")
def away() -> str:
    raise StoreUnreachable("postgresql://secret@db: connection refused")
