"""Taking a picture from outside: streamed to the disk, bounded, looked at, and named by what it holds.

Reads raw bodies and forms of one file. Knows no job; whoever promises one waits for `settle`, too.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator
from email.message import Message
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from duly.demo.pillow import Image, UnidentifiedImageError

MOST_BYTES: Final = 25 * 1024 * 1024
MOST_PIXELS: Final = 50_000_000
"""A decoded picture takes up to four bytes for each."""
LONGEST_SIDE: Final = 20_000
KINDS: Final = ("JPEG", "PNG", "WEBP")
"""What is decoded at all: few decoders, and those that everybody's pictures have tried."""
FIELD: Final = "photo"
"""The name of the form's field."""

_ENVELOPE: Final = 8 * 1024
_PATIENCE: Final = 30.0
"""Seconds without a byte."""
_PIECE: Final = 512 * 1024
"""Each is a way to a thread and back."""
_NAMED: Final = re.compile(r"[0-9a-f]{64}")


class NotTaken(Exception):
    """Why a picture is not taken, in words for whoever sent it."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(title)
        self.status, self.title, self.detail = status, title, detail


class Taken(Struct, frozen=True):
    """A picture that has arrived."""

    photo: str
    """SHA-256 of its content, in hexadecimal: its name everywhere."""
    title: str
    """What its sender called it, "" when nothing was said; any text at all."""


def is_photo(name: str) -> bool:
    """Whether this is the name of a picture, there or not; nothing else ever becomes part of a path."""
    return _NAMED.fullmatch(name) is not None


def clear_unfinished(folder: Path) -> None:
    """Remove what uploads that were cut off by the end of this process have left."""
    for part in folder.glob(".*.part"):
        part.unlink(missing_ok=True)


async def take(request: Request, folder: Path) -> Taken:
    """Read one picture from a request into `folder`. NotTaken when it is too large, no picture, or not all of it."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > MOST_BYTES + _ENVELOPE:
        raise _too_large()
    kind = Message()
    kind["content-type"] = request.headers.get("content-type", "")
    chunks = _patient(request)
    title = request.query_params.get("name", "")
    if kind.get_content_type() == "multipart/form-data":
        field = _Field(chunks, kind.get_param("boundary"))
        title = await field.begin()
        chunks = field.content()
    elif kind.get_content_maintype() != "image" and kind.get_content_type() != "application/octet-stream":
        raise NotTaken(
            415, "This is no picture", f"send a JPEG, PNG or WebP, or a form with the field {FIELD}"
        )
    return Taken(await _write(chunks, folder), _shown(title))


async def settle(taken: Taken, folder: Path) -> None:
    """Come back once a picture and its name survive a power failure. Before, nobody may be promised anything."""
    await run_in_threadpool(_settle, folder / taken.photo, folder)


def _settle(*paths: Path) -> None:
    for path in paths:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


async def _write(chunks: AsyncIterator[bytes], folder: Path) -> str:
    part = folder / f".{secrets.token_hex(8)}.part"
    file = await run_in_threadpool(part.open, "xb", 0)
    digest, size, held = sha256(), 0, bytearray()
    try:
        with file:
            async for chunk in chunks:
                size += len(chunk)
                if size > MOST_BYTES:
                    raise _too_large()
                digest.update(chunk)
                held += chunk
                if len(held) >= _PIECE:
                    await run_in_threadpool(_add, file.fileno(), bytes(held))
                    held.clear()
            await run_in_threadpool(_name, file.fileno(), bytes(held), part, folder / digest.hexdigest())
    finally:
        # Only one that was refused or cut off is still there. No thread: a cancelled request must not leave it.
        part.unlink(missing_ok=True)
    return digest.hexdigest()


def _add(file: int, piece: bytes) -> None:
    """Write what has arrived, and let the disk begin with it: little is left to wait for after the last byte."""
    _write_all(file, piece)
    if hasattr(os, "posix_fadvise"):
        # "Not needed" is how Linux is asked to write without anybody waiting for it.
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _name(file: int, last: bytes, part: Path, target: Path) -> None:
    """Look at what has arrived, and give it its name: the same content once more replaces itself."""
    _write_all(file, last)
    _look(part)
    part.replace(target)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _look(path: Path) -> None:
    """Read the head of a picture, and decode nothing: what it would take is known before anybody takes it."""
    try:
        with Image.open(path, formats=KINDS) as image:
            width, height = image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_many_pixels() from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError):
        raise NotTaken(415, "This is no picture", "a JPEG, PNG or WebP is taken") from None
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise _too_many_pixels()


async def _patient(request: Request) -> AsyncIterator[bytes]:
    """The body, as long as it keeps coming."""
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(_PATIENCE):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise NotTaken(408, "Nothing came any more", "please send it again") from None
        yield chunk


class _Field:
    """The first field of a form, which must be the file: what a browser without scripts sends."""

    def __init__(self, chunks: AsyncIterator[bytes], boundary: object) -> None:
        if not isinstance(boundary, str) or not 1 <= len(boundary) <= 70 or not boundary.isascii():
            raise NotTaken(400, "This form cannot be read", "its content type names no boundary")
        self._chunks = chunks
        self._delimiter = b"\r\n--" + boundary.encode()
        # The first delimiter has no line before it.
        self._held = b"\r\n"

    async def begin(self) -> str:
        """Read up to the content; what the sender calls the file."""
        while b"\r\n\r\n" not in self._held:
            if len(self._held) > _ENVELOPE:
                raise NotTaken(400, "This form cannot be read", "its first field has no end of its head")
            await self._more()
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        first, _, lines = head.removeprefix(b"\r\n").partition(b"\r\n")
        told = Message()
        for line in lines.decode(errors="replace").split("\r\n"):
            name, _, value = line.partition(":")
            if name.strip().lower() == "content-disposition":
                told["content-disposition"] = value.strip()
        named = told.get_param("name", header="content-disposition")
        if b"\r\n" + first != self._delimiter or named != FIELD:
            raise NotTaken(
                400, "This form cannot be read", f"its first field must be the file, named {FIELD}"
            )
        return told.get_filename("")

    async def content(self) -> AsyncIterator[bytes]:
        """Up to the next delimiter."""
        while self._delimiter not in self._held:
            # The end of what is held may be the beginning of the delimiter.
            ready = len(self._held) - len(self._delimiter)
            if ready > 0:
                yield self._held[:ready]
                self._held = self._held[ready:]
            await self._more()
        yield self._held.partition(self._delimiter)[0]

    async def _more(self) -> None:
        try:
            self._held += await anext(self._chunks)
        except StopAsyncIteration:
            raise NotTaken(400, "Not all of it has arrived", "please send it again") from None


def _shown(title: str) -> str:
    """A name fit for a ticket: what does not show is left out."""
    return "".join(letter for letter in title if letter.isprintable())[:80].strip()


def _too_large() -> NotTaken:
    return NotTaken(413, "This picture is too large", f"at most {MOST_BYTES // 1024**2} MB are taken")


def _too_many_pixels() -> NotTaken:
    most = f"{MOST_PIXELS // 1_000_000} megapixels, and {LONGEST_SIDE:,} pixels a side"
    return NotTaken(413, "This picture has too many pixels", f"at most {most}, are taken")
