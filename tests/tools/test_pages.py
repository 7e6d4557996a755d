"""What the docs have is what `make docs` would write; the diagrams are compared where their machines are tested."""

from __future__ import annotations

import pytest

from image_build.request import ImageRequest
from job_requests.request import JobRequest
from tools import requests
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


def test_what_is_written_by_hand_about_fields_is_about_fields_that_there_are() -> None:
    job = set(JobRequest.model_fields)
    image = {field.alias or name for name, field in ImageRequest.model_fields.items()}
    assert requests.MORE.keys() - job == set()
    assert requests.NEEDED.keys() - job - image == set()


def test_the_page_of_requests_has_every_field_of_a_job_with_a_link_to_its_refusals() -> None:
    page = requests.page()
    assert [name for name in JobRequest.model_fields if f"[`{name}`](refusals.md#{name})" not in page] == []
