"""Starts a program under mpirun as AWS's toolkit does: the first host runs mpirun, the others wait for its daemon and end with it.

What it does is read from the toolkit's own sources (aws/sagemaker-training-toolkit: mpi.py, runner.py, process.py). In the place of ssh and
its daemon, which hosts of one computer cannot have, stands `containers/remote_shell.py`. The toolkit's words are those of Open MPI 4; here
`--bind-to` and `--map-by` have two dashes, because Open MPI 5 takes no others.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from localaws.containers import remote_shell

ENABLED, PER_HOST = "sagemaker_mpi_enabled", "sagemaker_mpi_num_of_processes_per_host"
TOTAL, OPTIONS = "sagemaker_mpi_num_processes", "sagemaker_mpi_custom_mpi_options"
INTERFACE = "lo"
PYTHON = ("-m", "mpi4py")
"""The program's Python ends all ranks when one of them raises."""
EXPORTED = ("PATH", "LD_LIBRARY_PATH")
"""Variables that every process gets from the first host, beside those of the toolkit itself. SM_CURRENT_HOST is among those: it names the
first host everywhere."""
SHELL_FOLDER = "/run/remote-shell"
"""Where containers with a root of their own find the folder that all hosts of a training share."""
LATE_S = 30.0
"""How long the other hosts may outlast mpirun; AWS's toolkit sleeps as long before it looks for the end."""
MARK = re.compile(r"^\[(\d+),(\d+)\]<(stdout|stderr)>")
ONE_COMPUTER = {
    "PRTE_MCA_prte_leave_session_attached": "1",
    "OMPI_MCA_orte_leave_session_attached": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "OMPI_MCA_coll": "^han",
}
"""What Open MPI (5, and 4 by its own names) needs where all hosts are one computer: daemons that stay with the command which started them,
each started by the first host, and no collective operations that tell hosts apart by their names, which are equal."""


def is_enabled(given: Mapping[str, Any]) -> bool:
    """Any value but JSON's false ones enables it, as in the toolkit."""
    return bool(given.get(ENABLED))


def count_processes(given: Mapping[str, Any]) -> int:
    """Returns the processes of each host: one, unless a hyperparameter says otherwise, as no host has GPUs."""
    return int(given.get(PER_HOST) or 1)


def share_shell(folder: Path) -> None:
    """Writes what stands for ssh into the folder that all hosts of a training share."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(remote_shell.__file__), folder / "remote_shell.py")
    script = folder / "ssh"
    script.write_text('#!/bin/sh\nexec python -I -S "${0%/*}/remote_shell.py" "$@"\n')
    script.chmod(0o755)


def build_mpirun(
    program: Sequence[str], addresses: Sequence[str], given: Mapping[str, Any], variables: Iterable[str]
) -> list[str]:
    """Returns the first host's command; `variables` are the names that every process gets from it. The shell says that an image has no
    mpirun."""
    each = count_processes(given)
    known, options = _read_options(str(given.get(OPTIONS) or ""))
    words = ["mpirun", "--host", ",".join(one if each == 1 else f"{one}:{each}" for one in addresses)]
    words += ["-np", str(given.get(TOTAL) or each * len(addresses)), "--allow-run-as-root", "--display-map"]
    words += ["--tag-output", "--bind-to", "none", "--map-by", "slot"]
    for name, value in (
        ("btl_tcp_if_include", INTERFACE),
        ("oob_tcp_if_include", INTERFACE),
        ("plm_rsh_no_tree_spawn", "1"),
        ("pml", "ob1"),
        ("btl", "^openib"),
        ("orte_abort_on_non_zero_status", "1"),
        ("btl_vader_single_copy_mechanism", "none"),
    ):
        words += ["-mca", name, value]
    for name in ("NCCL_MIN_NRINGS=4", f"NCCL_SOCKET_IFNAME={INTERFACE}", f"NCCL_DEBUG={known}"):
        words += ["-x", name]
    words += options
    for name in variables:
        words += ["-x", name]
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *words, *program]


def build_worker(folder: str, address: str) -> list[str]:
    """Returns the command of another host."""
    return ["python", "-I", "-S", f"{folder}/remote_shell.py", "serve", address]


def begin_in_own_code(program: Sequence[str]) -> list[str]:
    """Returns the program as a host without a root of its own begins it: mpirun gives it the first host's working folder."""
    return ["/bin/sh", "-c", 'cd "$SAGEMAKER_BASE_DIR/code" && exec "$@"', "sh", *program]


def name_host(line: str, processes: int) -> str:
    """Returns a line of mpirun's output with the rank's host in its mark, as the toolkit prints it."""
    return MARK.sub(lambda one: f"[{one[1]},mpirank:{one[2]},algo-{int(one[2]) // processes + 1}]<{one[3]}>", line)


def _read_options(text: str) -> tuple[str, list[str]]:
    """Returns the value of the one option that the toolkit knows, and all others as the shell reads them."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--NCCL_DEBUG", default="INFO")
    known, others = parser.parse_known_args(shlex.split(text))
    return str(known.NCCL_DEBUG), others
