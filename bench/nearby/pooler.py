"""PgBouncer in transaction mode before a server, in a folder of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import MissingService, PostgresServer

SETTINGS = """
[databases]
* = user=postgres host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
unix_socket_dir =
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""
START = 30.0


@contextmanager
def pooler(server: PostgresServer) -> Iterator[int]:
    """Its port. MissingService when it is not installed."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        raise MissingService("pgbouncer is not installed; run: apt-get install pgbouncer")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(
        prefix="duly-pgbouncer-", dir="/tmp", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        # It refuses to run as root, and must reach its folder as somebody else.
        folder.chmod(0o777)
        database = SETTINGS.format(server=server.port, port=port, folder=folder)
        (folder / "pgbouncer.ini").write_text(database)
        account = ["-u", "nobody"] if os.geteuid() == 0 else []
        process = subprocess.Popen([program, "-q", *account, str(folder / "pgbouncer.ini")])
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"pgbouncer does not listen (exit code {process.poll()})")
        time.sleep(0.05)
