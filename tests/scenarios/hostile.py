"""A store full of text that would do harm on a page, every route of a server, and what makes an answer sound.

Knows no page by name: the routes come from the server's own table, the forms from its pages.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from html.parser import HTMLParser
from itertools import product
from typing import Any
from urllib.parse import quote

import httpx2
from starlette.routing import BaseRoute, Mount, Route

from duly import App, Breaker
from duly.client.operate import Operate
from duly.client.ticketing import ticket_for
from duly.core.classify import Verdict
from duly.core.decide import Policy, completed, failed
from duly.core.filters import Filter
from duly.core.fingerprint import told
from duly.core.job import ClaimedJob, ClaimRequest, NewJob, Progress, QueueClaim, WorkerInfo
from duly.core.ticket import Words
from duly.worker.registration import declare as declare_in_store
from tests.web.conftest import Place, Serving

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}"
TEXT = f"{SCRIPT}\u202egpj.exe\u2066"
NUL = f"{TEXT}\0\x1b[31m"
LONG = f"{SCRIPT}{'x' * 200_000}{SCRIPT}"
NAME = "\"'><script>alert(1)&lt;\u202egpj"
"""As far as a name may go: no blank, no comma, no colon."""
DEEP: Any = json.loads("[" * 40 + json.dumps(SCRIPT) + "]" * 40)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

TAGS = frozenset(
    re.findall(
        r"\w+",
        """
        a abbr article aside b bdi body br button caption circle code data datalist dd defs del desc
        details dialog div dl dt em fieldset footer form g h1 h2 h3 h4 head header hr html i input
        ins kbd label legend li line link main mark meta meter nav noscript ol optgroup option
        output p path polygon polyline pre progress rect samp script section select small span
        strong sub summary sup svg table tbody td template text textarea tfoot th thead time title
        tr u ul use var
        """,
    )
)
"""What a page is made of. No img, no iframe, no object: they come from nobody but a stranger."""


@dataclass
class Stage(Place):
    """A server over a store of which every text is hostile."""

    parameters: dict[str, list[str]] = field(default_factory=dict)
    final: str = ""
    """A job that has ended, which a stream of events is asked for: it ends, too."""
    ticket: str = ""
    """Of the same job."""


@contextmanager
def staged(url: str) -> Iterator[Stage]:
    app = App(url)
    declare(app)
    app.store.schema.migrate()
    declare_in_store(app)
    web = app.asgi(rate=None)
    with ExitStack() as stack, Serving(web) as serving:
        stage = Stage(app, serving, stack, web.state.site)
        fill(stage)
        yield stage
        stack.close()
    app.close()


def declare(app: App) -> None:
    app.queue(NAME, owner=TEXT.replace("\u202e", "").replace("\u2066", ""), max_running=20, fair=True)
    resource = app.resource(NAME, max_running=4, rate="100/s burst 20", breaker=Breaker())

    @app.task(name=NAME, queue=NAME, uses=[resource])
    async def hostile(note: Any = None) -> Any: ...

    @app.task(name=f"keyed{NAME}", queue=NAME, ordering_key="{account}", tenant="{account}")
    async def keyed(account: str) -> None: ...

    app.schedule(NAME, app.find_task(NAME).draft(note=TEXT), every="1h")


def fill(stage: Stage) -> None:
    """Jobs in every state, workers, overrides, silences, tokens, operations and marks, named and explained by TEXT."""
    app, store = stage.app, stage.app.store
    put(stage, 3, note=LONG)
    put(stage, 1, deep=DEEP, named={NAME: NUL, TEXT: TEXT})
    put(stage, 1, delay=timedelta(hours=1), note=NUL)
    owner = store.leases.register(worker(app))
    claim = ClaimRequest((QueueClaim(NAME, 6),), 6)
    claimed = list(store.jobs.exchange(owner, [], claim).claimed)
    die(stage, owner, claimed[:2])
    result = json.dumps({"note": NUL, "deep": DEEP}).encode()
    store.jobs.exchange(owner, [completed(claimed[2], result, SECOND, TEXT)], None)
    store.jobs.report(owner, [Progress(claimed[3].id, claimed[3].run, 1, 3, TEXT)])
    waiting = app.find_task(f"keyed{NAME}").enqueue(account=NAME)
    app.find_task(f"keyed{NAME}").enqueue(account=NAME)
    (cancelled,) = put(stage, 1, note=TEXT)
    act(app, cancelled)
    stage.final = str(claimed[2].id)
    stage.ticket = ticket_for(app.client, claimed[2].id, queue=NAME, words=Words(SCRIPT, "", SCRIPT))
    record = store.inspection.lookup([claimed[0].id])[0]
    assert record is not None
    assert record.error is not None
    (operation, *_) = app.inspect.operations()
    some = [
        str(claimed[0].id),
        str(claimed[3].id),
        str(waiting.id),
        str(cancelled),
        stage.final,
        str(operation.id),
    ]
    hostile = [TEXT, "\0", "9" * 30, "-1", "..%2f..%2fetc%2fpasswd", "x" * 5_000, "\u202e"]
    stage.parameters = {
        "id": [*some, str(owner), *hostile],
        "queue": [NAME, *hostile],
        "fingerprint": [record.error.fingerprint, *hostile],
        "correlation": [TEXT[:200], str(claimed[0].id), *hostile],
        "ticket": [stage.ticket, *hostile],
        "name": ["ticket.css", "ui.css", NAME, *hostile],
        "version": ["1", *hostile],
        "verb": ["redrive", "cancel", "purge", *hostile],
        "part": ["args", "result", "error", *hostile],
        "rest": [NAME, *hostile],
    }


def worker(app: App) -> WorkerInfo:
    spans = dict.fromkeys(app.client.registry.tasks, MINUTE)
    return WorkerInfo(SCRIPT, 4711, f"{SCRIPT}:1", (NAME,), spans, 30 * SECOND, 5 * SECOND, 10, SCRIPT[:20])


def put(stage: Stage, count: int, *, delay: timedelta | None = None, **args: object) -> list[int]:
    """Straight into the store: whoever writes there is bound by no task's types."""
    job = NewJob(
        NAME,
        NAME,
        json.dumps(args).encode(),
        delay=delay,
        tenant=NAME,
        tags=(NAME, TEXT[:100]),
        correlation_id=TEXT[:200],
        trigger=f"{SCRIPT}",
    )
    return [int(one.id) for one in stage.app.store.jobs.enqueue([job] * count)]


