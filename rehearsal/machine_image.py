"""Makes the stand-in for the deep-learning AMI: a virtual environment with PyTorch and the AWS command line."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements-ami.in")
USED = "import awscli.clidriver, numpy, torch.distributed.run"
"""What jobs import first. Compiled once, here; the rest of PyTorch, which pip would compile as well, hardly any job imports."""


def make(folder: Path) -> None:
    """Creates or updates the environment in `folder`; raises CalledProcessError with pip's words when a package is missing."""
    if not (folder / "bin" / "pip").exists():
        venv.EnvBuilder(with_pip=True).create(folder)
    pip = [str(folder / "bin" / "pip"), "--disable-pip-version-check", "--cache-dir", str(folder.parent / "pip-cache")]
    print(f"Making the stand-in for the deep-learning AMI ({folder}) ...", flush=True)
    if large := _accelerator_packages(pip):
        print(
            f"  no CPU build of PyTorch for this Python: {large} CUDA packages come with it, about 3 GB to download",
            flush=True,
        )
    subprocess.run([*pip, "install", "-q", "--no-compile", "-r", str(REQUIREMENTS)], check=True)
    subprocess.run([str(folder / "bin" / "python"), "-c", USED], check=True)


def _accelerator_packages(pip: list[str]) -> int:
    """How many of the packages that would be installed are there for GPUs only."""
    plan = subprocess.run(
        [*pip, "install", "-q", "--dry-run", "--report", "-", "-r", str(REQUIREMENTS)],
        check=True,
        stdout=subprocess.PIPE,
    )
    names = [package["metadata"]["name"] for package in json.loads(plan.stdout)["install"]]
    return sum(name.startswith(("nvidia-", "triton", "cuda-")) for name in names)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
