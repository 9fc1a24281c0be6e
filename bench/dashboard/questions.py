"""Everything that people ask of a store over HTTP: the API's look-ups and the dashboard's pages. Knows no store."""

from typing import Literal, NamedTuple
from urllib.parse import urlencode

Answer = Literal["json", "page", "text"]


class Facts(NamedTuple):
    """What the questions name."""

    newest: int
    completed: int
    """One in the middle of the table."""
    dead: int
    running: int
    blocked: int
    ready: int
    fingerprint: str
    """Of the largest group."""
    rare_fingerprint: str
    correlation: str


class Question(NamedTuple):
    """One GET."""

    name: str
    path: str
    answer: Answer = "json"


QUEUE, TASK, TENANT, TAG = "queue-00", "task_00", "tenant-000", "tag-07"
RARE_QUEUE, RARE_TENANT = "queue-13", "tenant-201"


def api(facts: Facts) -> list[Question]:
    """Look-ups of programs."""
    states = ("ready", "running", "scheduled", "blocked", "completed", "skipped", "cancelled", "dead")
    return [
        Question("status: every queue", "/v1/queues"),
        Question("one queue", f"/v1/queues/{QUEUE}"),
        Question("what a scaler asks", f"/v1/scale?queue={QUEUE}"),
        Question("metrics", "/metrics", "text"),
        Question("a completed job", f"/v1/jobs/{facts.completed}"),
        Question("a dead job, with its attempt", f"/v1/jobs/{facts.dead}"),
        Question("a running job", f"/v1/jobs/{facts.running}"),
        _jobs("the newest jobs"),
        _jobs("jobs before one in the middle", before=facts.completed),
        *(_jobs(f"jobs by state: {state}", state=state) for state in states),
        _jobs("jobs by queue", queue=QUEUE),
        _jobs("jobs by a quiet queue", queue=RARE_QUEUE),
        _jobs("jobs by task", task=TASK),
        _jobs("jobs by tenant", tenant=RARE_TENANT),
        _jobs("jobs by tag", tag=TAG),
        _jobs("jobs by correlation id", correlation=facts.correlation),
        _jobs("jobs by fingerprint", fingerprint=facts.rare_fingerprint),
        _jobs("jobs by queue, task, tenant and state", queue=QUEUE, task=TASK, tenant=TENANT, state="ready"),
        _jobs("jobs of the last hour", since="1h"),
        _jobs("jobs until 12 hours ago", until="12h"),
        _jobs("search of arguments, few fit", where="args.customer_id = 77"),
        _jobs("search of arguments, nothing fits", where="args.order_id = -1"),
        _jobs("search of arguments among dead letters", where="args.order_id = -1", state="dead"),
        Question("groups of dead letters", "/v1/dead"),
        Question("groups of one queue", f"/v1/dead?queue={RARE_QUEUE}"),
        Question("groups of one tag", f"/v1/dead?tag={TAG}"),
        Question("operations", "/v1/operations"),
    ]


def pages(facts: Facts) -> list[Question]:
    """The dashboard."""
    states = ("ready", "running", "scheduled", "blocked", "completed", "skipped", "dead")
    filters = {
        "a quiet queue": f"queue={RARE_QUEUE}",
        "task": f"task={TASK}",
        "tenant": f"tenant={RARE_TENANT}",
        "tag": f"tag={TAG}",
        "correlation": f"correlation={facts.correlation}",
        "fingerprint": f"fingerprint={facts.rare_fingerprint}",
        "an argument": "args.customer_id = 77",
        "an argument that none has": "args.order_id = -1",
    }
    jobs = {"completed": facts.completed, "dead": facts.dead, "running": facts.running}
    jobs |= {"blocked": facts.blocked, "ready": facts.ready}
    return [
        _page("overview", ""),
        _page("a busy queue", f"/queues/{QUEUE}"),
        _page("a quiet queue", f"/queues/{RARE_QUEUE}"),
        _page("jobs", "/jobs"),
        _page("jobs, before one in the middle", "/jobs", before=facts.completed),
        *(_page(f"jobs, {state}", "/jobs", q=f"state={state}") for state in states),
        *(_page(f"jobs by {name}", "/jobs", q=text) for name, text in filters.items()),
        _page("the names that complete a filter", "/complete", q="queue=q"),
        _page("all dead letters, before a redrive", "/jobs/all/redrive", q="state=dead"),
        *(_page(f"a job, {state}", f"/jobs/{id}") for state, id in jobs.items()),
        _page("dead letters", "/dead"),
        _page("dead letters of one tenant", "/dead", tenant=TENANT),
        _page("the largest group", f"/dead/{facts.fingerprint}", queue=QUEUE),
        _page("a small group", f"/dead/{facts.rare_fingerprint}"),
        _page("a letter to edit", f"/dead/edit/{facts.dead}"),
        _page("operations", "/operations"),
        _page("audit", "/audit"),
        _page("audit of one verb", "/audit", verb="cancel"),
        _page("tenants and keys", "/tenants"),
        _page("limits", "/limits"),
        _page("schedules", "/schedules"),
        _page("workers", "/workers"),
        _page("alerts", "/alerts"),
        _page("trace", f"/trace/{facts.correlation}"),
    ]


def _jobs(name: str, **query: object) -> Question:
    return Question(name, f"/v1/jobs?{urlencode(query)}")


def _page(name: str, path: str, **query: object) -> Question:
    return Question(f"page: {name}", f"/ui{path}{'?' if query else ''}{urlencode(query)}", "page")
