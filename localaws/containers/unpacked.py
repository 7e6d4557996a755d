"""Images of the registry on loopback, unpacked: the root of each as a folder that containers only read, and what its configuration says."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from localaws.containers import inputs, own_root, real
from localaws.containers.base import LABEL
from localaws.containers.images import Image

OWN = "rehearsal: the image's own root, as buildah built it"
COPIED = "rehearsal: no root of the image's own, but the files that its Dockerfile copies"
"""The first line of a container's log: which of the two it was."""
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An image with a root of its own."""

    root: Path
    config: Mapping[str, Any]
    """What its configuration says of containers, in the words of docker."""

    @property
    def user(self) -> str:
        return str(self.config.get("User") or "")

    @property
    def variables(self) -> dict[str, str]:
        return {name: value for name, _, value in (one.partition("=") for one in self.config.get("Env") or ())}

    @property
    def mounts(self) -> list[tuple[str, str, bool]]:
        """The libraries of the machine image, for an image on a base that stands for AWS's."""
        if LABEL not in (self.config.get("Labels") or {}):
            return []
        return [(source, place, True) for source, place in inputs.framework_mounts().items()]

    def image(self) -> Image:
        """The same for whoever runs images without a root of their own; it has nothing to copy."""
        return Image(
            context=self.root,
            base="own",
            workdir=self.config.get("WorkingDir") or "/",
            variables=self.variables,
            entrypoint=list(self.config.get("Entrypoint") or []),
            command=list(self.config.get("Cmd") or []),
        )

    def command(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        *,
        note: Path,
        mounts: Iterable[tuple[str, str, bool]] = (),
        folder: str = "",
        user: str = "",
        read_only: bool = False,
    ) -> list[str]:
        """Returns what runs the words in the image's root, in `folder` or its working folder, as `user` or as its own user. Writes the
        description to `note`."""
        described = own_root.start(
            str(self.root),
            list(words),
            dict(variables),
            folder or self.config.get("WorkingDir") or "/",
            mounts=[*self.mounts, *mounts],
            user=user or self.user,
            read_only=read_only,
        )
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(described))
        return [sys.executable, "-I", "-S", own_root.__file__, str(note)]


def unpack(store: Path, address: str) -> Unpacked:
    """Pulls an image from the registry on loopback, once for each store. Raises CalledProcessError with buildah's words."""
    name = address.rpartition("/")[2].replace(":", "-").replace("@", "-")
    note = store.with_name(f"{store.name}-roots") / name
    with _TURN:
        if not note.exists():
            real.buildah(store, "from", "-q", "--tls-verify=false", "--pull", "--name", name, address)
            root = real.buildah(store, "mount", name)
            said = json.loads(real.buildah(store, "inspect", "--format", "{{.Config}}", name)).get("config") or {}
            note.parent.mkdir(exist_ok=True)
            beside = note.with_name(f"{name}.new")
            beside.write_text(json.dumps({"root": root, "config": said}))
            beside.replace(note)
        found = json.loads(note.read_text())
    return Unpacked(Path(found["root"]), found["config"])


def built(images: Path, digest: str) -> Unpacked | None:
    """Returns the image that a build of this rehearsal made for real; None where it was not."""
    registry = real.registry(images)
    if not registry:
        return None
    try:
        return unpack(images / "store", f"{registry}/images@{digest}")
    except CalledProcessError:
        return None
