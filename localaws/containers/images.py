"""Runs images without Docker: copies the kept build context into a folder as its Dockerfile says, and finds the command to run there.

Steps that run programs (`RUN`, `COPY --from`) have no effect: a container's packages are those of the Python that it is given.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KEPT = "contexts"
"""Folder beside the stand-in's images with the build context of each image, under the image's digest."""
ARGUMENTS = "build-arguments.json"
"""File beside a context's folder `files`, with the build arguments."""


class NotRunnable(Exception):
    """The image cannot be run on this computer; the message says why."""


def kept(images: Path, digest: str) -> Path:
    """Returns where the context of an image is kept, whether or not it was built here."""
    return images / KEPT / digest.removeprefix("sha256:")


def keep(images: Path, digest: str, context: Path, arguments: Mapping[str, str]) -> None:
    """Keeps a context; the stand-in for Docker calls this at the end of a build."""
    place = kept(images, digest)
    if not place.exists():
        shutil.copytree(context, place / "files", symlinks=True)
        (place / ARGUMENTS).write_text(json.dumps(dict(arguments)))


def publish(images: Path, address: str) -> None:
    """Puts an image into a public registry, as the stand-in for Docker reads it; `address` has a tag, and may have a digest."""
    address = address.partition("@")[0]
    name, _, tag = address.rpartition(":")
    file = images / name / tag
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"schemaVersion": 2, "public": address}))


@dataclass(slots=True)
class Image:
    """The last stage of a Dockerfile."""

    context: Path
    base: str = ""
    workdir: str = "/"
    variables: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    copies: list[tuple[list[str], str]] = field(default_factory=list)
    """Sources in the context, and the destination in the image."""

    @classmethod
    def of(cls, images: Path, digest: str) -> Image:
        """Reads the image of that digest. Raises NotRunnable for an image that was not built here."""
        place = kept(images, digest)
        if not place.exists():
            raise NotRunnable(
                f"no build of this rehearsal made the image {digest}, so there are no files of it to run: "
                "let the Build machine build it from a context"
            )
        return cls.read(place / "files", json.loads((place / ARGUMENTS).read_text()))

    @classmethod
    def read(cls, context: Path, arguments: Mapping[str, str]) -> Image:
        """Reads an image from its context. Raises NotRunnable for a Dockerfile that this module cannot follow."""
        image, known = cls(context), dict[str, str]()
        for word, rest in _instructions((context / "Dockerfile").read_text()):
            if word == "ARG":
                name, _, default = rest.partition("=")
                known[name.strip()] = arguments.get(name.strip(), default.strip("\"' "))
            elif word == "FROM":
                words = [one for one in _filled(rest, known).split() if not one.startswith("--")]
                image = cls(context, base=words[0] if words else "")
            else:
                image._follow(word, rest, {**known, **image.variables})
        if not image.base:
            raise NotRunnable("its Dockerfile has no FROM")
        return image

    def _follow(self, word: str, rest: str, known: Mapping[str, str]) -> None:
        if word == "ENV":
            self.variables |= {name: _filled(value, known) for name, value in _assignments(rest)}
        elif word == "WORKDIR":
            self.workdir = _joined(self.workdir, _filled(rest, known))
        elif word in ("COPY", "ADD"):
            self._copy(_filled(rest, known))
        elif word == "ENTRYPOINT":
            self.entrypoint, self.command = _command(rest), []
        elif word == "CMD":
            self.command = _command(rest)

    def _copy(self, rest: str) -> None:
        words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
        plain = [one for one in words if not one.startswith("--")]
        if not any(one.startswith("--from") for one in words):
            place = _joined(self.workdir, plain[-1]) + ("/" if plain[-1].endswith("/") else "")
            self.copies.append((plain[:-1], place))

    def lay_out(self, root: Path) -> None:
        """Copies the image's own files under `root`. Raises NotRunnable for a source that the context lacks."""
        (root / self.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for sources, place in self.copies:
            target = root / place.lstrip("/")
            found = [path for source in sources for path in self._found(source)]
            into = place.endswith("/") or len(found) > 1 or place.rstrip("/") == self.workdir
            for path in found:
                if path.is_dir():
                    shutil.copytree(path, target, dirs_exist_ok=True)
                else:
                    whole = target / path.name if into else target
                    whole.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, whole)

    def _found(self, source: str) -> list[Path]:
        pattern = source.lstrip("/").removeprefix("./").rstrip("/")
        found = [self.context] if pattern in ("", ".") else sorted(self.context.glob(pattern))
        if not found:
            raise NotRunnable(f"its Dockerfile copies {source}, which the context does not have")
        return found

    def environment(self, root: Path) -> dict[str, str]:
        """Returns the variables of ENV, with the image's own paths replaced by their places on this computer."""
        return {name: ":".join(here(root, part) for part in value.split(":")) for name, value in self.variables.items()}


def image_of(images: Path, digest: str) -> Image:
    """Reads the image of that digest; a container of AWS's, of which there is nothing here, has no files of its own."""
    try:
        return Image.of(images, digest)
    except NotRunnable:
        return Image(images, base="aws")


def here(root: Path, word: str) -> str:
    """Translates a path of the container to this computer, if it exists under `root`; leaves anything else unchanged."""
    if not word.startswith("/") or not (root / word.lstrip("/")).exists():
        return word
    return str(root / word.lstrip("/"))


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


def _assignments(rest: str) -> list[tuple[str, str]]:
    """Reads `NAME=value ...`, or the old form `NAME value`."""
    if "=" not in rest.split()[0]:
        name, _, value = rest.partition(" ")
        return [(name, value.strip())]
    return [(name, value) for name, _, value in (word.partition("=") for word in shlex.split(rest))]


def _filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: known.get(match[1], ""), text)


def _joined(workdir: str, path: str) -> str:
    whole = path if path.startswith("/") else f"{workdir.rstrip('/')}/{path}"
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)


def _command(rest: str) -> list[str]:
    found: Sequence[str] = json.loads(rest) if rest.startswith("[") else ["/bin/sh", "-c", rest]
    return list(found)
