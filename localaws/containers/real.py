"""Real images, where the computer has buildah, skopeo and docker-registry: a registry on loopback, and the base images in it.

Everything runs as root, without a daemon and without cgroups. What builds need beside the registry, pip's settings among them, is looked up
when the registry starts.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path

from localaws.containers import inputs, own_root
from localaws.containers.base import DEEP_LEARNING, IMAGES, KEY, PLACE, PYTHON, key
from localaws.machines.wire import Wire
from localaws.peers import is_own
from localaws.ports import Port

TOOLS = ("buildah", "skopeo", "docker-registry", "unshare")
SOCKET = "registry.sock"
MARK = "registry"
"""File beside the stand-in's images with the registry's address; where it is, builds and pulls are real."""
NOT_SHOWN = (
    "the bases of images: small ones of Debian's packages, and the machine image's libraries for AWS's containers, whose toolkit the local "
    "SageMaker plays; limits of a container's memory and processes; a network of its own"
)
"""What really built images do not show, for the printed result of a rehearsal."""
START_S = 10.0
FIRST_PORT = 5055


def lacks() -> str:
    """Says what the computer lacks for real images; empty where it has everything."""
    missing = [one for one in TOOLS if shutil.which(one) is None]
    if os.geteuid() != 0:
        return "they need root"
    if missing or not (PLACE / KEY).exists():
        return f"{', '.join(missing) or 'the base image'} is missing: make container-tools"
    if (PLACE / KEY).read_text() != key():
        return "the base image is an earlier one: make container-tools"
    if not own_root.can_run():
        return "this computer lets no process have mounts and a root of its own"
    return ""


def announced(say: Callable[[str], object]) -> bool:
    """Whether images are built and run for real here; says which it is."""
    lacking = lacks()
    if lacking:
        say(f"images are not built for real, their files are copied as their Dockerfiles say: {lacking}")
    else:
        say("images are built for real, by buildah on bases of this computer's own, and run in their own roots")
    return not lacking


def begin(images: Path, at_stop: Callable[[Callable[[], None]], object]) -> str:
    """Starts a registry with the base images, for the builds, machines and services of one local AWS. Returns its address."""
    images.mkdir(parents=True, exist_ok=True)
    port = Port(FIRST_PORT)
    address = f"127.0.0.1:{port.number}"
    settings = images / "registry.yml"
    folder = images / "registry-files"
    settings.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: '{folder}'}}}}\n"
        f"http: {{net: unix, addr: '{SOCKET}'}}\n"
    )
    with (images / "registry.log").open("wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(settings)], stdout=log, stderr=log, cwd=images)
    # The registry asks nobody for a name. Its socket lies in a folder of this user, and the port is open to this user alone.
    place = os.open(images, os.O_RDONLY | os.O_DIRECTORY)
    door = Wire("127.0.0.1", partial(_reach, place), port=port.number, accepts=is_own)

    def stop() -> None:
        process.terminate()
        process.wait()
        door.stop()
        os.close(place)
        port.release()

    at_stop(stop)
    _wait_for(address)
    for name in (PYTHON, DEEP_LEARNING):
        copy = ["skopeo", "copy", "-q", "--dest-tls-verify=false", f"oci:{PLACE / IMAGES}:{name}"]
        subprocess.run([*copy, f"docker://{address}/base:{name}"], check=True)
    inputs.keep(images)
    (images / MARK).write_text(address)
    return address


def registry(images: Path) -> str:
    """Returns the address of the registry on loopback; empty where there is none."""
    return (images / MARK).read_text() if (images / MARK).exists() else ""


def buildah(store: Path, *words: str) -> str:
    """Returns what it says. Raises CalledProcessError with its errors."""
    done = subprocess.run([*command(store), *words], capture_output=True, text=True, check=True, errors="replace")
    return done.stdout.strip()


def command(store: Path) -> list[str]:
    """Returns the beginning of a call of buildah. The driver needs no mounts, which a machine that loses its power would leave behind."""
    return ["buildah", "--root", str(store), "--runroot", f"{store}-run", "--storage-driver", "vfs"]


def _reach(folder: int) -> socket.socket:
    """Connects to the registry's socket, whose whole path may be longer than an address may be."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
    except OSError:
        connection.close()
        raise
    return connection


def _wait_for(address: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/v2/", timeout=1).close()
            return
        except (OSError, HTTPException):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
