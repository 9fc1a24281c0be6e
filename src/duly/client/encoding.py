"""From a draft to the job that a store takes: its arguments as JSON, its keys, and the drafts that follow it.

Blobs among the arguments are stored on the way. Knows no connection.
"""

from __future__ import annotations

from typing import Any, Literal

from duly.client.authorship import audit_tag
from duly.client.blobs import Unstored, stowing
from duly.client.client import Client
from duly.client.draft import Draft
from duly.client.job import Job
from duly.client.options import NOTHING
from duly.client.template import Template
from duly.client.unique import stored_form
from duly.core.errors import DulyError, PayloadError, UsageError
from duly.core.job import NewJob, Token, UniqueKey
from duly.core.keys import Unique, idempotency_digest
from duly.core.names import check_name


def new_job(draft: Draft[Any], inside: Job | None, client: Client | None = None) -> NewJob:
    """Check a draft and encode it; blocks only to store blobs. PayloadError names the argument; UsageError says what
    to write."""
    client = client or draft.client
    references: list[str] | None = None
    while True:
        try:
            return _job(draft, inside, client, references)
        except Unstored as missing:
            client.call(client.blobs.stow, missing.blob)
            references = []


async def anew_job(draft: Draft[Any], inside: Job | None, client: Client | None = None) -> NewJob:
    """As `new_job`, without blocking the loop."""
    client = client or draft.client
    references: list[str] | None = None
    while True:
        try:
            return _job(draft, inside, client, references)
        except Unstored as missing:
            await client.acall(client.blobs.stow, missing.blob)
            references = []


def batch_follow_ups(drafts: tuple[Draft[Any], ...], name: str, client: Client) -> tuple[NewJob, ...]:
    """What follows a batch, checked and encoded; blocks only to store blobs. A batch has no result to hand on."""
    references: list[str] | None = None
    while True:
        try:
            return _of_batch(drafts, name, client, references)
        except Unstored as missing:
            client.call(client.blobs.stow, missing.blob)
            references = []


async def abatch_follow_ups(drafts: tuple[Draft[Any], ...], name: str, client: Client) -> tuple[NewJob, ...]:
    """As `batch_follow_ups`, without blocking the loop."""
    references: list[str] | None = None
    while True:
        try:
            return _of_batch(drafts, name, client, references)
        except Unstored as missing:
            await client.acall(client.blobs.stow, missing.blob)
            references = []


def _of_batch(
    drafts: tuple[Draft[Any], ...], name: str, client: Client, references: list[str] | None
) -> tuple[NewJob, ...]:
    return tuple(
        _follow_up(draft, f"{name}[{number}]", client, references, marks=False)
        for number, draft in enumerate(drafts)
    )


def _job(draft: Draft[Any], inside: Job | None, client: Client, references: list[str] | None) -> NewJob:
    correlation_id = draft.options.correlation_id
    holder = None
    if inside is not None:
        holder = _holder(inside, client)
        correlation_id = correlation_id or inside.correlation_id or None
    if references is None:
        # Nearly no job has blobs: the first try is without them, and fails at the first one.
        return _encoded(draft, client, None, correlation_id, holder, marks=False)
    with stowing(client.blobs, references):
        return _encoded(draft, client, references, correlation_id, holder, marks=False)


def _holder(inside: Job, client: Client) -> Token | None:
    """The running attempt, where it stands in the store that is written to: another store cannot look for it."""
    return inside.token if client.main and client.registry.find(inside.task) is not None else None


def _says_nothing(draft: Draft[Any]) -> bool:
    """Whether neither its options nor the keys of its task add anything to the bare job."""
    declaration = draft.declaration
    return (
        draft.options is NOTHING
        and declaration.unique is None
        and declaration.ordering is None
        and declaration.tenant is None
        and not declaration.audit
    )


def _encoded(
    draft: Draft[Any],
    client: Client,
    references: list[str] | None,
    correlation_id: str | None,
    holder: Token | None,
    *,
    marks: bool,
) -> NewJob:
    job = _in_clear(draft, client, references, correlation_id, holder, marks=marks)
    # Last: keys and bounds are of what it says.
    return client.sealing.seal_job(job) if client.sealing.wants(draft.declaration.encrypt, job.queue) else job


