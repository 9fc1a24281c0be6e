"""What a user installs: three small dependencies, nothing heavy at import, and the statement files in the wheel."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from tests.house.tree import ROOT, SOURCE, files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~;\s]", requirement)[0] for requirement in requirements}


def test_the_core_needs_three_small_packages() -> None:
    assert names(PROJECT["dependencies"]) == {"msgspec", "click", "cronsim"}
    assert names(PROJECT["optional-dependencies"]["postgres"]) == {"psycopg[binary]"}


def test_the_development_environment_is_pinned() -> None:
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "scripts/constraints.txt").read_text(), re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    wanted = {name for extra in extras.values() for name in names(extra)} | names(PROJECT["dependencies"])

    bare = {name.partition("[")[0].lower().replace("_", "-") for name in wanted} - {"duly"}

    assert bare <= {name.lower().replace("_", "-") for name in pinned}


def test_importing_duly_loads_no_extra_and_no_driver() -> None:
    heavy = ["psycopg", "psycopg_pool", "rich", "PIL", "click", "multiprocessing"]
    code = f"import sys, duly; print([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True)

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_wheel_carries_every_file_of_the_package(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )

    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())

    assert "duly/py.typed" in held
    assert {str(path.relative_to(SOURCE.parent)) for path in files(SOURCE)} <= held
    assert not [name for name in held if name.startswith(("tests/", "scripts/"))]
