"""One virtual environment per peer, made on first use and kept while its packages are the same.

A peer that cannot be installed is a sentence, not an error.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.peers.rows import Row

PLACE = Path(os.environ.get("PEERS_HOME", "var/peers")).absolute()


class Missing(Exception):
    """A peer that cannot be measured here, and why."""


def python_of(row: Row) -> Path:
    """The interpreter that the row runs in. Missing when it cannot be had."""
    if not row.packages:
        return Path(sys.executable)
    folder = PLACE / row.adapter
    interpreter, made_of = folder / "bin/python", folder / "packages.txt"
    wanted = "\n".join(row.packages)
    if made_of.exists() and made_of.read_text() == wanted:
        return interpreter
    base = _interpreter(row.python)
    print(f"# installing {row.adapter}: {', '.join(row.packages)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _run([base, "-m", "venv", str(folder)])
    _run([str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", *row.packages])
    made_of.write_text(wanted)
    return interpreter


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing((done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1])


def _interpreter(least: tuple[int, int]) -> str:
    """A Python of at least that version: our own base where it will do, else the newest that is found."""
    if sys.version_info >= least:
        return getattr(sys, "_base_executable", sys.executable)
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {least})"
    for candidate in _candidates():
        if subprocess.run([candidate, "-c", check], capture_output=True).returncode == 0:
            return candidate
    raise Missing(f"needs Python {least[0]}.{least[1]} or newer, and there is none: name one in PEERS_PYTHON")


def _candidates() -> Iterator[str]:
    if named := os.environ.get("PEERS_PYTHON"):
        yield named
    for minor in (14, 13, 12):
        if found := shutil.which(f"python3.{minor}"):
            yield found
    for found_path in sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"), reverse=True):
        yield str(found_path)
