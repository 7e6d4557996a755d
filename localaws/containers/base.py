"""Makes the base images of real builds (`make container-tools`): small root file systems of Debian's packages, with Python and pip.

No image registry is needed. `base:python` stands for every public image. `base:deep-learning` stands for AWS's Deep Learning Containers:
their libraries are those of the rehearsal's machine image, which is mounted into builds and containers and never copied.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = ("buildah", "skopeo", "docker-registry")
PLACE = Path(__file__).parents[2] / "build" / "container-base"
ROOT, KEY, LISTED = "root", "key", "packages.txt"
"""Below PLACE: the file system, what it was made from, and its packages with their versions."""
IMAGES, PYTHON, DEEP_LEARNING = "images", "python", "deep-learning"
"""The images made of it: a folder below PLACE in OCI's layout, and the tag of each."""
LABEL = "local-aws.frameworks"
"""Marks images whose containers have the libraries of the machine image."""
PACKAGES = (
    *("python3-minimal", "libpython3-stdlib", "python3-pip-whl", "libstdc++6", "bash", "busybox-static"),
    *("base-passwd", "passwd", "ca-certificates", "netbase"),
)
LEFT_OUT = (
    *(
        "perl",
        "libperl",
        "debconf",
        "cdebconf",
        "libdebconf",
        "libdebian-installer",
        "libnewt",
        "libslang",
        "libtextwrap",
        "dpkg",
        "tar",
    ),
    *(
        "media-types",
        "mailcap",
        "mime-support",
        "install-info",
        "openssl",
        "gawk",
        "mawk",
        "original-awk",
        "libmpfr",
        "libsigsegv",
    ),
)
"""Beginnings of the names of packages that only an installation needs."""
UNREAD = ("doc", "man", "info", "locale", "lintian", "bash-completion", "bug")
FRAMEWORKS, OPEN_MPI = "/opt/frameworks", "/opt/amazon/openmpi"
"""Where a deep-learning image finds the libraries of the machine image, and where AWS's have Open MPI."""
NO_PACKAGES = """#!/bin/sh
echo "E: the base images of this rehearsal are made of few files and have no apt: on AWS this line runs as it stands," >&2
echo "E: and a rehearsal that needs no such package can be built with a Dockerfile that leaves it out" >&2
exit 100
"""
INPUTS = "/run/inputs"
"""Folders of the base in which a build finds what pip's settings on this computer name; they are empty in the image."""
MOST_INPUTS = 8


def prepare(folder: Path) -> None:
    """Installs the programs that are missing, and makes the file system if what it is made from has changed. Exits with a reason."""
    missing = [one for one in PROGRAMS if shutil.which(one) is None]
    current = (folder / KEY).exists() and (folder / KEY).read_text() == key()
    if current and not missing:
        print(f"buildah, skopeo, docker-registry and the base image ({folder}) are there")
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        sys.exit(
            "Real images need root on Debian or Ubuntu: for the packages buildah, skopeo and docker-registry, and for a base image made of "
            "packages. Without them rehearsals run images by stand-ins, and say so."
        )
    try:
        _apt("update", "-qq")
        if missing:
            _apt("install", "-y", "-qq", "--no-install-recommends", *missing)
        if not current:
            make(folder)
    except subprocess.CalledProcessError as problem:
        sys.exit(
            f"Debian's packages could not be fetched ({' '.join(problem.cmd[:2])} ended with {problem.returncode})."
        )


def key() -> str:
    """Changes with everything that decides what the base is, but for the versions of Debian's packages."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def make(folder: Path) -> None:
    """Unpacks Debian's packages into a root file system, and sets up what their installation would."""
    print(f"Making the base image of real builds ({folder}) ...", flush=True)
    root = folder / ROOT
    shutil.rmtree(folder, ignore_errors=True)
    root.mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):  # as Debian has it: a package may bring either
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    with tempfile.TemporaryDirectory() as packages:
        _apt("download", "-qq", *_closure(), cwd=packages)
        files = sorted(Path(packages).glob("*.deb"))
        for file in files:
            with subprocess.Popen(["dpkg", "--fsys-tarfile", str(file)], stdout=subprocess.PIPE) as sent:
                subprocess.run(
                    ["tar", "-x", "--keep-directory-symlink", "-C", str(root)], stdin=sent.stdout, check=True
                )
        (folder / LISTED).write_text("".join(f"{file.stem}\n" for file in files))
    _install_python(root)
    _set_up(root)
    _pack(folder)
    (folder / KEY).write_text(key())


