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
REMOVALS = 3
"""Docker gives up on a container whose processes take longer than 10 s to end; the next try finds them ended."""
KILL_S = 10.0
STOPS_S = 5.0
PLACES = ("info", "--format", "[{{json .DockerRootDir}},{{json .DriverStatus}}]")
CONTAINERD = Path("/var/lib/containerd")
"""Where images are kept by the store of containerd, docker's usual one since version 29."""
CONTAINERDS = "io.containerd.snapshotter.v1"
"""The kind of storage that docker says it has then."""
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
        self._given_up = False

    @property
    def variables(self) -> dict[str, str]:
        """The environment of docker itself."""
        return dict(self._variables)

    def words(self, *words: str) -> list[str]:
        """The whole command of docker's."""
        return [*self._first, *words]

    def places(self) -> list[Path]:
        """The folders in which it keeps images; starts its daemon where that does not run. Raises MachineTrouble."""
        if found := self._places(said := self._ask(*PLACES)):
            return found
        with suppress(OSError):
            ask(["systemctl", "start", "docker"], START_S)
        if found := self._places(said := self._ask(*PLACES)):
            return found
        raise MachineTrouble(f"docker does not answer: {said.text.strip()[-WORDS:] or f'it ended with {said.code}'}")

    @staticmethod
    def _places(said: Said) -> list[Path]:
        """Of an answer, which without a daemon is an empty one, with the exit code of success."""
        with suppress(ValueError):
            root, status = json.loads(said.text.strip().rpartition("\n")[2])
            if isinstance(root, str) and root:
                return [Path(root), *([CONTAINERD] if CONTAINERDS in dict(status or ()).values() else [])]
        return []

    def has(self, address: str) -> bool:
        """Whether the machine has the image already."""
        return self._ask("image", "inspect", "--format", "{{.Id}}", address).code == 0

    def login(self, registry: str, password: str) -> Said:
        """The password goes through docker's standard input; what it keeps of it is gone with the folder of its settings. An empty login
        stands there before: without any, docker looks for a desktop's keyring, which fails on a machine that has its helper."""
        self._config.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._config / "config.json").write_text(json.dumps({"auths": {registry: {}}}), "ascii")
        return self._run(["login", "--username", "AWS", "--password-stdin", registry], password, ANSWER_S)

    def pull(self, address: str, most_s: float) -> Said:
        return self._run(["pull", "--quiet", address], "", most_s)

    def forget(self) -> None:
        """Deletes the settings, and with them the login."""
        shutil.rmtree(self._config, ignore_errors=True)

    def give_up(self) -> None:
        """Ends a login or a pull that runs in another thread, and lets none begin."""
        self._given_up = True
        self._end_pull()

    def _end_pull(self) -> None:
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

    def signal(self, number: signal.Signals) -> bool:
        """To the first process of the container. Whether it was running to get it."""
        return self._ask("kill", "--signal", number.name, NAME, most_s=KILL_S).code == 0

    def machine_stops(self) -> bool:
        """Whether the machine shuts down: systemd ends containers then as it ends services, beside the agent."""
        with suppress(OSError):
            return ask(["systemctl", "is-system-running"], STOPS_S).text.strip() == "stopping"
        return False

    def remove(self) -> str:
        """Ends the container with all of its processes, and deletes what it wrote beside its mounts. Returns why it may still be there,
        empty where it is gone."""
        said = Said(None)
        for _ in range(REMOVALS):
            said = self._ask("rm", "--force", "--volumes", NAME)
            if said.code == 0 or "no such container" in said.text.lower():
                return ""
        return said.text.strip()[-WORDS:] or f"docker rm ended with {said.code}"

    def _ask(self, *words: str, most_s: float = ANSWER_S) -> Said:
        try:
            return ask(self.words(*words), most_s)
        except OSError as problem:
            return Said(None, str(problem))

    def _run(self, words: Sequence[str], given: str, most_s: float) -> Said:
        if self._given_up:
            return Said(None, "given up")
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
            if self._given_up:
                self._end_pull()
            text, _ = process.communicate(given, timeout=most_s)
            return Said(process.returncode, text)
        except subprocess.TimeoutExpired:
            self._end_pull()
            text, _ = process.communicate()
            return Said(None, f"{text}\ndocker {words[0]} had not ended after {most_s:.0f} s".strip())
        finally:
            self._pulling = None
