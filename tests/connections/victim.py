"""A program that stores an order and its job in one transaction and is killed before and after each of its statements.

Run as `python -m tests.connections.victim URL WAY`: forks one child per point, and prints what each point was.
"""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy import NullPool, text
from sqlalchemy.orm import Session

from duly import App

NAME = "duly-victim"


class Points:
    """Counts the points and dies at one of them."""

    def __init__(self, deadly: int) -> None:
        self.deadly = deadly
        self.passed: list[str] = []

    def reach(self, what: str) -> None:
        self.passed.append(" ".join(what.split())[:60])
        if len(self.passed) == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def counted(points: Points) -> type[psycopg.Connection[Any]]:
    """A connection that reaches a point before and after everything it asks the server."""

    class Counted(psycopg.Connection[Any]):
        def wait(self, gen: Any, *pace: Any, **paces: Any) -> Any:
            points.reach("before a statement")
            result = super().wait(gen, *pace, **paces)
            points.reach("after a statement")
            return result

    return Counted


def traced(connection: sqlite3.Connection, points: Points) -> sqlite3.Connection:
    connection.set_trace_callback(points.reach)
    return connection


def opened(url: str, points: Points) -> Any:
    """A driver's connection whose statements are points."""
    if url.startswith("sqlite"):
        return traced(sqlite3.connect(url.removeprefix("sqlite:///")), points)
    return counted(points).connect(url, application_name=NAME)


@contextmanager
def by_driver(url: str, points: Points) -> Iterator[tuple[Any, Any]]:
    """(what to pass, how to execute), committed at the end."""
    connection = opened(url, points)
    yield connection, connection.execute
    connection.commit()
    connection.close()


@contextmanager
def by_session(url: str, points: Points) -> Iterator[tuple[Any, Any]]:
    dialect = "sqlite://" if url.startswith("sqlite") else "postgresql+psycopg://"
    engine = sqlalchemy.create_engine(dialect, creator=lambda: opened(url, points), poolclass=NullPool)
    with Session(engine) as session, session.begin():
        yield session, lambda statement: session.execute(text(statement))


WAYS = {"driver": by_driver, "session": by_session}


def buy(url: str, way: str, order: int, points: Points) -> None:
    jobs = App(url)

    @jobs.task
    def ship(order: int) -> None: ...

    with WAYS[way](url, points) as (connection, execute):
        execute(f"insert into orders values ({order})")
        ship.using(connection=connection, tags=["order"]).enqueue(order)
        execute(f"update orders set id = {order} where id = {order}")
    points.reach("after the commit")
    jobs.close()


def killed(url: str, way: str, order: int) -> bool:
    """Run one purchase in a child that dies at point number `order`; False when it lived through all points."""
    pid = os.fork()
    if pid == 0:
        points = Points(order)
        buy(url, way, order, points)
        print(json.dumps(points.passed), flush=True)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status != 0:
        raise SystemExit(f"purchase {order} ended with status {status}")
    return False


def main() -> None:
    url, way = sys.argv[1:]
    # Loaded once here instead of in every child.
    store = "sqlite" if url.startswith("sqlite") else "postgres"
    for module in (f"{store}.store", "connections.psycopg", "connections.sqlite3", "connections.sqlalchemy"):
        import_module(f"duly.stores.{module}")
    order = 1
    while killed(url, way, order):
        order += 1


if __name__ == "__main__":
    main()