def _in_clear(
    draft: Draft[Any],
    client: Client,
    references: list[str] | None,
    correlation_id: str | None,
    holder: Token | None,
    *,
    marks: bool,
) -> NewJob:
    declaration, options = draft.declaration, draft.options
    arguments = declaration.handler.arguments
    queue = options.queue or declaration.queue
    if not client.registry.knows_queue(queue):
        client.registry.check_queue(queue, f"task {declaration.name!r}")
    encode = arguments.encode_marked if marks else arguments.encode
    args = encode(draft.args, draft.kwargs, client.settings.bounds)
    if not references and _says_nothing(draft):
        # As below, for a job of which nothing more was said.
        return NewJob(
            queue,
            declaration.name,
            args,
            declaration.priority,
            expires=declaration.expires,
            correlation_id=correlation_id,
            holder=holder,
        )
    tenant = _tenant(draft)
    ordering_key = _ordering_key(draft)
    policy = client.registry.queues.get(queue)
    key = options.idempotency_key
    return NewJob(
        queue=queue,
        task=declaration.name,
        args=args,
        priority=declaration.priority if options.priority is None else options.priority,
        delay=options.delay,
        run_at=options.run_at,
        expires=options.expires or declaration.expires,
        timeout=options.timeout,
        attempts=options.attempts,
        tenant=tenant,
        tags=_tags(draft, client),
        correlation_id=correlation_id,
        holder=holder,
        idempotency=None if key is None else idempotency_digest(declaration.name, tenant, key),
        unique=_unique(draft, tenant),
        version=options.version,
        then=_follow_ups(options.then, "then", client, references),
        on_dead=_follow_ups(options.on_dead, "on_dead", client, references),
        blobs=tuple(dict.fromkeys(references)) if references else (),
        ordering_key=ordering_key,
        serialise=ordering_key is not None and policy is not None and policy.serialise,
        fair=policy is not None and policy.fair,
    )


def _tags(draft: Draft[Any], client: Client) -> tuple[str, ...]:
    tags = draft.options.tags or ()
    return (*tags, audit_tag(client.settings)) if draft.declaration.audit else tags


def _tenant(draft: Draft[Any]) -> str:
    declaration, said = draft.declaration, draft.options.tenant
    if said is not None or declaration.tenant is None:
        return said or ""
    filled = _filled(draft, declaration.tenant)
    return "" if filled is None else _checked("tenant", filled, draft)


def _ordering_key(draft: Draft[Any]) -> str | None:
    declaration, key = draft.declaration, draft.options.ordering_key
    if key is None and declaration.ordering is not None:
        filled = _filled(draft, declaration.ordering)
        key = None if filled is None else _checked("key", filled, draft)
    if key is not None and declaration.ack == "start":
        raise UsageError(
            f"{draft}: jobs of one ordering key run one after another, and this task is acknowledged before it runs; "
            "leave ack='start' or the key out"
        )
    return key


def _filled(draft: Draft[Any], template: Template) -> str | None:
    arguments = draft.declaration.handler.arguments
    template.check(arguments)
    return template.fill_any(arguments.filled(draft.args, draft.kwargs))


def _checked(kind: Literal["tenant", "key"], name: str, draft: Draft[Any]) -> str:
    try:
        return check_name(kind, name)
    except UsageError as error:
        raise UsageError(f"{draft}: {error}") from None


def _unique(draft: Draft[Any], tenant: str) -> UniqueKey | None:
    declaration, said = draft.declaration, draft.options.unique_key
    template = declaration.unique
    if said is None and template is None:
        if draft.options.version is not None:
            raise UsageError(
                f"{draft}: version={draft.options.version} is compared among the jobs of one unique key; "
                "add unique_key='…', or unique= to the task"
            )
        return None
    if isinstance(said, Unique):
        unique = said
    elif template is None:
        unique = Unique(said or "")
    elif said is not None:
        unique = Unique(said, template.unique.scope, template.unique.on_conflict)
    else:
        template.check(declaration.handler.arguments)
        unique = template.fill(declaration.handler.arguments.filled(draft.args, draft.kwargs))
    return stored_form(unique, declaration.name, tenant)


def _follow_ups(
    drafts: tuple[Draft[Any], ...] | None, name: str, client: Client, references: list[str] | None
) -> tuple[NewJob, ...]:
    if not drafts:
        return ()
    return tuple(
        _follow_up(draft, f"{name}[{number}]", client, references, marks=name == "then")
        for number, draft in enumerate(drafts)
    )


def _follow_up(
    draft: Draft[Any], place: str, client: Client, references: list[str] | None, *, marks: bool
) -> NewJob:
    if draft.client.registry is not client.registry:
        raise UsageError(f"{place}, {draft}, belongs to another App")
    if draft.options.client not in {None, client}:
        raise UsageError(f"{place}, {draft}, is for another store; a follow-up is stored where its job ends")
    own: list[str] = []
    try:
        if references is None:
            job = _encoded(draft, client, None, draft.options.correlation_id, None, marks=marks)
        else:
            with stowing(client.blobs, own):
                job = _encoded(draft, client, own, draft.options.correlation_id, None, marks=marks)
            # They have to last until the follow-up is stored itself, so that they are its parent's, too.
            references.extend(own)
    except Unstored:
        raise
    except PayloadError as error:
        raise PayloadError(f"{place}, {draft}: {error}", path=error.path) from error
    except DulyError as error:
        raise type(error)(f"{place}, {draft}: {error}") from error
    return job
