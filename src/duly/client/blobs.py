"""Blobs: files too large for a job's arguments, kept beside the store as long as a job names them.

A folder holds one home per store that uses it, and in it each content under its digest. Knows no App and no worker.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self
from urllib.parse import urlsplit

from duly.core.errors import NotFound, UsageError
from duly.core.keys import once_digest
from duly.core.unstorable import Custom
from duly.stores.protocol import Store

_REFERENCE: Final = re.compile(r"[0-9a-f]{16}/[0-9a-f]{64}")
_HOME: Final = re.compile(r"[0-9a-f]{16}")
_CHUNK: Final = 1 << 20
_BATCH: Final = 500
_FOREVER: Final = timedelta(days=36_500)
# Long before the grace of a day is over, a blob that is enqueued again is marked as new again.
_FRESH: Final = 3600.0
_NEW: Final = ".new-"


class Blob(Custom):
    """A file as an argument: `load.enqueue(Blob.of("/data/big.npy"))`; the job stores only a reference.

    The content is copied into the folder of `App(blobs=…)` before the job is stored, and kept as long as the job is.
    """

    __slots__ = ("_folder", "_fresh_until", "_source", "_stamp", "reference", "size")

    def __init__(
        self, folder: BlobFolder | None, source: Path | None, reference: str | None, size: int
    ) -> None:
        self._folder = folder
        self._source = source
        self._stamp: tuple[int, ...] | None = None
        self._fresh_until = 0.0
        self.reference = reference
        """Where it lies in the folder; None before the first enqueue."""
        self.size = size
        """In bytes."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """The file at this path, read when a job with it is enqueued. UsageError when there is none."""
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"Blob.of({path!r:.40}) takes the path of a file; write the content to one first"
            )
        source = Path(path).absolute()
        if not source.is_file():
            raise UsageError(
                f"Blob.of({str(path)!r}): there is no such file; a blob is made of the path of one"
            )
        return cls(None, source, None, source.stat().st_size)

    def open(self) -> BinaryIO:
        """The content, for reading; close it, or use `with`. NotFound when the folder does not hold it."""
        if self._source is not None:
            return self._source.open("rb")
        if self._folder is None or self.reference is None:
            raise UsageError("this blob belongs to no folder; make one with Blob.of(path)")
        return self._folder.open(self.reference)

    def to_json(self) -> object:
        """A reference, once the content is stored."""
        target = _stowing.get()
        if target is None or self.reference is None or not self._is_fresh(target.folder):
            raise Unstored(self)
        target.references.append(self.reference)
        return {"blob": self.reference, "size": self.size}

    def _is_fresh(self, folder: BlobFolder) -> bool:
        """Whether the folder has this very content, and keeps it long enough."""
        if self._folder is not folder or time.monotonic() >= self._fresh_until:
            return False
        return self._source is None or _stamp(self._source) in {None, self._stamp}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and (self.reference, self.size) == (other.reference, other.size)

    def __hash__(self) -> int:
        return hash((self.reference, self.size))

    def __repr__(self) -> str:
        return f"<Blob {self._source or self.reference}, {self.size} bytes>"


class Unstored(UsageError):
    """The content of this blob has to be stored before the arguments can be written. An enqueue does that."""

    def __init__(self, blob: Blob) -> None:
        super().__init__(
            f"{blob} is no argument of a job, and nothing else can hold a blob; write its path or an id"
        )
        self.blob = blob


class _Stowing(NamedTuple):
    """The blobs that the arguments of one job name."""

    folder: BlobFolder
    references: list[str]


_stowing: ContextVar[_Stowing | None] = ContextVar("duly_stowing", default=None)


@contextmanager
def stowing(folder: BlobFolder, references: list[str]) -> Iterator[None]:
    """Let stored blobs be written while the block lasts, and collect their references."""
    references.clear()
    before = _stowing.set(_Stowing(folder, references))
    try:
        yield
    finally:
        _stowing.reset(before)


class BlobFolder:
    """One App's folder of blobs. Every method but `read` does I/O; safe from threads and processes."""

    def __init__(self, folder: Callable[[], Path | None], home: Callable[[], str]) -> None:
        self._path = folder
        self._home = home

    def read(self, kind: type, value: object) -> Blob:
        """A blob as a job names it. ValueError for what is none: no path of anybody's choice is ever opened."""
        match value:
            case {"blob": str(reference), "size": int(size)} if _REFERENCE.fullmatch(reference):
                return Blob(self, None, reference, size)
            case _:
                raise ValueError(f"Expected a blob, such as Blob.of(path), got {str(value)[:80]}")

    def open(self, reference: str) -> BinaryIO:
        """The content of a stored blob. NotFound when it is not there."""
        path = self._file(reference)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        except OSError as error:
            raise NotFound(
                f"the blob {path} cannot be opened: {error.strerror}; every machine that runs its jobs needs the same "
                "folder under blobs=",
                kind="blob",
                name=reference,
            ) from error

    def stow(self, blob: Blob) -> None:
        """Store the content, if it is not stored, and let it stay for a day at least. Blocks for the whole copy."""
        source = blob._source
        if source is None:
            self._stay(blob)
            return
        stamp = _stamp(source)
        if stamp is None:
            raise UsageError(f"{blob}: the file is no longer there")
        known = blob._folder is self and blob._stamp == stamp and blob.reference is not None
        if not (known and blob.reference is not None and self._touch(blob.reference)):
            blob.reference, blob.size = self._copy(source)
        blob._folder, blob._stamp = self, stamp
        blob._fresh_until = time.monotonic() + _FRESH

    def _stay(self, blob: Blob) -> None:
        """One that came with another job: its content is there already."""
        if blob._folder is not self or blob.reference is None:
            raise UsageError(f"{blob} lies in the folder of another store; write Blob.of(path) for a copy")
        if not self._touch(blob.reference):
            raise NotFound(f"{blob} is no longer in {self._root()}", kind="blob", name=blob.reference)
        blob._fresh_until = time.monotonic() + _FRESH

    def _copy(self, source: Path) -> tuple[str, int]:
        root, home = self._root(), self._home()
        (root / home).mkdir(parents=True, exist_ok=True)
        new = root / home / f"{_NEW}{secrets.token_hex(8)}"
        digest, size = sha256(), 0
        try:
            with source.open("rb") as read, new.open("xb") as written:
                while chunk := read.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
                    written.write(chunk)
                written.flush()
                os.fsync(written.fileno())
            reference = f"{home}/{digest.hexdigest()}"
            path = self._file(reference)
            path.parent.mkdir(exist_ok=True)
            with _locked(root):
                new.replace(path)
            _sync(path.parent)
        finally:
            new.unlink(missing_ok=True)
        return reference, size

    def _touch(self, reference: str) -> bool:
        """Make it as good as new for `remove_unused`; False when it is not there."""
        try:
            with _locked(self._root()):
                os.utime(self._file(reference))
        except FileNotFoundError:
            return False
        return True

    def _file(self, reference: str) -> Path:
        home, digest = reference.split("/")
        return self._root() / home / digest[:2] / digest

    def _root(self) -> Path:
        root = self._path()
        if root is None:
            raise UsageError(
                "a Blob needs a folder that producers and workers share; "
                "write App(blobs='file:///var/lib/duly/blobs') or set DULY_BLOBS"
            )
        return root


