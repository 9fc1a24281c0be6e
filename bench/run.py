"""`make bench`: duly beside pgqueuer and huey in one run, runs interleaved, medians and ratios printed as one table.

Knows how to install the two peers into venvs of their own and to start the harness's PostgreSQL; the measuring is the
harness's. `--once` is one short run of duly's own rows, to see that the bench still works.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("PEERS", "/tmp/peers"))
ROWS = {
    "duly postgres": (None, HERE / "peer_duly.py", "postgres"),
    "pgqueuer": ("pgqueuer", "peer_pgqueuer.py", ""),
    "duly sqlite": (None, HERE / "peer_duly.py", "sqlite"),
    "huey sqlite": ("huey", "peer_huey.py", "sqlite"),
}
PACKAGES = {"pgqueuer": ["pgqueuer", "asyncpg", "psycopg[binary]", "uvloop"], "huey": ["huey", "redis"]}
RATIOS = [
    ("w3", "duly postgres", "pgqueuer", 1.5),
    ("w1", "duly postgres", "pgqueuer", 1.0),
    ("w3", "duly sqlite", "huey sqlite", 5.0),
]


def install(name: str) -> Path:
    """The Python of a peer's own venv, made on first use."""
    python = PEERS / "venv" / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES[name]], check=True)
    return python


def measure(row: str, workload: str, harness: Path, extra: list[str]) -> dict[str, object]:
    """One run of one workload of one row, by the harness."""
    venv, script, variant = ROWS[row]
    python = Path(sys.executable) if venv is None else install(venv)
    command = [str(python), str(script), "--only", workload, "--runs", "1", *extra]
    if variant:
        command += ["--variant", variant]
    environment = dict(os.environ, HARNESS=str(harness), BENCH_VARIANT=variant)
    done = subprocess.run(command, cwd=harness, env=environment, capture_output=True, text=True, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines or "error" in lines[-1]:
        raise SystemExit(f"{row} {workload} failed:\n{done.stdout}\n{done.stderr}")
    return dict(lines[-1])


def main() -> int:
    """0 when every ratio is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--harness", type=Path, default=HERE.parent.parent / "shared" / "bench")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workloads", default="w1,w2,w3,w4")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    if not (options.harness / "common.py").exists():
        print(
            f"The peer harness is not at {options.harness}: name its folder with --harness.", file=sys.stderr
        )
        return 0 if options.once else 2
    rows = options.rows.split(",")
    extra: list[str] = []
    if options.once:
        rows, options.runs = ["duly postgres", "duly sqlite"], 1
        extra = [
            "--n-one",
            "200",
            "--n-bulk",
            "2000",
            "--n-drain",
            "2000",
            "--n-lat",
            "20",
            "--quiet",
            "99",
            "--wait-quiet",
            "0",
        ]
    if options.once and os.geteuid() != 0:
        print("The harness starts PostgreSQL as root only: its row is left out.", file=sys.stderr)
        rows = ["duly sqlite"]
    if not any(row in rows for row in ("duly postgres", "pgqueuer")):
        return report(rows, options, extra)
    servers = harness_servers(options.harness)
    servers("start")
    try:
        return report(rows, options, extra)
    finally:
        servers("stop")


def harness_servers(harness: Path) -> Callable[[str], object]:
    """Starts or stops the harness's PostgreSQL."""
    return lambda what: subprocess.run(
        ["bash", str(harness / "servers.sh"), what, "pg"],
        env=dict(os.environ, PEERS=str(PEERS)),
        check=True,
        stdout=subprocess.DEVNULL,
    )


def report(rows: list[str], options: argparse.Namespace, extra: list[str]) -> int:
    """Interleave the rows run by run, print the table and the ratios."""
    workloads = options.workloads.split(",")
    values: dict[tuple[str, str], list[float]] = {}
    tails: dict[str, list[str]] = {}
    for turn in range(options.runs):
        for workload in workloads:
            for row in rows:
                if workload == "w2" and row == "huey sqlite":
                    continue
                result = measure(row, workload, options.harness, extra)
                values.setdefault((row, workload), []).append(float(str(result["median"])))
                if workload == "w4":
                    tails.setdefault(row, []).append(f"{result['p95']}/{result['p99']}")
                if workload == "w3" and result.get("distinct") != result.get("ran"):
                    print(
                        f"# {row}: {result.get('ran')} runs of {result.get('distinct')} jobs", file=sys.stderr
                    )
                print(
                    f"# run {turn + 1} {row} {workload}: {result['median']:.5g}", file=sys.stderr, flush=True
                )
    print("| row | W1 one/s | W2 bulk/s | W3 drain/s | W4 p50 ms (p95/p99 a run) |\n|---|---|---|---|---|")
    for row in rows:
        cells = [
            f"{statistics.median(values[row, w]):,.0f}" if (row, w) in values else "-"
            for w in ("w1", "w2", "w3")
        ]
        late = (
            f"{statistics.median(values[row, 'w4']):.1f} ({', '.join(tails[row])})" if row in tails else "-"
        )
        print(f"| {row} | {' | '.join(cells)} | {late} |")
    return ratios(values)


def ratios(values: dict[tuple[str, str], list[float]]) -> int:
    """Print each ratio that the rows allow beside its target; 1 when one is missed."""
    missed = 0
    for workload, own, peer, target in RATIOS:
        if (own, workload) in values and (peer, workload) in values:
            ratio = statistics.median(values[own, workload]) / statistics.median(values[peer, workload])
            missed += ratio < target
            print(f"{workload}: {own} / {peer} = {ratio:.2f} (target {target})")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