def python_of(folder: Path = PLACE) -> str:
    """Returns the version of the base's Python, as in `python3.11`."""
    return str((folder / ROOT / "usr/bin/python3").readlink())


def _apt(*words: str, cwd: str | None = None) -> None:
    subprocess.run(["apt-get", "-o", "APT::Sandbox::User=root", *words], check=True, cwd=cwd, stdout=subprocess.DEVNULL)


def _closure() -> Sequence[str]:
    kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    listed = subprocess.run(
        ["apt-cache", "depends", "--recurse", *(f"--no-{one}" for one in kinds), *PACKAGES],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sorted({line for line in listed.splitlines() if line[:1].isalnum() and not line.startswith(LEFT_OUT)})


def _install_python(root: Path) -> None:
    """pip lies there as a wheel; whoever builds an image installs with it, as in Docker's own Python images."""
    name = python_of(root.parent)
    (root / "usr/bin/python").symlink_to("python3")
    (root / f"usr/lib/{name}/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    packages = root / f"usr/local/lib/{name}/dist-packages"
    packages.mkdir(parents=True, exist_ok=True)
    wheels = root / "usr/share/python-wheels"
    with zipfile.ZipFile(next(wheels.glob("pip-*.whl"))) as wheel:
        wheel.extractall(packages)
    shutil.rmtree(wheels)
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True, exist_ok=True)
    for script in ("pip", "pip3"):
        (programs / script).write_text('#!/bin/sh\nexec python3 -m pip "$@"\n')
        (programs / script).chmod(0o755)


def _set_up(root: Path) -> None:
    for name in UNREAD:
        shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(one.read_text() for one in certificates))
    (root / "etc/pip.conf").touch()
    for number in range(MOST_INPUTS):
        (root / INPUTS.lstrip("/") / str(number)).mkdir(parents=True)
    for name in ("apt-get", "apt"):
        (root / "usr/bin" / name).write_text(NO_PACKAGES)
        (root / "usr/bin" / name).chmod(0o755)
    listed = subprocess.run([str(root / "bin/busybox"), "--list"], capture_output=True, text=True, check=True).stdout
    for name in listed.split():
        if not any(
            (root / folder / name).is_symlink() or (root / folder / name).exists() for folder in ("bin", "sbin")
        ):
            (root / "bin" / name).symlink_to("busybox")
    for name in ("tmp", "root", "proc", "dev", "sys", "run", FRAMEWORKS.lstrip("/"), OPEN_MPI.lstrip("/")):
        (root / name).mkdir(exist_ok=True, parents=True)
    (root / "tmp").chmod(0o1777)


def _pack(folder: Path) -> None:
    """Makes the two images."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    packages = f"/usr/local/lib/{python_of(folder)}/dist-packages"
    (folder / "frameworks.pth").write_text(f"{FRAMEWORKS}\n")
    recipes = {
        PYTHON: f'FROM scratch\nCOPY {ROOT} /\nENV PATH={path}\nCMD ["/bin/bash"]\n',
        DEEP_LEARNING: f"FROM localhost/{PYTHON}\nCOPY frameworks.pth {packages}/\nLABEL {LABEL}={FRAMEWORKS}\n"
        f"ENV PATH={OPEN_MPI}/bin:{path} LD_LIBRARY_PATH={OPEN_MPI}/lib\n",
    }
    with tempfile.TemporaryDirectory() as work:
        for name, text in recipes.items():
            recipe = Path(work, name)
            recipe.write_text(text)
            first = ["buildah", "--root", f"{work}/store", "--runroot", f"{work}/run", "--storage-driver", "vfs"]
            made = [*first, "bud", "--isolation", "chroot", "-q", "--format", "docker", "-t", f"localhost/{name}"]
            subprocess.run([*made, "-f", str(recipe), str(folder)], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([*first, "push", "-q", f"localhost/{name}", f"oci:{folder / IMAGES}:{name}"], check=True)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
