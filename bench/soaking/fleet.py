"""The processes of the soak: producers, and one `duly worker` with all its telemetry on, whose log is read."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO

from bench.flatness.server import children_of, cpu_of, resident


class Worker:
    """`duly worker` with debug events as JSON lines: one for each attempt. The graver ones are kept."""

    def __init__(self, url: str, records: Path, keep: str, processes: int) -> None:
        command = [sys.executable, "-m", "duly.cli.main", "worker", "bench.soaking.tasks:jobs"]
        self._process = subprocess.Popen(
            [*command, "--processes", str(processes)],
            env=dict(
                os.environ,
                SOAK_URL=url,
                SOAK_KEEP=keep,
                SOAK_RECORDS=str(records),
                DULY_LOG="json",
                DULY_LOG_LEVEL="debug",
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.events = 0
        self.grave: deque[str] = deque(maxlen=20)
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident(self) -> list[float]:
        """MB of the processes that run jobs; the supervisor's last."""
        found = []
        for pid in [*children_of(self.pid), self.pid]:
            # One that is just being replaced may be gone.
            with suppress(OSError):
                found.append(resident(pid))
        return found

    @property
    def cpu(self) -> float:
        """Seconds that all its processes have used."""
        return cpu_of(self.pid, children=True) + sum(cpu_of(pid) for pid in children_of(self.pid))

    def check(self) -> None:
        if self._process.poll() is not None:
            raise SystemExit(f"the worker ended with {self._process.returncode}: {list(self.grave)}")

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)

    def _read(self, log: IO[bytes]) -> None:
        for line in log:
            self.events += 1
            # Most are one of an attempt that ended; only the rare ones are worth decoding.
            if b'"level":"debug"' not in line and b'"level":"info"' not in line:
                self.grave.append(_text(line))


def _text(line: bytes) -> str:
    try:
        told = json.loads(line)
        return f"{told['level']}: {told['text']}"
    except (ValueError, KeyError, TypeError):
        return line.decode(errors="replace").strip()


class Producers:
    """So many processes that share the rate."""

    def __init__(self, url: str, rate: float, seconds: float, many: int, began: float) -> None:
        self._processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "bench.soaking.producer"),
                    *("--rate", str(rate / many), "--seconds", str(seconds), "--began", str(began)),
                    *("--place", str(place), "--of", str(many)),
                ],
                env=dict(os.environ, SOAK_URL=url),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
            for place in range(many)
        ]

    @property
    def running(self) -> bool:
        return any(process.poll() is None for process in self._processes)

    def told(self) -> list[dict[str, float]]:
        """What each says of itself, in the order of their places; once they have ended."""
        found = []
        for process in self._processes:
            out, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"a producer ended with {process.returncode}: {out}")
            found.append(dict(json.loads(out.splitlines()[-1])))
        return found

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