def die(stage: Stage, owner: int, jobs: list[ClaimedJob]) -> None:
    policy = Policy(10, stage.app.client.backoff, 10)
    error = told(SCRIPT, NUL, f"Traceback\n  File {SCRIPT}\n{NUL}\n{LONG[:50_000]}")
    ends = [failed(job, Verdict("permanent"), policy, 0.5, error, SECOND) for job in jobs]
    stage.app.store.jobs.exchange(owner, ends, None)  # type: ignore[arg-type]


def act(app: App, cancelled: int) -> None:
    """Acts of a person of such a name, for such reasons."""
    operate = Operate(app.client, NAME)
    operate.cancel(cancelled, reason=TEXT)
    operate.limit(NAME, max_running=7, lasting="2h", reason=TEXT)
    operate.limit(NAME, tenant=NAME, max_running=7, lasting="2h", reason=TEXT)
    operate.block(Filter(queue=NAME, tag=NAME), lasting="1h", reason=TEXT)
    operate.tenant(NAME, weight=2, reason=TEXT)
    operate.hold(NAME, "10m", reason=TEXT)
    operate.silence(f"queue:{NAME}", lasting="1h", reason=TEXT)
    operate.create_token(["read"], name=NAME, reason=TEXT)
    app.store.operator.start_operation("redrive", Filter(queue=NAME), 0.001, 200, 2, NAME, TEXT)
    for group in app.inspect.dead_groups():
        operate.assign(group.fingerprint, NAME, note=TEXT, reason=TEXT)
    app.store.alerts.change(
        "dead_arrived", f"queue:{NAME}", 0, "firing", {"text": TEXT, "owner": TEXT}, ["log"]
    )
    operate.pause(NAME, reason=TEXT)


@dataclass(frozen=True)
class Address:
    """One path of a server."""

    path: str
    """As the table has it, with its parameters."""
    methods: frozenset[str]
    endpoint: object

    @property
    def names(self) -> list[str]:
        return [part.partition(":")[0].strip("{}") for part in self.path.split("/") if part.startswith("{")]


def addresses(routes: list[BaseRoute], prefix: str = "") -> Iterator[Address]:
    """The whole table."""
    for route in routes:
        if isinstance(route, Mount):
            yield from addresses(route.routes or [], prefix + route.path)
        else:
            assert isinstance(route, Route), f"say how {route!r} is asked"
            yield Address(prefix + route.path, frozenset(route.methods or ()), route.endpoint)


