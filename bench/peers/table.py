"""The tables in Markdown, and the block of a page that they replace. Knows results, measures nothing."""

from collections.abc import Sequence

from bench.peers.results import TARGETS, Figure, Results, Verdict, judge
from bench.peers.rows import ROWS, SHARED, WORKLOADS

BEGIN, END = "<!-- begin: make bench-peers -->", "<!-- end: make bench-peers -->"
NAMES = {
    "one": "one enqueue per call",
    "bulk": "bulk enqueue",
    "drain": "drain, one process",
    "long": "drain of 60,000, one process",
    "two": "drain of 60,000, two processes",
    "latency": "enqueue to first line",
    "threads": "drain, sync handlers",
    "short": "drain, 1 ms handlers",
    "keys": "drain, typed, tagged, keyed",
    "everything": "drain, everything on",
    "late": "lateness of due jobs",
}
DISTURBED = 0.25


def targets(results: Results) -> str:
    """One line per target whose own row was measured: measured, ratio, target, met or missed."""
    lines = [
        "| workload | row | measured | compared with | ratio | target | |",
        "|---|---|--:|---|--:|--:|---|",
    ]
    measured = set(results.rows())
    verdicts = [judge(target, results) for target in TARGETS if target.measured.row in measured]
    lines += [_target_line(verdict) for verdict in verdicts]
    return "\n".join(lines) if len(lines) > 2 else ""


def _target_line(verdict: Verdict) -> str:
    target, measured = verdict.target, verdict.target.measured
    sign = "≤" if target.at_most else "≥"
    bound = (
        f"{sign} {number(target.bound)}" if target.compared else f"{sign} {_shown(measured, target.bound)}"
    )
    compared = f"{verdict.against} {_shown(measured, verdict.base)}" if verdict.against else ""
    ratio = "" if verdict.ratio is None else f"{verdict.ratio:.2f}"
    word = {None: "not measured", True: "met", False: "**missed**"}[verdict.met]
    name = NAMES[measured.workload] + _percentile(measured)
    cells = (name, measured.row, _shown(measured, verdict.value), compared, ratio, bound, word)
    return f"| {' | '.join(cells)} |"


def _percentile(measured: Figure) -> str:
    if not WORKLOADS[measured.workload].lower_is_better:
        return ""
    return ", p50" if measured.figure == "value" else f", {measured.figure}"


def _shown(measured: Figure, value: float | None) -> str:
    """With its unit."""
    if value is None:
        return "-"
    unit = WORKLOADS[measured.workload].unit
    return f"{number(value)} ms" if unit == "ms" else f"{number(value)}{unit}"


def number(value: float) -> str:
    """1,234 or 12.3 or 1.23."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def peers(results: Results) -> str:
    """One line per row: the workloads that all share, and who was busy in the drain."""
    lines = [
        (
            "| row | version | one a call, /s | bulk, /s | drain, /s | latency p50 / p95 / p99, ms "
            "| drain, worker and server: cores | µs a job | runs |"
        ),
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in results.rows():
        first = results.first(row)
        cells = [
            row + ("" if first.acknowledges else " (no ack)"),
            first.version,
            *(_with_spread(results, row, workload) for workload in SHARED[:3]),
            _percentiles(results, row, "latency"),
            _both(results, row, "client_cores", "server_cores", "{:.2f}"),
            _both(results, row, "client_us", "server_us", "{:.0f}"),
            str(max(len(results.values(row, workload)) for workload in WORKLOADS)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_spread(results: Results, row: str, workload: str) -> str:
    values = results.values(row, workload)
    if not values:
        return "-" if workload in ROWS[row].workloads else "none"
    middle = number(results.median(row, workload) or 0)
    return middle if len(values) == 1 else f"{middle} ({number(min(values))}-{number(max(values))})"


def _both(results: Results, row: str, of_client: str, of_server: str, form: str) -> str:
    found = [results.median(row, "drain", figure) for figure in (of_client, of_server)]
    return ", ".join("-" if value is None else form.format(value) for value in found)


def _percentiles(results: Results, row: str, workload: str) -> str:
    found = [results.median(row, workload, figure) for figure in ("value", "p95", "p99")]
    return " / ".join("-" if value is None else number(value) for value in found)


def own(results: Results) -> str:
    """duly's further workloads, a line each, a column per row; beside each what was measured without a queue."""
    rows = [row for row in results.rows() if ROWS[row].adapter in {"limit", "duly"}]
    if not any(ROWS[row].adapter == "duly" for row in rows):
        return ""
    lines = [f"| workload | {' | '.join(rows)} |", f"|---|{'--:|' * len(rows)}"]
    for workload in (workload for workload in WORKLOADS if workload not in SHARED):
        if workload == "late":
            cells = [_percentiles(results, row, workload) for row in rows]
            lines.append(f"| {NAMES[workload]}, p50 / p95 / p99, ms | {' | '.join(cells)} |")
        else:
            cells = [_with_spread(results, row, workload) for row in rows]
            lines.append(f"| {NAMES[workload]}, /s | {' | '.join(cells)} |")
    return "\n".join(lines)


def notes(results: Results) -> str:
    """How each row was set up, what failed, and jobs that ran twice or were left."""
    lines = [f"- {row}: {results.first(row).settings}" for row in results.rows()]
    for row in results.rows():
        for figure, words in (("again", "ran twice"), ("left", "were left")):
            jobs = sum(sum(results.values(row, workload, figure)) for workload in WORKLOADS)
            if jobs:
                lines.append(f"- {row}: {jobs:,.0f} jobs {words}")
    lines += [
        f"- {failure.row}, {NAMES[failure.workload]}: FAILED: ...{failure.error[-200:]}"
        for failure in results.failed()
    ]
    return "\n".join(lines)


def noise(results: Results) -> str:
    """How busy the others kept the machine."""
    cores = sorted(result.others for result in results.all)
    if not cores:
        return "nothing was measured"
    disturbed = sum(core > DISTURBED for core in cores)
    return (
        f"others used {cores[len(cores) // 2]:.2f} cores during the median run, {cores[-1]:.2f} at most; "
        f"{disturbed} of {len(cores)} runs had more than {DISTURBED}"
    )


def report(results: Results, header: Sequence[str]) -> str:
    """All of it."""
    parts = ["\n".join(f"- {line}" for line in (*header, f"noise: {noise(results)}")), targets(results)]
    parts += [peers(results), own(results), notes(results)]
    return "\n\n".join(part for part in parts if part)


def replaced(page: str, block: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with the block between its two marks. ValueError when it has no such place."""
    first, last = marks
    head, begin, rest = page.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page has no place for it, which is between {first} and {last}")
    return f"{head}{first}\n\n{block}\n\n{last}{tail}"
