"""A file system that cannot be mounted, in the whole agent: the job fails before its command."""

from __future__ import annotations

import re

import pytest

from tests.builders import MOUNTED
from tests.node.world import Site

CORPUS, _, _ = MOUNTED


def test_a_job_whose_file_system_cannot_be_mounted_fails_before_its_command(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nothing-here")
    site.offer("print('trained')", mounted=(CORPUS,))
    ending = site.run()
    assert (ending.error, ending.code) == ("TrainingFailed", 1)
    assert re.search("rank 0: fsx:corpus .* the machine's image has no mount.lustre", ending.reason)
    assert "trained" not in site.lines
