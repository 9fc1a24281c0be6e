"""Ask a real server whatever its OpenAPI document allows, and what it forbids: `make fuzz`, on SQLite and PostgreSQL.

schemathesis lives in an environment of its own: it brings versions of what the tests are pinned to. Exit 1 for an
answer of 500 or above, one that the document does not describe, or a wrong request that was accepted.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from duly import App  # noqa: E402
from duly.core.bearer import digest_of, make_text  # noqa: E402
from tests.services import PostgresServer  # noqa: E402

SCHEMATHESIS = "schemathesis==4.32.5"
# That a request fits its types does not mean that its task is known: such are refused with 422, as documented.
LEFT_OUT = "positive_data_acceptance"
APP = """
from duly import App

jobs = App()
mail = jobs.queue("mail", owner="growth@shop")
reports = jobs.queue("reports", max_depth=1000)


@jobs.task(queue=mail)
async def send_receipt(order_id: int, note: str = "") -> str:
    return note


@jobs.task(queue=reports)
async def report(day: str) -> None: ...
"""


def environment() -> Path:
    """Where schemathesis is; installed at the first use."""
    place = ROOT / "var" / "fuzz"
    program = place / "bin" / "schemathesis"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "--quiet", SCHEMATHESIS], check=True)
    return program


def fuzz(program: Path, name: str, url: str, examples: int, folder: Path) -> int:
    """How many cases were tried; exits when one of them shows a fault."""
    (folder / "fuzzed.py").write_text(APP)
    settings = {**os.environ, "DULY_URL": url, "PYTHONPATH": str(folder)}
    token = prepare(url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "duly.cli.main",
        "serve",
        "fuzzed",
        "--port",
        str(port),
        "--rate",
        "none",
    ]
    log = (folder / f"{name}.log").open("w")
    server = subprocess.Popen(command, cwd=folder, env=settings, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/readyz")
        told = subprocess.run(
            [
                *(program, "run", f"{address}/openapi.json", "--checks", "all", "--exclude-checks", LEFT_OUT),
                *("-H", f"Authorization: Bearer {token}", "--max-examples", str(examples)),
                *("--request-timeout", "30"),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.terminate()
        server.wait(60)
    broken = (folder / f"{name}.log").read_text()
    found = re.search(r"(\d+) generated", told.stdout)
    if told.returncode or found is None or "Traceback" in broken:
        raise SystemExit(f"{name}:\n{told.stdout[-20_000:]}\n{told.stderr}\n{broken[-5_000:]}")
    return int(found[1])


def prepare(url: str) -> str:
    """Tables, a token that may everything, and a few jobs."""
    app = App(url)
    app.store.schema.migrate()
    token = make_text(os.urandom(32))
    app.store.tokens.put("fuzz", digest_of(token), ["admin"], None, "fuzz", "make fuzz")

    @app.task
    async def filler(order_id: int) -> None: ...

    app.enqueue_many(filler.draft(number) for number in range(20))
    app.close()
    return token


def wait_for(address: str) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{address} did not answer within a minute")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=60, help="of each operation")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), help="only this one")
    given = parser.parse_args()
    program = environment()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if given.store != "postgresql":
            cases = fuzz(program, "sqlite", f"sqlite:///{folder}/fuzz.db", given.examples, folder)
            print(f"sqlite: {cases:,} cases, no fault", flush=True)
        if given.store != "sqlite":
            with PostgresServer(18) as server, server.database() as url:
                cases = fuzz(program, "postgresql", url, given.examples, folder)
                print(f"postgresql: {cases:,} cases, no fault", flush=True)


if __name__ == "__main__":
    main()
