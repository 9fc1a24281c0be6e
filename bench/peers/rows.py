"""The rows of the table: which queue, on which server, in which environment, and how many jobs it drains.

Versions are pinned, so that a run can be repeated; to measure newer ones, change them here.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Workload:
    """One column: what the harness does, how often, how often with --once (0: not at all), and by which handler."""

    name: str
    does: str
    count: int
    once: int
    unit: str = "/s"
    kind: str = "plain"
    processes: int = 1

    @property
    def lower_is_better(self) -> bool:
        return self.unit == "ms"


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("one", "one", 5_000, 100),
        Workload("bulk", "bulk", 50_000, 1_000),
        Workload("drain", "drain", 20_000, 500),
        # Long enough for the start of the second process not to matter, and the same for one to compare with.
        Workload("long", "drain", 60_000, 0),
        Workload("two", "drain", 60_000, 500, processes=2),
        Workload("latency", "latency", 200, 10, "ms", kind="idle"),
        Workload("threads", "drain", 20_000, 300, kind="threads"),
        Workload("short", "drain", 20_000, 300, kind="short"),
        Workload("keys", "drain", 20_000, 0, kind="keys"),
        Workload("everything", "drain", 20_000, 200, kind="everything"),
        Workload("late", "lateness", 1_000_000, 1_000, "ms"),
    )
}
SHARED = ("one", "bulk", "drain", "latency")
BARE = (*SHARED, "short")
# Of a queue that has no bulk interface.
SINGLE = ("one", "drain", "latency")


@dataclass(frozen=True, slots=True)
class Row:
    """One queue on one server. Without packages it runs in duly's own environment."""

    name: str
    adapter: str
    server: str
    packages: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 11)
    workloads: tuple[str, ...] = SHARED
    # Where the whole backlog would take minutes: {workload: jobs}.
    fewer: dict[str, int] = field(default_factory=dict)

    @property
    def is_peer(self) -> bool:
        return bool(self.packages)


PSYCOPG = ("psycopg[binary]==3.3.9", "psycopg-pool==3.3.3")
REDIS = ("redis", "hiredis==3.5.0")
HUEY = ("huey==3.5.4", *REDIS)

ROWS = {
    row.name: row
    for row in (
        Row("limit postgres", "limit", "postgres", workloads=BARE),
        Row("duly postgres", "duly", "postgres", workloads=tuple(WORKLOADS)),
        Row(
            "pgqueuer",
            "pgqueuer",
            "postgres",
            ("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0", *PSYCOPG),
        ),
        Row("awa", "awa", "postgres", ("awa-pg==0.6.9", *PSYCOPG)),
        Row("chancy", "chancy", "postgres", ("chancy==0.26.0", *PSYCOPG)),
        Row(
            "oban",
            "oban",
            "postgres",
            ("oban==0.7.0", "uvloop==0.23.0", *PSYCOPG),
            (3, 12),
            fewer={"drain": 10_000},
        ),
        Row(
            "procrastinate",
            "procrastinate",
            "postgres",
            ("procrastinate==3.10.0", *PSYCOPG),
            fewer={"drain": 5_000},
        ),
        Row("limit sqlite", "limit", "sqlite", workloads=BARE),
        Row("duly sqlite", "duly", "sqlite", workloads=tuple(WORKLOADS)),
        Row("huey sqlite", "huey", "sqlite", HUEY, workloads=SINGLE),
        Row("beanstalkd", "beanstalk", "beanstalk", ("greenstalk==2.1.1", "pyyaml==6.0.3"), workloads=SINGLE),
        Row("huey redis", "huey", "redis", HUEY, workloads=SINGLE),
        Row("taskiq", "taskiq", "redis", ("taskiq==0.13.0", "taskiq-redis==1.2.4", *REDIS), workloads=SINGLE),
        Row("celery rabbit", "celery", "rabbit", ("celery==5.7.0",), workloads=SINGLE),
        Row("dramatiq", "dramatiq", "redis", ("dramatiq[redis]==2.2.1", *REDIS), workloads=SINGLE),
        Row("rq", "rq", "redis", ("rq==3.0.0", *REDIS), fewer={"drain": 3_000}),
    )
}
