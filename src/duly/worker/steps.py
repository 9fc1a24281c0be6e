"""Writing a finished step: tried until the store has answered, for as long as the attempt may wait.

A restart of the database must not have work repeated that is done. Knows no handler.
"""

import threading
from typing import Final

from duly.core.errors import UsageError
from duly.core.job import Token
from duly.stores.faults import DataFault, Transient
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt, Phase
from duly.worker.board import boottime
from duly.worker.messages import StepKept

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class StepWrite:
    """One step on its way. `once` may be repeated: the first value stays."""

    def __init__(self, store: Store, attempt: Attempt, name: str, value: bytes) -> None:
        self.pause = 0.0
        """Seconds to wait before the next try."""
        self._store = store
        self._attempt = attempt
        self._token = Token(attempt.desk.incarnation, attempt.job.id, attempt.job.run)
        self._name = name
        self._value = value
        # As it stands now: a handler's own lock on the file would else be waited for as long as the lease is renewed.
        self._until = min(attempt.deadline_at, attempt.desk.stop_at())

    def once(self, now: float) -> StepKept | None:
        """Try; None: the store did not answer, and there is time to try again."""
        try:
            return StepKept(self._store.steps.keep_step(self._token, self._name, self._value))
        except DataFault as fault:
            return StepKept(live=False, fault=str(fault), why="unfit")
        except UsageError as error:
            return StepKept(live=False, fault=str(error), why="inside")
        except Transient as fault:
            if self._must_end(now):
                return StepKept(live=False, fault=str(fault))
        except Exception as error:
            # A fault of ours or of a driver: the attempt fails for it, not the worker.
            return StepKept(live=False, fault=f"{type(error).__name__}: {error}")
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        return None

    def _must_end(self, now: float) -> bool:
        attempt = self._attempt
        return attempt.why is not None or attempt.phase is not Phase.running or now >= self._until


def keep_step(store: Store, attempt: Attempt, name: str, value: bytes) -> StepKept:
    """Write it, in the thread that waits for it."""
    write, never = StepWrite(store, attempt, name, value), threading.Event()
    while (kept := write.once(boottime())) is None:
        never.wait(write.pause)
    return kept
