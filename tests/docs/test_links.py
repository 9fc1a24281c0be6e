"""Every relative link of README and docs leads to a file, and every page of docs can be reached from the README."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def targets(page: Path) -> set[Path]:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    return {(page.parent / link).resolve() for link in links if "://" not in link}


def test_every_relative_link_leads_to_a_file() -> None:
    broken = {page.name: link for page in PAGES for link in targets(page) if not link.exists()}

    assert broken == {}


def test_every_page_is_linked_from_the_readme() -> None:
    linked = targets(ROOT / "README.md")

    assert [page.name for page in PAGES[1:] if page.resolve() not in linked] == []
