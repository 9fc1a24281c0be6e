"""Writes the table of metrics into docs/observability.md; `--check` only compares."""

import sys
from pathlib import Path

from duly.telemetry.metrics import STORE, WORKER, Metric

PAGE = Path(__file__).parents[1] / "docs" / "observability.md"
BEGIN, END = "<!-- metrics: made by scripts/metrics_table.py -->", "<!-- end of metrics -->"


def row(metric: Metric) -> str:
    (name, *_) = sorted(metric.samples, key=len) if metric.kind != "histogram" else [metric.name]
    labels = ", ".join(metric.labels) or "-"
    return f"| `{name}` | {metric.kind} | {labels} | {metric.help} |"


def table() -> str:
    head = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    return "\n".join([BEGIN, *head, *map(row, (*WORKER, *STORE)), END])


def main() -> int:
    text = PAGE.read_text()
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    made = text[:begin] + table() + text[end:]
    if "--check" in sys.argv:
        if made != text:
            print("docs/observability.md is out of date: python scripts/metrics_table.py")
        return int(made != text)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
