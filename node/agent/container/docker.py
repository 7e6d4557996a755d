"""Asks the machine's docker something. Its settings lie in a folder of the agent's own: no login stays, and none of root's is used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.container.options import NAME
from agent.failures import CannotStart, MachineTrouble
from agent.programs import Said, ask

ANSWER_S = 30.0
START_S = 90.0
"""How long the daemon may take to start, on a machine that does not start it at its boot."""
WORDS = 2000
"""Characters of what docker says that are kept."""


class Docker:
    """Raises CannotStart where the machine has none."""

    def __init__(self, config: Path, variables: Mapping[str, str]) -> None:
        """`config` is the folder of its settings, which `forget` deletes."""
        program = shutil.which("docker", path=variables.get("PATH", os.defpath))
        if program is None:
            raise CannotStart("the machine's image has no docker, which the job's image needs: use a deep-learning AMI")
        self._config, self._variables = config, dict(variables)
        self._first = [program, "--config", str(config)]
        self._pulling: subprocess.Popen[str] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The environment of docker itself."""
        return dict(self._variables)

    def words(self, *words: str) -> list[str]:
        """The whole command of docker's."""
        return [*self._first, *words]

    def root(self) -> Path:
        """The folder in which it keeps images; starts its daemon where that does not run. Raises MachineTrouble."""
        said = self._ask("info", "--format", "{{json .DockerRootDir}}")
        if said.code != 0:
            with suppress(OSError):
                ask(["systemctl", "start", "docker"], START_S)
            said = self._ask("info", "--format", "{{json .DockerRootDir}}")
        if said.code == 0:
            with suppress(ValueError):
                found = json.loads(said.text.strip().rpartition("\n")[2])
                if isinstance(found, str) and found:
                    return Path(found)
        raise MachineTrouble(f"docker does not answer: {said.text.strip()[-WORDS:] or f'it ended with {said.code}'}")

    def has(self, address: str) -> bool:
        """Whether the machine has the image already."""
        return self._ask("image", "inspect", "--format", "{{.Id}}", address).code == 0

    def login(self, registry: str, password: str) -> Said:
        """The password goes through docker's standard input; what it keeps of it is gone with the folder of its settings."""
        self._config.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._run(["login", "--username", "AWS", "--password-stdin", registry], password, ANSWER_S)

    def pull(self, address: str, most_s: float) -> Said:
        return self._run(["pull", "--quiet", address], "", most_s)

    def forget(self) -> None:
        """Deletes the settings, and with them the login."""
        shutil.rmtree(self._config, ignore_errors=True)

    def give_up(self) -> None:
        """Ends a pull that runs in another thread."""
        if (process := self._pulling) is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def state(self) -> dict[str, Any] | None:
        """What docker says of the container; None where there is none, or no answer."""
        said = self._ask("container", "inspect", "--format", "{{json .State}}", NAME)
        with suppress(ValueError):
            found = json.loads(said.text) if said.code == 0 else None
            return found if isinstance(found, dict) else None
        return None

    def signal(self, number: signal.Signals) -> None:
        """To the first process of the container."""
        self._ask("kill", "--signal", number.name, NAME)

    def remove(self) -> Said:
        """Ends the container with all of its processes, and deletes what it wrote beside its mounts."""
        return self._ask("rm", "--force", "--volumes", NAME)

    def _ask(self, *words: str) -> Said:
        try:
            return ask(self.words(*words), ANSWER_S)
        except OSError as problem:
            return Said(None, str(problem))

    def _run(self, words: Sequence[str], given: str, most_s: float) -> Said:
        try:
            process = subprocess.Popen(
                self.words(*words),
                env=self._variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as problem:
            return Said(None, str(problem))
        self._pulling = process
        try:
            text, _ = process.communicate(given, timeout=most_s)
            return Said(process.returncode, text)
        except subprocess.TimeoutExpired:
            self.give_up()
            text, _ = process.communicate()
            return Said(None, text)
        finally:
            self._pulling = None
