"""Runs a training's words in its image's own root, where the computer has the images for real (localaws/containers/real.py).

An image without an entry point stays what sagemaker_container makes of it: AWS's toolkit, which would run it, is not in the base image.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localaws.containers import real, shim
from localaws.containers.container import BASIC
from localaws.containers.images import Image
from localaws.services.sagemaker_container import Host, Started, own_words, platform_variables

MOUNTED = ("input", "model", "output")
"""Folders below /opt/ml that SageMaker brings into a container; what the image has beside them stays."""
SAID = "rehearsal: the image's own root, as buildah built it"


class Roots:
    """The roots of one training's containers."""

    def __init__(self, images: Path, store: Path) -> None:
        """`images` has what builds of the rehearsal made; `store` keeps the containers."""
        self._images, self._store = images, store
        self._names = list[str]()

    def started(
        self, image: Image, digest: str, host: Host, request: Mapping[str, Any], checkpoints: str
    ) -> Started | None:
        """Returns how the container starts; None where the image has no root of its own here, or nothing of its own to run."""
        mark, words = self._images / real.MARK, own_words(image, request)
        if not words or not mark.exists():
            return None
        address, name = f"{mark.read_text()}/images@{digest}", f"{request['TrainingJobName']}-{host.name}"
        try:
            real.buildah(self._store, "pull", "-q", "--tls-verify=false", address)
        except subprocess.CalledProcessError:  # a container of AWS's, of which there is nothing here
            return None
        self._remove(name)
        real.buildah(self._store, "from", "-q", "--pull-never", "--name", name, address)
        self._names.append(name)
        (host.root / checkpoints.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mounts = [(str(host.base / one), f"/opt/ml/{one}", False) for one in MOUNTED]
        start = {
            "root": real.buildah(self._store, "mount", name),
            "mounts": [*mounts, (str(host.root / checkpoints.lstrip("/")), checkpoints, False)],
            "words": words,
            "variables": {"PATH": BASIC, "HOME": "/root", **image.variables, **platform_variables(request)},
            "folder": image.workdir,
        }
        (host.root / "start.json").write_text(json.dumps(start))
        command = [sys.executable, "-I", "-S", str(Path(shim.__file__)), "--inside", str(host.root)]
        return Started(command, {}, host.root, by_toolkit=False, said=SAID)

    def close(self) -> None:
        """Removes the containers."""
        for name in self._names:
            self._remove(name)
        self._names.clear()

    def _remove(self, name: str) -> None:
        with suppress(subprocess.CalledProcessError):
            real.buildah(self._store, "rm", name)
