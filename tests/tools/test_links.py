"""Every link of a page leads somewhere, every page that a sentence of the code names exists, and the index has every page."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from contract import errors
from tests.architecture.sources import EVERYTHING, ROOT

DOCS = ROOT / "docs"
NO_PAGES = {"build", "cdk.out", "node_modules", "out", ".venv"}
"""Folders that are made here."""
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w\.(?:md|json)\b")
FILE = re.compile(
    rf"(?<![\w/.-])(?:{'|'.join(place for place in EVERYTHING if '.' not in place)})/[\w./-]*\w\.(?:py|sh|toml)\b"
)
"""A file of ours as a page names it: from the root, without a wildcard."""
INVENTED = "docs" + "/x.md"
"""A name in the examples of a test (tests/rehearsal/test_assembly.py)."""
NEVER_SHOWN = {errors.CapacityPending, errors.CapacityAwaited, errors.RetriedExit, errors.StillRunning}
"""Errors that the machine answers itself, so that no execution ends with them."""


def files(folder: Path, *ends: str) -> list[Path]:
    found: list[Path] = []
    for path, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in NO_PAGES]
        found += [Path(path, name) for name in names if name.endswith(ends)]
    return found


PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *files(DOCS, ".md"),
        *(page for place in EVERYTHING if (ROOT / place).is_dir() for page in files(ROOT / place, ".md")),
    }
)
SOURCES = sorted(
    {
        *(page for page in PAGES if page.name != "CHANGELOG.md"),
        *(ROOT / name for name in ("Makefile", "pyproject.toml", "app.py")),
        *(
            file
            for place in EVERYTHING
            if (ROOT / place).is_dir()
            for file in files(ROOT / place, ".py", ".sh", ".json", ".toml")
        ),
    }
)


def slug(heading: str) -> str:
    """Returns the anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of all headings; the second of the same words has `-1` at its end."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.+)$", without_blocks(page.read_text()), re.MULTILINE):
        base = slug(heading)
        before = sum(one == base or re.fullmatch(rf"{re.escape(base)}-\d+", one) is not None for one in found)
        found.append(f"{base}-{before}" if before else base)
    return frozenset(found)


def without_blocks(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Links to files of the repository, and within the page."""
    return LINK.findall(without_blocks(page.read_text()))


def leads_nowhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return not target.exists() or bool(anchor and target.suffix == ".md" and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page) if leads_nowhere(page, link)] == []


def test_links_were_found() -> None:
    assert len(PAGES) > 60
    assert sum(len(links(page)) for page in PAGES) > 400


def test_a_heading_becomes_the_anchor_that_github_gives_it() -> None:
    assert slug("`max_hours`") == "max_hours"
    assert slug("The platform's own images") == "the-platforms-own-images"
    assert slug("10: An image is built once, and copied") == "10-an-image-is-built-once-and-copied"


def test_every_page_that_a_sentence_names_exists() -> None:
    named = {(str(file.relative_to(ROOT)), name) for file in SOURCES for name in NAMED.findall(file.read_text("utf-8"))}
    assert len(named) > 50
    assert sorted((file, name) for file, name in named if name != INVENTED and not (ROOT / name).exists()) == []


def test_every_source_file_that_a_page_names_exists() -> None:
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    named = {(str(page.relative_to(ROOT)), name) for page in pages for name in FILE.findall(page.read_text())}
    assert len(named) > 30
    assert sorted((page, name) for page, name in named if not (ROOT / name).exists()) == []


def test_the_index_has_every_page_of_the_docs() -> None:
    index, decisions = DOCS / "README.md", DOCS / "decisions" / "README.md"
    listed = {(page.parent / link.partition("#")[0]).resolve() for page in (index, decisions) for link in links(page)}
    pages = {page for page in files(DOCS, ".md", ".schema.json") if page != index}
    assert sorted(str(page.relative_to(DOCS)) for page in pages - listed) == []


def test_every_decision_is_in_the_index_under_its_number() -> None:
    rows = re.findall(r"^\| (\d+) \| \[", (DOCS / "decisions" / "README.md").read_text(), re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 45


def test_troubleshooting_has_every_error_that_an_execution_ends_with() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    shown = {*errors.ALL, errors.BuildFailed, errors.GridFailed} - NEVER_SHOWN
    assert sorted(error.__name__ for error in shown if f"`{error.__name__}`" not in page) == []


def test_the_readme_is_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
