"""Every metric by name, as data: what it means, its kind and its labels. What is exposed and what dashboards ask for is
held to this table.

`duly_worker_*` are counted by one worker about itself; all others are read from the store, the same for whoever asks.
"""

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram", "info"]


class Metric(NamedTuple):
    """One family. `name` is as in the exposition but for a counter's `_total` and an info's `_info`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def samples(self) -> frozenset[str]:
        """The names under which its values are found."""
        match self.kind:
            case "counter":
                return frozenset({f"{self.name}_total"})
            case "histogram":
                return frozenset({f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count"})
            case "info":
                return frozenset({f"{self.name}_info"})
            case "gauge":
                return frozenset({self.name})


_TASK: Final = ("queue", "task")

WORKER: Final = (
    Metric("duly_worker_attempts", "counter", "Attempts whose end is stored, by how they ended.", (*_TASK, "outcome")),
    Metric("duly_worker_attempt_seconds", "histogram", "From a handler's first line to its end.", _TASK),
    Metric("duly_worker_dead", "counter", "Jobs that went dead at the end of an attempt.", _TASK),
    Metric("duly_worker_events", "counter", "Warnings and errors of the worker itself, by event.", ("event",)),
    Metric("duly_worker_processes", "gauge", "Processes that run jobs, by whether they claim new ones.", ("state",)),
    Metric("duly_worker_held_jobs", "gauge", "Jobs claimed and not stored as ended."),
    Metric("duly_worker_exchange_age_seconds", "gauge", "Since the store last answered the one that waits longest."),
    Metric("duly_worker_ready", "gauge", "1 when /readyz says so."),
    Metric("duly_worker", "info", "Which worker this is.", ("supervisor", "version")),
)  # fmt: skip

_QUEUE: Final = ("queue",)

STORE: Final = (
    Metric("duly_store_up", "gauge", "1 when the store answered; everything else is missing when it is 0."),
    Metric("duly_store_seconds", "gauge", "How long the store took to answer this reading."),
    Metric("duly_store_bytes", "gauge", "What the store takes of its budget; without one it is missing."),
    Metric("duly_store_filled_ratio", "gauge", "How much of the store's budget is spent; 1 is all."),
    Metric("duly_queue_jobs", "gauge", "Jobs by state.", ("queue", "state")),
    Metric("duly_queue_oldest_ready_seconds", "gauge", "How long the first has been ready; 0: none.", _QUEUE),
    Metric("duly_queue_arrivals_per_second", "gauge", "Jobs that come, over the last minutes.", _QUEUE),
    Metric("duly_queue_departures_per_second", "gauge", "Jobs that end, over the last minutes.", _QUEUE),
    Metric("duly_queue_slope_per_second", "gauge", "By how many jobs a second it grows; negative: shrinks.", _QUEUE),
    Metric("duly_queue_drain_seconds", "gauge", "Until nothing waits at the present rates; +Inf: never.", _QUEUE),
    Metric("duly_queue_full_in_seconds", "gauge", "Until it reaches its max_depth at the present slope.", _QUEUE),
    Metric("duly_queue_workers_needed", "gauge", "Processes like the present ones that hold its wait target.", _QUEUE),
    Metric("duly_queue_wait_target_seconds", "gauge", "How soon its jobs should start.", _QUEUE),
    Metric("duly_queue_max_depth", "gauge", "How many ready jobs it may hold.", _QUEUE),
    Metric("duly_queue_refused_last_hour", "gauge", "Jobs that producers were refused within the hour.", _QUEUE),
    Metric("duly_queue_shed_last_hour", "gauge", "Jobs shed within the hour.", _QUEUE),
    Metric("duly_queue_paused", "gauge", "1 while it is paused.", _QUEUE),
    Metric("duly_queue_workers", "gauge", "Live worker processes that serve it.", _QUEUE),
    Metric("duly_dead_oldest_seconds", "gauge", "Since the first of its dead letters died.", _QUEUE),
    Metric("duly_workers", "gauge", "Live worker processes of the fleet."),
    Metric("duly_workers_progress_age_seconds", "gauge", "Since any worker ended an attempt or found nothing to do."),
    Metric("duly_limit_running", "gauge", "Jobs that hold a limit.", ("limit",)),
    Metric("duly_limit_max_running", "gauge", "How many jobs may hold it.", ("limit",)),
    Metric("duly_limit_waiting", "gauge", "Jobs that wait for it.", ("limit",)),
    Metric("duly_breaker_open", "gauge", "1 while its breaker holds jobs back.", ("resource",)),
    Metric("duly_schedule_late_seconds", "gauge", "Since a due time that nobody fired; 0: none.", ("schedule",)),
    Metric("duly_alerts_firing", "gauge", "Alerts that fire, by rule.", ("rule",)),
    Metric("duly_runs_per_completed_last_hour", "gauge", "Attempts per completed job.", ("task",)),
    Metric("duly_second_runs_last_hour", "gauge", "Runs beyond the first, by cause.", ("task", "cause")),
    Metric("duly_suppressed_copies_last_hour", "gauge", "Copies of a job that were skipped instead of run.", ("task",)),
)  # fmt: skip

ALL: Final = {metric.name: metric for metric in (*WORKER, *STORE)}


def sample_names() -> frozenset[str]:
    """Every name that a query may ask for."""
    return frozenset(name for metric in ALL.values() for name in metric.samples)
