"""Many rows at once, as the product leaves them: copies of jobs that it has itself enqueued and run.

Knows the tables of jobs, but takes every column from a row of the product's, so that it stays true when they change.
"""

import time
from datetime import timedelta

from bench.flatness import tasks
from bench.flatness.product import Product

_CHUNK = 250_000
_DAY = 86_400


def fill(product: Product, *, finished: int = 0, scheduled: int = 0, ready: int = 0, age: timedelta) -> float:
    """Add so many jobs in each state, the finished ones about `age` old; the seconds it took, vacuum included."""
    began = time.monotonic()
    for table, count in (("finished", finished), ("scheduled", scheduled), ("ready", ready)):
        if count:
            template = _template(product, table)
            for start in range(0, count, _CHUNK):
                _copy(product, table, template, min(_CHUNK, count - start), start, count, age)
    for table in ("job", "finished", "scheduled", "ready"):
        product.execute(f"vacuum (analyze) duly.{table}")
    product.execute("checkpoint")
    return time.monotonic() - began


def _template(product: Product, table: str) -> int:
    """The number of one job that the product itself brought to this state."""
    app = product.app
    if table == "finished":
        worker = product.worker or product.start_worker()
        before = worker.counter.value
        job = tasks.noop.using(app=app).enqueue(1)
        worker.until(before + 1)
        job.result(timeout="60s")
    elif table == "scheduled":
        job = tasks.noop.using(app=app, delay="300d").enqueue(1)
    else:
        app.operate.pause("default", reason="filling")
        job = tasks.noop.using(app=app).enqueue(1)
    return int(job.id)


def _copy(
    product: Product, table: str, template: int, count: int, start: int, whole: int, age: timedelta
) -> None:
    own = {
        "finished": {
            # Spread over a tenth of their age, in the order in which they were enqueued.
            "enqueued_at": _spread(start, whole, age),
            "started_at": _spread(start, whole, age),
            "finished_at": _spread(start, whole, age),
        },
        # From in a day to in a year, in no order.
        "scheduled": {"run_at": f"clock_timestamp() + interval '1 s' * ({_DAY} + random() * {364 * _DAY})"},
        "ready": {"pos": "g.id"},
    }[table]
    statement = " ".join((
        "with g as materialized (",
        f"select nextval('duly.pos') as id, n from generate_series(1, {count}) n",
        "), stored as (",
        _insert(product, "job", template, {"enqueued_at": own.get("enqueued_at", "t.enqueued_at")}),
        ")",
        _insert(product, table, template, own),
    ))  # fmt: skip
    product.execute(statement)


def _spread(start: int, whole: int, age: timedelta) -> str:
    seconds = age.total_seconds()
    return f"clock_timestamp() - interval '1 s' * ({seconds} * (1 - 0.1 * ({start} + g.n) / {whole}))"


def _insert(product: Product, table: str, template: int, own: dict[str, str]) -> str:
    rows = product.execute(
        "select attname from pg_attribute"
        f" where attrelid = 'duly.{table}'::regclass and attnum > 0 and not attisdropped order by attnum"
    )
    columns = [str(row[0]) for row in rows]
    values = [own.get(column, "g.id" if column == "id" else f"t.{column}") for column in columns]
    return (
        f"insert into duly.{table} ({', '.join(columns)}) select {', '.join(values)}"
        f" from g cross join (select * from duly.{table} where id = {template}) t"
    )
