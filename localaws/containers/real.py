"""Real images, where the computer has buildah and docker-registry: a registry on loopback, and a base image of Debian's packages.

No image registry is needed: the base is a small root file system with Python and BusyBox, which `make container-tools` makes.
Everything runs as root, without a daemon and without cgroups.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from localaws.ports import Port

TOOLS = ("buildah", "docker-registry", "unshare")
BASE = Path(__file__).parents[2] / "build" / "container-base"
ROOT = "root"
MARK = "registry"
"""File beside the stand-in's images with the registry's address; where it is, builds and pulls are real."""
STANDS_FOR = "base:python"
"""What stands for every base image."""
PACKAGES = ("python3-minimal", "libpython3.11-stdlib", "busybox-static")
LEFT_OUT = ("perl", "debconf", "dpkg", "tar", "media-types", "install-info")
APPLETS = ("sh", "cat", "echo", "ls", "env", "sleep", "mkdir", "rm", "cp")
START_S = 10.0
FIRST_PORT = 5055


def lacks() -> str:
    """Says what the computer lacks for real images; empty where it has everything."""
    missing = [one for one in TOOLS if shutil.which(one) is None]
    if os.geteuid() != 0:
        return "they need root"
    if missing or not (BASE / ROOT / "bin/sh").exists():
        return f"{', '.join(missing) or 'the base image'} is missing: make container-tools"
    return ""


def begin(images: Path, at_stop: Callable[[Callable[[], None]], object]) -> str:
    """Starts a registry with the base image, for the builds and machines of one local AWS. Returns its address."""
    images.mkdir(parents=True, exist_ok=True)
    port = Port(FIRST_PORT)
    address = f"127.0.0.1:{port.number}"
    settings = images / "registry.yml"
    folder = images / "registry-files"
    settings.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: '{folder}'}}}}\nhttp: {{addr: '{address}'}}\n"
    )
    with (images / "registry.log").open("wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(settings)], stdout=log, stderr=log)

    def stop() -> None:
        process.terminate()
        process.wait()
        port.release()

    at_stop(stop)
    _wait_for(address)
    image = f"{address}/{STANDS_FOR}"
    with tempfile.TemporaryDirectory() as context:
        recipe = Path(context, "Dockerfile")
        recipe.write_text(f'FROM scratch\nCOPY {ROOT} /\nENV PATH=/usr/local/bin:/usr/bin:/bin\nCMD ["/bin/bash"]\n')
        buildah(images / "store", "bud", "--isolation", "chroot", "-q", "-t", image, "-f", str(recipe), str(BASE))
    buildah(images / "store", "push", "-q", "--tls-verify=false", image)
    (images / MARK).write_text(address)
    return address


def buildah(store: Path, *words: str) -> str:
    """Returns what it says. Raises CalledProcessError with its errors. The driver needs no mounts, which a machine that loses its power
    would leave behind."""
    command = ["buildah", "--root", str(store), "--runroot", f"{store}-run", "--storage-driver", "vfs", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace")
    return done.stdout.strip()


def _wait_for(address: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/v2/", timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def make(folder: Path) -> None:
    """Unpacks Debian's packages into a root file system."""
    root = folder / ROOT
    shutil.rmtree(folder, ignore_errors=True)
    root.mkdir(parents=True)
    kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    listed = subprocess.run(
        ["apt-cache", "depends", "--recurse", *(f"--no-{one}" for one in kinds), *PACKAGES],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = sorted({line for line in listed.splitlines() if line[:1].isalnum() and not line.startswith(LEFT_OUT)})
    with tempfile.TemporaryDirectory() as packages:
        subprocess.run(["apt-get", "download", "-qq", *names], cwd=packages, check=True)
        for file in sorted(Path(packages).glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(file), str(root)], check=True)
    for name in APPLETS:
        with suppress(FileExistsError):
            (root / "bin" / name).symlink_to("busybox")
    (root / "usr/bin/python").symlink_to("python3")
    for name in ("tmp", "root", "proc", "dev", "sys"):
        (root / name).mkdir(exist_ok=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
