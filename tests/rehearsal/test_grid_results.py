"""What a rehearsed grid leaves for a person to look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.grid import GridPrefix
from rehearsal.grid_run import keep
from tests.rehearsal.grids import WELL

PREFIX = GridPrefix("g")


class Finished:
    """A grid whose bucket holds these objects."""

    prefix = PREFIX

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        logs = {"collect": ["a line"]}
        self.yard: Any = SimpleNamespace(
            aws=SimpleNamespace(recorder=SimpleNamespace(calls=[]), workers=SimpleNamespace(logs=lambda: logs))
        )

    def read(self, key: str) -> bytes | None:
        return self.objects.get(key)


@pytest.mark.parametrize("body", [b'{"line": 1}\n', b""], ids=["a line failed", "none failed"])
def test_the_manifest_of_what_failed_is_kept(tmp_path: Path, body: bytes) -> None:
    job: Any = Finished({PREFIX.failed: body, PREFIX.results_csv: b"csv"})
    keep(job, WELL, tmp_path, whole=False)
    assert (tmp_path / "failed.jsonl").read_bytes() == body
    assert (tmp_path / "results.csv").read_bytes() == b"csv"


def test_what_the_grid_did_not_write_is_not_made_up(tmp_path: Path) -> None:
    job: Any = Finished({})
    keep(job, replace(WELL, status="FAILED"), tmp_path, whole=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.jsonl", "collect.log", "summary.json"]
