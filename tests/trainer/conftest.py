"""A trainer's surroundings: none of Trainyard's."""

from __future__ import annotations

import pytest

from contract import training


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (training.CHECKPOINT_DIR, training.PROGRESS_FILE, "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
