"""What a build takes from this computer and leaves out of the image: pip's settings, certificates, proxies, the machine image's libraries.

The settings become one file, mounted over the base's empty /etc/pip.conf for the time of the build. Folders that they name are mounted at
places that the base has for them. Passwords of an index or of a proxy are left out, because a build runs whatever its Dockerfile says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localaws.containers.base import FRAMEWORKS, INPUTS, MOST_INPUTS, OPEN_MPI, python_of
from localaws.machines import image
from localaws.surroundings import without_passwords

KEPT = "inputs.json"
MACHINE_IMAGE = Path(__file__).parents[2] / "build" / "ami"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
RANKS = ("global", "user", "site", ":env:")
"""Where pip finds settings; a later one wins."""
LEFT_OUT = ("cert", "cache-dir", "require-virtualenv", "target", "user", "prefix", "root", "log")
"""Settings that name places of this computer which mean nothing in an image."""


def keep(images: Path) -> None:
    """Looks the inputs up with the environment of whoever rehearses, which a build does not have, and keeps them beside the images."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    settings, volumes = pip_settings(listed.stdout.splitlines() if listed.returncode == 0 else [])
    file = images / "pip.conf"
    file.touch(mode=0o600)  # what it says of the network is nobody else's
    file.write_text(settings)
    bundle = next((one for one in _bundles(listed.stdout.splitlines()) if Path(one).is_file()), "")
    volumes = {str(file): "/etc/pip.conf", **({bundle: CERTIFICATES} if bundle else {}), **volumes}
    proxies = {name: without_passwords(value) for name, value in os.environ.items() if name.lower() in PROXIES}
    (images / KEPT).write_text(json.dumps({"volumes": volumes, "proxies": proxies}))


def kept(images: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Returns folders and files of this computer with their places in a build, and the variables of proxies."""
    found: Mapping[str, Any] = json.loads((images / KEPT).read_text())
    return dict(found["volumes"]), dict(found["proxies"])


def frameworks() -> Path | None:
    """Returns the libraries of the machine image; None where it has another Python than the base."""
    folder = MACHINE_IMAGE.absolute() / "lib" / python_of() / "site-packages"
    return folder if folder.is_dir() else None


def framework_mounts() -> dict[str, str]:
    """Returns what of the machine image containers of AWS's have, with its places there."""
    if (found := frameworks()) is None:
        return {}
    return {str(found): FRAMEWORKS, str(MACHINE_IMAGE.absolute() / image.OPEN_MPI): OPEN_MPI}


def pip_settings(listed: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Returns a settings file from the lines of `pip config list`, and the folders that it names with their places in the build."""
    by_rank: dict[str, dict[str, str]] = {}
    for line in listed:
        name, equals, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if equals and section:
            by_rank.setdefault(section, {})[option] = value.strip("'\"").replace("\\n", "\n")
    whole = {option: value for rank in RANKS for option, value in by_rank.get(rank, {}).items()}
    volumes: dict[str, str] = {}
    told = {
        option: " ".join(_inside(word, volumes) for word in without_passwords(value).split())
        for option, value in whole.items()
        if option not in LEFT_OUT
    }
    return "[global]\n" + "".join(f"{option} = {value}\n" for option, value in told.items()), volumes


def _inside(word: str, volumes: dict[str, str]) -> str:
    """Returns the word as it is in the build; a folder of this computer gets the next place."""
    address = word.startswith("file://")
    path = Path(word.removeprefix("file://"))
    if not path.is_absolute() or not path.exists():
        return word
    # The pages of an index name files beside it.
    folder = path.parent if (address or path.is_file()) and path.parent != Path("/") else path
    place = volumes.setdefault(str(folder), f"{INPUTS}/{len(volumes)}")
    if len(volumes) > MOST_INPUTS:
        raise SystemExit(
            f"pip's settings name more than {MOST_INPUTS} folders of this computer, and a build has no more places"
        )
    inside = place if path == folder else f"{place}/{path.relative_to(folder)}"
    return f"file://{inside}" if address else inside


def _bundles(listed: Iterable[str]) -> list[str]:
    given = [line.partition("=")[2].strip("'\"") for line in listed if line.partition("=")[0].endswith(".cert")]
    return [*given, os.environ.get("SSL_CERT_FILE", ""), CERTIFICATES]
