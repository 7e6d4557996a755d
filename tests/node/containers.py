"""A machine with the rehearsal's docker in the place of the real one, which has the job's image already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.containers import Container
from localaws.containers.images import keep
from tests.node.world import REGION, Site

STANDINS = Path(__file__).parents[2] / "localaws/machines/standins"
AMI = Path(__file__).parents[2] / "build/ami"
REPOSITORY = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/yard/images"
DIGEST = f"sha256:{'a' * 64}"
CONTAINER = Container(source="images:v1", digest=DIGEST, repositories={REGION: REPOSITORY}, size=1024)


class Dock:
    """Where a site's container comes from."""

    def __init__(self, site: Site, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.site, self.folder = site, folder
        self.docker = site.root / "var/lib/docker"
        patch.setenv("PATH", f"{STANDINS}:{AMI}/bin:/usr/bin:/bin")
        patch.setenv("LOCAL_AWS_ROOT", str(site.root))
        patch.setenv("LOCAL_AWS_IMAGES", str(folder))

    def offer(
        self,
        script: str,
        *,
        command: Sequence[str] = (),
        arguments: Sequence[str] = (),
        said: Any = None,
        bakes: str = "",
        **job: Any,
    ) -> None:
        """Admits a job whose image has the script as its entry point, and a folder of the machine has the image; `bakes` are further lines
        of its Dockerfile."""
        context = self.folder / "context"
        context.mkdir(parents=True, exist_ok=True)
        (context / "main.py").write_text(script)
        (context / "Dockerfile").write_text("FROM base\nWORKDIR /app\nCOPY main.py /app/\nENV BAKED=yes\n" + bakes)
        keep(self.folder, DIGEST, context, {})
        config = said if said is not None else {"Entrypoint": ["python", "/app/main.py"]}
        self.have(f"{REPOSITORY}@{DIGEST}", config)
        container = replace(CONTAINER, arguments=tuple(arguments))
        self.site.offer("", command=tuple(command), container=container, **({"code": None} | job))

    def have(self, address: str, config: Any, built: str = "") -> None:
        """The machine's docker has the image; `built` is its address in the registry on loopback, where it was built for real."""
        place = self.docker / "images" / hashlib.sha256(address.encode()).hexdigest()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"architecture": "amd64", "os": "linux", "config": config}))
        if built:
            place.with_suffix(".real").write_text(built)

    @property
    def containers(self) -> list[str]:
        """Those that are left."""
        folder = self.docker / "containers"
        return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []
