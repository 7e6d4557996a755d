"""What tests of the module share: the files that it leaves, and the processes of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.trainyard_trainer import Run


def files(root: Path) -> set[str]:
    return {str(one.relative_to(root)) for one in root.rglob("*") if one.is_file()}


def processes(root: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> list[Run]:
    made = []
    for rank in range(count):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        made.append(Run(root / "checkpoints", root / "progress.json"))
    return made
