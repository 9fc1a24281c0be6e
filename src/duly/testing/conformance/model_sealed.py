"""The model's encrypted payloads, whose keys change."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from duly.core.envelope import is_sealed
from duly.core.job import NewJob
from duly.stores.sealed import Part, Resealed, SealedPage, SealedRow

from .model import Entry, Model


class ModelSealed:
    """See duly.stores.sealed.SealedStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def page(self, part: Part, after: tuple[int, str] = (0, ""), most: int = 1000) -> SealedPage:
        with self._model.tables.lock:
            rows = [row for row in sorted(self._rows(part), key=_place) if _place(row) > after][:most]
            found = tuple(row for row in rows if is_sealed(row.data))
            return SealedPage(found, _place(rows[-1]) if len(rows) == most else None)

    def _rows(self, part: Part) -> Iterator[SealedRow]:
        for entry in self._model.tables.entries.values():
            new = entry.new
            if part == "arguments":
                yield SealedRow(entry.id, "", new.queue, new.task, new.tenant, new.args)
            elif part == "results" and entry.result is not None:
                yield SealedRow(entry.id, "", new.queue, new.task, new.tenant, entry.result)
            elif part == "steps":
                for name, value in entry.steps.items():
                    yield SealedRow(entry.id, name, "", "", "", value)

    def replace(self, part: Part, rows: Sequence[Resealed]) -> int:
        with self._model.tables.lock:
            return sum(self._replace(part, row) for row in rows)

    def _replace(self, part: Part, row: Resealed) -> bool:
        entry = self._model.tables.entries.get(row.id)
        if entry is None:
            return False
        if part == "arguments" and entry.new.args == row.old:
            entry.new = replace(entry.new, args=row.new)
        elif part == "results" and entry.result == row.old:
            entry.result = row.new
        elif part == "steps" and entry.steps.get(row.name) == row.old:
            entry.steps[row.name] = row.new
        else:
            return False
        return True

    def elsewhere(self, key: str) -> dict[str, int]:
        word = f"1.{key}.".encode()
        tables = self._model.tables
        with tables.lock:
            follow_ups = sum(
                word in one.args for entry in tables.entries.values() for one in _follow_ups(entry)
            )
            jobs = [record.schedule.job for record in tables.schedules.values()]
            kept = [one.answer for one in tables.kept.values()]
            return {
                "follow-ups": follow_ups,
                "schedules": sum(job is not None and word in job.args for job in jobs),
                "kept answers": sum(one is not None and word in (one.result or b"") for one in kept),
            }


def _place(row: SealedRow) -> tuple[int, str]:
    return row.id, row.name


def _follow_ups(entry: Entry) -> Iterator[NewJob]:
    yield from entry.new.then
    yield from entry.new.on_dead