def home_of(url: str, schema: str) -> str:
    """Where in a folder the blobs of one store lie: producers need no question to the store to know it."""
    parts = urlsplit(url)
    # Whoever logs in, and how, it is the same database.
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return sha256(f"{where}\x1f{schema}".encode()).hexdigest()[:16]


def remove_unused(folder: Path, store: Store, older_than: timedelta) -> int:
    """Delete the blobs of this store that no stored job names, if nobody enqueued them for that long; how many."""
    return sum(removing_unused(folder, store, older_than))


def removing_unused(folder: Path, store: Store, older_than: timedelta) -> Iterator[int]:
    """As `remove_unused`, one stretch of files at a time: how many went in each."""
    if not folder.is_dir():
        return
    limit = time.time() - older_than.total_seconds()
    for home in sorted(entry for entry in folder.iterdir() if _HOME.fullmatch(entry.name)):
        if not (_knows(store, home) or (yield from _finds_own(store, home))):
            continue
        yield sum(_remove(folder, left, limit) for left in home.glob(f"{_NEW}*"))
        for batch in _batches(home, limit):
            unused = store.keys.unused_blobs(list(batch))
            yield sum(_remove(folder, batch[reference], limit) for reference in unused)


def _finds_own(store: Store, home: Path) -> Generator[int, None, bool]:
    """Whether jobs of this store use this home: the blobs of another store seem unused here, and are not."""
    for batch in _batches(home, float("inf")):
        if len(store.keys.unused_blobs(list(batch))) < len(batch):
            store.keys.once(_mark_of(home), _FOREVER)
            return True
        yield 0
    return False


def _batches(home: Path, before: float) -> Iterator[dict[str, Path]]:
    """The blobs of a home that were last enqueued before this time, each under its reference."""
    old = (path for path in home.glob("??/*") if _changed_at(path) < before)
    while batch := {f"{home.name}/{path.name}": path for path in islice(old, _BATCH)}:
        yield batch


def _remove(root: Path, path: Path, limit: float) -> bool:
    # An enqueue that names it again touches it under the same lock, and a touched one stays.
    with _locked(root):
        if _changed_at(path) >= limit:
            return False
        path.unlink(missing_ok=True)
    return True


def _changed_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return float("inf")


class _Asked(Exception):
    """Rolls the question back."""


def _knows(store: Store, home: Path) -> bool:
    """Whether a worker saw this store's jobs use this home before; asked in a transaction that is rolled back."""
    unknown = True
    try:
        with store.transaction() as connection:
            unknown = store.once_on(connection, _mark_of(home), _FOREVER)
            raise _Asked
    except _Asked:
        return not unknown


def _mark_of(home: Path) -> bytes:
    # No key of a user's holds U+001F.
    return once_digest(f"blobs\x1f{home.name}")


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Tells one content of a file from another; None when the file is gone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One at a time among all processes of this folder, and among the threads of each."""
    number = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


__all__: Sequence[str] = [
    "Blob",
    "BlobFolder",
    "Unstored",
    "home_of",
    "remove_unused",
    "removing_unused",
    "stowing",
]
