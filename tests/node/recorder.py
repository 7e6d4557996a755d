"""A workspace of a node that starts nothing, and keeps what it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from agent.training import RunningTraining
from agent.workspace import Folders


class Recorder:
    """`running` is what it returns as the training, which writes `line` at once; empty for nothing."""

    folders = Folders(checkpoints="/c", artifacts="/a", progress_file="/p", role="/r", launcher="/opt/launcher")

    def __init__(self, running: object = None, *, line: str = "") -> None:
        self.words: list[str] = []
        self.variables: dict[str, str] = {}
        self._running, self._line = running, line

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        arguments: Sequence[str] = (),
    ) -> RunningTraining:
        if self._line:
            on_line(self._line)
        self.words, self.variables = [*command, *arguments], dict(environment)
        return cast(RunningTraining, self._running)
