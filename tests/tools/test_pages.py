"""What the docs have is what `make docs` would write; the diagrams are compared where their machines are tested."""

from __future__ import annotations

import pytest

from tools.__main__ import WRITERS
from tools.synthesis import ROOT


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"diagrams"}))
def test_a_generated_page_is_what_its_command_writes(name: str) -> None:
    pages = WRITERS[name]()
    assert pages
    assert [str(path.relative_to(ROOT)) for path, text in pages.items() if path.read_text("utf-8") != text] == []


def test_every_schema_of_the_docs_is_written() -> None:
    written = {path for name in ("schemas", "settings") for path in WRITERS[name]()}
    assert set((ROOT / "docs").rglob("*.schema.json")) == {path for path in written if path.suffix == ".json"}
