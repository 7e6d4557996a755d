"""A machine whose docker is a script that pulls as a test says."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.container.container_workspace import ContainerWorkspace
from agent.credentials import CredentialsExpired
from tests.builders import JOB
from tests.node.containers import CONTAINER
from tests.node.world import REGION

GIB = 1024**3
ADDRESS = CONTAINER.address(REGION)
PULLS = """
echo "$@" >> "$DOCK/calls"
case "$3" in
  info) echo "[\\"$DOCK\\",%s]" ;;
  image) exit 1 ;;
  login) cat > "$DOCK/password"; cp "$2/config.json" "$DOCK/before"; echo secret > "$2/config.json" ;;
  pull) %s ;;
  run) env > "$DOCK/environment" ;;
  container) echo '{"Running": false, "ExitCode": 0, "StartedAt": "2026-01-01T00:00:00Z"}' ;;
esac
"""
CONTAINERDS = '[[\\"driver-type\\",\\"io.containerd.snapshotter.v1\\"]]'


def docker(pull: str, status: str = "null") -> str:
    """A docker that pulls as the script says."""
    return PULLS % (status, pull)


class Pulled:
    """A machine whose docker pulls as a script says."""

    def __init__(self, folder: Path, *, size: int = 1, variables: dict[str, str], **job: Any) -> None:
        self.notes, self.folder, self.expired, self.refused = list[str](), folder, 0, 0
        self._size, self._variables, self._job = size, variables, job
        self.work = folder / "work"
        self.within(JOB.timing.prepare_allowance_s)

    def within(self, most_s: float) -> None:
        """A pull may last so long."""
        container, folder, variables = replace(CONTAINER, size=self._size), self.folder, self._variables
        facts: dict[str, Any] = {"code": None} | self._job
        timing = replace(JOB.timing, prepare_allowance_s=most_s)
        self.workspace = ContainerWorkspace(
            replace(JOB, container=container, timing=timing, **facts),
            container,
            REGION,
            root=folder,
            work=self.work,
            variables=variables | {"DOCK": str(folder)},
            token=self.token,
            instance_type=lambda: "g5.xlarge",
            pause=lambda _: None,
            note=self.notes.append,
            tell=self.notes.append,
        )

    def token(self, region: str) -> str:
        assert region == REGION
        self.expired -= 1
        if self.expired >= 0:
            raise CredentialsExpired("the credentials of the job have expired")
        self.refused -= 1
        if self.refused >= 0:
            raise ConnectionError("no way to ECR")
        return base64.b64encode(b"AWS:hush").decode()

    def run(self) -> None:
        """Raises what the node would report."""
        self.workspace.begin()
        self.workspace.prepare(self.folder / "code")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()
