"""Following one job: server-sent events, and the wait of a long poll. The watcher looks; this tells.

Streams end after some minutes, so that a token that was revoked is asked for again; clients come back by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from duly.core.errors import DulyError
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL
from duly.web.problems import Refused
from duly.web.shapes import job_answer
from duly.web.site import Site

HEARTBEAT: Final = 15.0
"""Seconds after which a comment shows a proxy that somebody is there."""
LONGEST_STREAM: Final = 300.0
_RETRY: Final = b"retry: 2000\n\n"
_ALIVE: Final = b": alive\n\n"
_END: Final = b"event: end\ndata: {}\n\n"


def etag(job: JobRecord) -> str:
    """Changes with everything that a follower sees of a job."""
    progress = job.progress
    seen = (
        job.state,
        job.run,
        job.priority,
        job.run_at,
        job.deadline,
        job.cancel_wished,
        job.finished_at,
        job.waits_for,
        None if progress is None else (progress.done, progress.of, progress.note),
    )
    return blake2b(msgspec.json.encode(seen), digest_size=8).hexdigest()


async def changed_job(site: Site, id: int, known: str, wait: timedelta) -> bool:
    """Wait until the job is no longer as the ETag says, at most so long; whether it is."""
    _refuse_crowd(site)
    try:
        async with asyncio.timeout(wait.total_seconds()), aclosing(site.watcher.follow(JobId(id))) as changes:
            async for job in changes:
                if job is None or etag(job) != known:
                    return True
    except TimeoutError:
        pass
    return False


def follow_job(site: Site, request: Request, job: JobRecord) -> Response:
    """The stream of a job's changes. 204, which ends a browser's questions, when its end is known already."""
    known = request.headers.get("last-event-id", "")
    if job.state in FINAL and known == etag(job):
        return Response(status_code=204)
    _refuse_crowd(site)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(site, job.id, known), headers=headers, media_type="text/event-stream")


async def _stream(site: Site, id: JobId, known: str) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_STREAM
    news: asyncio.Queue[_News] = asyncio.Queue(16)
    # A task of its own, so that the wait for a heartbeat interrupts no look.
    listening = asyncio.create_task(_listen(site, id, news))
    try:
        yield _RETRY
        while loop.time() < ends:
            try:
                one = await asyncio.wait_for(news.get(), HEARTBEAT)
            except TimeoutError:
                yield _ALIVE
                continue
            if one.over:
                yield _END
            if one.over or one.cut:
                return
            if one.job is not None and etag(one.job) != known:
                known = etag(one.job)
                yield b"id: " + known.encode() + b"\nevent: job\ndata: " + _data(one.job) + b"\n\n"
    finally:
        listening.cancel()


class _News(NamedTuple):
    job: JobRecord | None
    over: bool = False
    cut: bool = False
    """Nothing more is known here; the client comes back."""


async def _listen(site: Site, id: JobId, news: asyncio.Queue[_News]) -> None:
    async with aclosing(site.watcher.follow(id)) as changes:
        try:
            async for job in changes:
                await news.put(_News(job))
        except DulyError:
            # The stream ends without its end, and the client comes back.
            await news.put(_News(None, cut=True))
            return
    await news.put(_News(None, over=True))


def _data(job: JobRecord) -> bytes:
    """On one line: arguments may have been stored with line breaks between their members."""
    return msgspec.json.format(msgspec.json.encode(job_answer(job)), indent=-1)


def _refuse_crowd(site: Site) -> None:
    if site.watcher.full:
        raise Refused(
            503, "Too many follow jobs here already", "ask again in a while", headers={"Retry-After": "30"}
        )
