"""docs/glossary.md has each of the project's own words once, in one sentence, and no word that nobody uses."""

from __future__ import annotations

import re

from tests.architecture.sources import PRODUCT, ROOT, python_files, source

GLOSSARY = ROOT / "docs" / "glossary.md"
TERMS = dict(re.findall(r"^\| ([^|]+?) \| (.+) \|$", GLOSSARY.read_text(), re.MULTILINE))
TERMS.pop("term")
MOST = 30
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != GLOSSARY)]
DOCUMENTS = ("jobs", "intents", "orders", "reports", "records", "commits", "grid", "search")
"""Modules of contract/ whose classes are documents that people find in S3."""
PLAIN = {
    "admission",
    "ami",
    "answer",
    "checkpoint",
    "code",
    "contents",
    "direction",
    "environment",
    "exit",
    "facts",
    "file",
    "folder",
    "keeper",
    "kind",
    "layout",
    "link",
    "manifest",
    "market",
    "missed",
    "outcome",
    "part",
    "phase",
    "plan",
    "planner",
    "prefix",
    "progress",
    "reaction",
    "scope",
    "search",
    "selection",
    "shape",
    "starter",
    "step",
    "trial",
}
"""Last words of such classes, and names of functions, that mean what they mean everywhere."""


def said() -> str:
    """All pages, and the docstrings of the product."""
    docstrings = [text for file in python_files(*PRODUCT) for text in source(file).docstrings]
    return "\n".join([*(page.read_text() for page in PAGES), *docstrings])


def uses(text: str, term: str) -> bool:
    words = r"[ _]".join(map(re.escape, term.split()))
    return re.search(rf"\b{words}(s|es)?\b", text, re.IGNORECASE) is not None


def documents() -> set[str]:
    """What the documents of the contract are called: the last word of each class."""
    names = [name for module in DOCUMENTS for name in source(ROOT / "contract" / f"{module}.py").classes]
    return {re.findall(r"[A-Z][a-z]+", name)[-1].lower() for name in names}


def functions() -> set[str]:
    """Functions that are called by one word of their own."""
    return {path.parent.name for path in (ROOT / "lambda").glob("*/handler.py") if "_" not in path.parent.name}


def test_the_glossary_is_short_and_in_order() -> None:
    assert 0 < len(TERMS) <= MOST
    assert list(TERMS) == sorted(TERMS, key=str.lower)


def test_each_term_has_one_sentence() -> None:
    assert [term for term, meaning in TERMS.items() if not meaning.endswith(".") or ". " in meaning] == []


def test_each_term_is_used() -> None:
    text = said()
    assert [term for term in TERMS if not uses(text, term)] == []


def test_no_document_and_no_function_that_pages_speak_of_is_missing() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    known = {term.lower() for term in TERMS}
    spoken = {word for word in (documents() | functions()) - PLAIN if uses(pages, word)}
    assert sorted(spoken - known) == []
