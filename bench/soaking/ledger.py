"""What ran, read from the records of the workers as they write them: latencies by minute, and runs by job.

Knows the rule by which jobs are numbered, and no store.
"""

from array import array
from dataclasses import dataclass, field
from pathlib import Path

from bench.soaking.tasks import RECORD, Kind, Run, kind_of

MINUTE = 60.0


@dataclass(slots=True)
class Account:
    """Every job that was enqueued, by what became of it."""

    created: int = 0
    repeats: int = 0
    """Requests that must have been answered as duplicates."""
    lost: list[int] = field(default_factory=list)
    """Enqueued, and never run to its end."""
    again: int = 0
    """Run to their end more than once: at least once is the promise, and it costs the reader a look."""
    refused_wrongly: int = 0
    """Flaky jobs that did not fail exactly once."""
    strangers: int = 0
    """Ran though they were never enqueued, or were a repeated request."""


class Ledger:
    """Reads what is new at each `read`."""

    def __init__(self, folder: Path, began: float) -> None:
        self._folder = folder
        self._began = began
        self._offsets: dict[Path, int] = {}
        self._runs = bytearray()
        self._refused = bytearray()
        self.minutes: list[array[float]] = []
        """Seconds from when a job was due to be enqueued to its first run, by the minute in which that began."""
        self.done = 0

    def read(self) -> None:
        for path in self._folder.glob("*.records"):
            offset = self._offsets.get(path, 0)
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            whole = len(data) - len(data) % RECORD.size
            self._offsets[path] = offset + whole
            for number, run, due, began in RECORD.iter_unpack(data[:whole]):
                self._note(number, run, due, began)

    def _note(self, number: int, run: int, due: float, began: float) -> None:
        if number >= len(self._runs):
            more = bytes(max(number + 1, 2 * len(self._runs)) - len(self._runs))
            self._runs += more
            self._refused += more
        first = not self._runs[number] and not self._refused[number]
        counts = self._refused if run == Run.refused else self._runs
        counts[number] = min(255, counts[number] + 1)
        self.done += run == Run.done
        if first:
            minute = max(0, int((began - self._began) / MINUTE))
            while len(self.minutes) <= minute:
                self.minutes.append(array("f"))
            self.minutes[minute].append(began - due)

    def account(self, sent: list[int]) -> Account:
        """`sent` is how many each producer has enqueued, in the order of their places."""
        found = Account()
        expected = bytearray(len(self._runs))
        for place, many in enumerate(sent):
            for k in range(many):
                kind = kind_of(k)
                if kind is Kind.repeat:
                    found.repeats += 1
                    continue
                number = k * len(sent) + place
                found.created += 1
                if number >= len(self._runs) or not self._runs[number]:
                    found.lost.append(number)
                    continue
                expected[number] = 1
                found.again += self._runs[number] > 1
                found.refused_wrongly += self._refused[number] != (kind is Kind.flaky)
        found.strangers = sum(1 for number, runs in enumerate(self._runs) if runs and not expected[number])
        return found


def quantile(values: "array[float]", share: float) -> float:
    """In milliseconds; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0