def filled(address: Address, parameters: dict[str, list[str]]) -> list[str]:
    """The path with values in the places of its parameters: each that fits, and each that does harm."""
    values = []
    for name in address.names:
        assert name in parameters, f"{address.path}: say what to put in for {{{name}}}"
        values.append(parameters[name])
    if len(values) > 1:
        # All with all for the first three of each, and the rest side by side.
        few = [one[:3] for one in values]
        chosen = [*product(*few), *zip(*values, strict=False)]
    else:
        chosen = [(value,) for value in values[0]] if values else [()]
    return list(dict.fromkeys(_with(address.path, each) for each in chosen))


def _with(path: str, values: tuple[str, ...]) -> str:
    left = list(values)
    parts = [quote(left.pop(0), safe="%") if part.startswith("{") else part for part in path.split("/")]
    return "/".join(parts)


class _Page(HTMLParser):
    """What a browser would make of a page, as far as it may harm."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.isolated = 0
        self.turned: list[str] = []
        """Text that turns its direction, and is not kept apart."""
        self.forms: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.isolated += tag == "bdi"
        if tag not in TAGS:
            self.faults.append(f"<{tag}>")
        if tag == "script" and not given.get("src", "").strip():
            self.faults.append("a script in the page")
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} {name}={value:.40}")
            if name in {"href", "src", "action", "formaction"} and not _harmless(value):
                self.faults.append(f"{tag} {name}={value:.60}")
            # A field shows what it was given, and only there; what begins with data- is shown nowhere.
            if name != "value" and not name.startswith("data-"):
                self._look(value, f"{tag} {name}")
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag in {"input", "textarea", "select"} and self.forms and "name" in given:
            self.forms[-1][1][given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self.isolated -= tag == "bdi"

    def handle_data(self, data: str) -> None:
        if not self.isolated:
            self._look(data, "text")

    def _look(self, text: str, where: str) -> None:
        if found := re.search("[\u202a-\u202e\u2066-\u2069]", text):
            self.turned.append(f"{where} turned by {found.group()!r}: {text[:60]!r}")


def _harmless(link: str) -> bool:
    """A place on this site, or with a scheme that runs nothing."""
    scheme, colon, _ = link.split("/", maxsplit=1)[0].partition(":")
    return not colon or scheme.lower() in {"http", "https", "mailto"} or link == "data:,"


def forms(page: str) -> list[tuple[str, dict[str, str]]]:
    read = _Page()
    read.feed(page)
    return read.forms


def faults(answer: httpx2.Response) -> list[str]:
    """What is wrong with an answer, whatever it was asked; empty when it is sound."""
    wrong = []
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    if answer.status_code >= 500:
        wrong.append(f"status {answer.status_code}: {answer.text[:200]}")
    if answer.content and answer.headers.get("X-Content-Type-Options") != "nosniff":
        wrong.append("no nosniff")
    if answer.content and not kind:
        wrong.append("no content type")
    if len(answer.content) > 1_000_000:
        wrong.append(f"{len(answer.content)} bytes")
    if kind == "text/html":
        wrong += _of_a_page(answer)
    elif kind.endswith("json"):
        json.loads(answer.text, parse_constant=lambda name: wrong.append(f"{name} in JSON"))
    return wrong


def _of_a_page(answer: httpx2.Response) -> list[str]:
    wrong = []
    policy = answer.headers.get("Content-Security-Policy", "")
    if "default-src 'none'" not in policy or "unsafe" in policy or "frame-ancestors 'none'" not in policy:
        wrong.append(f"policy {policy!r}")
    read = _Page()
    read.feed(answer.text)
    return wrong + read.faults + read.turned


def snapshot(app: App) -> dict[str, Any]:
    """What people and programs can change, apart from when a token was used last."""
    store = app.store
    return {
        "jobs": [(one.id, one.state, one.run, one.priority) for one in app.inspect.jobs(limit=200).jobs],
        "audit": [entry.id for entry in store.audits.page(limit=500)],
        "pauses": store.inspection.pauses(),
        "operations": [(one.id, one.state) for one in app.inspect.operations()],
        "silences": store.alerts.silences(),
        "marks": store.triage.marks(),
        "tokens": [(one.id, one.name, one.state) for one in store.tokens.all()],
        "schedules": app.inspect.schedules(),
    }
