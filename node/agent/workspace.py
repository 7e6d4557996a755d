"""What a training runs in: the machine's own image with the job's Python, or the job's container."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent import environments, missing_modules, requirements
from agent.environments import Installed
from agent.requirements import Python, Tool
from agent.store import Store
from agent.training import ChildProcess, RunningTraining
from contract.jobs import Job


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Where the training finds the folders of its job."""

    checkpoints: str
    artifacts: str
    progress_file: str
    role: str
    """Folder of the credentials of its `job_role`."""
    launcher: str
    """Folder of the scripts of its `launcher`."""

    def shown(self, work: Path) -> dict[str, str]:
        """Returns the folders of the job's own files, below `work`, by every path under which the training may know them."""
        found = {}
        for path, there in ((self.checkpoints, work / "checkpoints"), (self.artifacts, work / "artifacts")):
            found |= {path: str(there), os.path.realpath(path): str(there)}
        return found


class Workspace(Protocol):
    """What a training runs in. Created once; its methods are called in this order."""

    @property
    def folders(self) -> Folders: ...

    @property
    def progress_file(self) -> Path:
        """The same file as the training's, as the agent sees it."""

    @property
    def python(self) -> Path | None:
        """The training's Python, once it is prepared, where the agent can run it."""

    def begin(self) -> None:
        """Starts what takes long and needs nothing else; returns at once."""

    def prepare(self, code: Path) -> dict[str, str]:
        """Waits until the training can begin, whose code lies there. Returns the environment beneath the training's own."""

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        arguments: Sequence[str] = (),
    ) -> RunningTraining:
        """Runs the training. `arguments` are those of the command, or of the image's entry point where there is no command."""

    def explain(self, status: int, tail: Sequence[str]) -> str:
        """Returns which module the training lacked, by its exit code and last lines, as the end of a sentence; empty for none."""

    def close(self) -> None:
        """Leaves nothing that runs. May be called at any time."""


class MachineWorkspace:
    """The machine's own image, and on top of its Python what the code's requirements.txt names."""

    def __init__(
        self,
        job: Job,
        work: Path,
        variables: Mapping[str, str],
        *,
        attempt: int,
        rank: int,
        bucket: Store,
        tool: Tool,
        retry: Callable[[Callable[[], bool]], bool],
        note: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._job, self._work, self._variables, self._bucket = job, work, variables, bucket
        self._attempt, self._rank, self._tool = attempt, rank, tool
        self._retry, self._note, self._now = retry, note, now
        self.progress_file = work / "progress.json"
        self.folders = Folders(
            checkpoints=str(work / "checkpoints"),
            artifacts=str(work / "artifacts"),
            progress_file=str(self.progress_file),
            role=str(work / "role"),
            launcher=str(work / "launcher"),
        )
        self._python: Python | None = None

    @property
    def python(self) -> Path | None:
        return self._python.program if self._python else None

    def begin(self) -> None:
        return

    def prepare(self, code: Path) -> dict[str, str]:
        self._python = python = self._installed(code)
        python.take_over_programs()
        return python.variables(self._variables)

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        arguments: Sequence[str] = (),
    ) -> RunningTraining:
        assert self._python is not None, "prepare comes first"
        words = self._python.command([*command, *arguments])
        return ChildProcess(words, folder=self._work / "code", environment=environment, on_line=on_line)

    def explain(self, status: int, tail: Sequence[str]) -> str:
        listed = self._work / "code" / requirements.REQUIREMENTS
        return missing_modules.explain_on_machine(tail, has_requirements=listed.is_file()) if status else ""

    def close(self) -> None:
        return

    def _installed(self, folder: Path) -> Python:
        """An environment with the requirements of the code in `folder`: that of an earlier attempt, or a new one."""
        python = requirements.make(self._work / "env")
        listed = folder / requirements.REQUIREMENTS
        if self._job.code is None or not listed.is_file():
            return python
        name = environments.name_of(self._job.code.key, listed.read_bytes())

        def kept() -> Installed:
            return Installed(self._bucket, self._job.id, name, python.folder, note=self._note)

        if self._attempt > 1:
            if self._retry(kept().restore):
                return python
            python = requirements.make(self._work / "env")
        made, began = kept(), self._now()
        requirements.install(python, folder, python.variables(self._variables), self._tool)
        if self._rank == 0 and (self._job.recoveries or self._job.retries.times):
            made.keep(self._now() - began)
        return python
