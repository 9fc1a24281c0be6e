"""The commands of this tree: each explains itself, CI runs one of them, and CONTRIBUTING names only real ones."""

import re
import subprocess

import pytest

from tests.house.tree import ROOT

PROMISED = ("demo", "test", "check", "ci", "drill", "bench", "mutants", "scenarios", "dev")
INTERNAL = {"chromium", "photos", "services", "wrk"}  # prerequisites that nobody types


def targets() -> dict[str, str]:
    """{target: its comment} of the Makefile, files left out."""
    found = re.findall(
        r"^([a-z][a-z-]*):(?:[^#\n]*## )?([^\n]*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    return {name: comment for name, comment in found if name not in INTERNAL}


def make(*arguments: str) -> str:
    # Without MAKEFLAGS: under `make -n test` the inner make must not inherit the flag.
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_lists_every_target_with_what_it_does() -> None:
    listed = dict(line.strip().split(maxsplit=1) for line in make("help").splitlines())

    assert listed == targets()
    assert set(PROMISED) <= set(listed)


def test_make_alone_shows_the_help() -> None:
    assert make() == make("help")


def test_every_target_is_declared_phony() -> None:
    declared = re.findall(r"^\.PHONY:((?:[^\n]*\\\n)*[^\n]*)", (ROOT / "Makefile").read_text(), re.MULTILINE)

    phony = {name for names in declared for name in names.replace("\\\n", " ").split()}

    assert phony == set(targets()) | INTERNAL


@pytest.mark.parametrize(
    "part",
    [
        "check",
        "test",
        "test-browser",
        "typing",
        "mutants",
        "drill-short",
        "bench-short",
        "soak-short",
        "demo",
    ],
)
def test_ci_does_all_that_a_change_must_pass(part: str) -> None:
    wanted = [line for line in make("-n", part).splitlines() if line.startswith(".venv/bin/")]

    done = make("-n", "ci").splitlines()
    for beside in [line.split()[1:] for line in done if line.startswith("scripts/side_by_side.sh ")]:
        for target in beside:
            done += make("-n", target).splitlines()

    assert wanted
    assert set(wanted) <= set(done)


def test_the_ci_script_runs_make_ci_and_nothing_else() -> None:
    lines = [
        line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")
    ]

    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make ci"]


def test_contributing_names_only_commands_and_files_that_exist() -> None:
    code = re.findall(r"`([^`\n]+)`", (ROOT / "CONTRIBUTING.md").read_text())
    commands = [words.split()[1] for words in code if words.startswith("make ")]
    paths = [words for words in code if "/" in words and " " not in words]
    files = [words for words in code if re.fullmatch(r"[\w-]+\.(md|toml|txt)|Makefile", words)]

    assert commands
    assert not [command for command in commands if command not in targets()]
    assert not [path for path in paths + files if not (ROOT / path).exists()]


def test_what_runs_side_by_side_fails_when_one_of_it_does() -> None:
    done = subprocess.run(
        [ROOT / "scripts/side_by_side.sh", "help", "no-such-target"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "Lists every target" in done.stdout
    assert done.stderr == "failed: no-such-target\n"
