"""Builds a Dockerfile for real: every line of it, by buildah, on bases of this computer's own; pushed to the registry on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from localaws.containers import inputs, real
from localaws.containers.base import DEEP_LEARNING, PYTHON

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
BASE = "BASE"
"""The argument for which a base of this computer's own stands."""
HERE = "amd64"
FROM = re.compile(r"\s*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?\s*$", re.IGNORECASE)
OFFLINE = (
    "NewConnectionError",
    "Temporary failure in name resolution",
    "Failed to establish a new connection",
    "ConnectTimeout",
)


def stands_for(address: str) -> str:
    """Returns the base that stands for an image: AWS's containers lie in private registries and have frameworks."""
    return DEEP_LEARNING if ".dkr.ecr." in address.partition("/")[0] else PYTHON


def build(images: Path, folder: Path, arguments: Iterable[str], platform: str) -> str:
    """Builds the folder, and returns the image's manifest. Exits with a reason. `arguments`: NAME=value each."""
    registry = real.registry(images)
    lines = (folder / "Dockerfile").read_text().splitlines()
    architecture = platform.partition("/")[2] or HERE
    if architecture != HERE and (ran := _runs(lines)):
        sys.exit(
            f"ERROR: failed to solve: this computer has no emulator, so that it builds for {platform} only what runs no program; "
            f"the Dockerfile has: {ran}"
        )
    given = dict(one.split("=", 1) for one in arguments)
    volumes, proxies = inputs.kept(images)
    bases = {one: stands_for(one) for one in _foreign(lines)}
    if BASE in given:
        bases[BASE] = stands_for(given[BASE])
        given[BASE] = f"{registry}/base:{bases[BASE]}"
    if DEEP_LEARNING in bases.values():
        volumes |= inputs.framework_mounts()
    name, store = f"{registry}/images:{os.getpid()}", images / "store"
    words = [*real.command(store), "bud", "--isolation", "chroot", "--tls-verify=false", "--format", "docker"]
    words += ["--platform", platform, "--tag", name]
    words += [word for one, value in given.items() for word in ("--build-arg", f"{one}={value}")]
    for one, base in bases.items():
        if one != BASE:
            words += ["--build-context", f"{one}=docker-image://{registry}/base:{base}"]
    words += [word for source, place in volumes.items() for word in ("--volume", f"{source}:{place}:ro")]
    print("#3 built by buildah, on a base of this computer's own", flush=True)
    _follow([*words, str(folder)], proxies)
    return _pushed(images, registry, name)


def _follow(words: Sequence[str], proxies: Mapping[str, str]) -> None:
    """Hands on what buildah prints, until it ends."""
    said = list[str]()
    variables = {**os.environ, **proxies}
    with subprocess.Popen(
        words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as made:
        assert made.stdout is not None
        for line in made.stdout:
            said.append(line)
            print(line, end="", flush=True)
    if made.returncode:
        away = any(sign in line for line in said for sign in OFFLINE)
        why = ": a package index cannot be reached from this computer" if away else ""
        sys.exit(f"ERROR: failed to solve: a step did not complete successfully{why}")


def _pushed(images: Path, registry: str, name: str) -> str:
    written = images / f"digest.{os.getpid()}"
    # Packing the layers takes longer than to send them over loopback.
    push = [
        *real.command(images / "store"),
        "push",
        "-q",
        "--disable-compression",
        "--tls-verify=false",
        "--digestfile",
        str(written),
        name,
    ]
    subprocess.run(push, check=True)
    text = fetch(f"http://{registry}/v2/images/manifests/{written.read_text()}").decode()
    config = json.loads(text)["config"]["digest"]
    (images / "blobs").mkdir(exist_ok=True)
    body = fetch(f"http://{registry}/v2/images/blobs/{config}")
    (images / "blobs" / config.removeprefix("sha256:")).write_bytes(body)
    return text


def fetch(address: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": MANIFEST})) as answer:
        return bytes(answer.read())


def _runs(lines: Iterable[str]) -> str:
    return next((line.strip() for line in lines if line.strip().upper().startswith("RUN ")), "")


def _foreign(lines: Iterable[str]) -> list[str]:
    """Lists the images of FROM that are neither an argument, nor another stage, nor nothing."""
    stages, found = {"scratch"}, list[str]()
    for line in lines:
        if match := FROM.match(line):
            if match["image"] not in stages and "$" not in match["image"]:
                found.append(match["image"])
            stages.add(match["name"] or "scratch")
    return found
