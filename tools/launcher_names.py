"""What starts the processes of a training, in the words of a job here and of a line in SageMaker: torchrun and mpirun."""

from __future__ import annotations

from dataclasses import dataclass

from contract import training
from contract.jobs import Launcher
from grid_plan import columns
from tools.container_names import HOSTS

TORCHRUN, MPI = Launcher.TORCHRUN.value, Launcher.MPI.value
FIRST_LOG = "<training>/algo-1-..."
OPEN_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE")
OURS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
"""What a node sets for a process under mpirun."""
TORCH = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")


@dataclass(frozen=True, kw_only=True)
class LauncherName:
    """One thing under each launcher, on each side; names of the code stand in backticks."""

    what: str
    job_torchrun: str
    job_mpi: str
    line_torchrun: str
    line_mpi: str

    @property
    def cells(self) -> tuple[str, ...]:
        return self.job_torchrun, self.job_mpi, self.line_torchrun, self.line_mpi


def _name(*names: str) -> str:
    return ", ".join(f"`{one}`" for one in names)


NODE = _name(training.NODE_RANK, training.NUM_NODES)
MASTER = _name(training.MASTER_ADDR, training.MASTER_PORT)
CLUSTER = f"{_name(training.TF_CONFIG, training.CLUSTER_SPEC)}, in a training of several nodes"
LAUNCHERS = (
    LauncherName(
        what="asked for by",
        job_torchrun=f'`launcher`: `"{TORCHRUN}"`',
        job_mpi=f'`launcher`: `"{MPI}"`',
        line_torchrun=f'`distribution`: `"{columns.TORCHRUN}"`',
        line_mpi=f'`distribution`: `"{columns.MPI}"`',
    ),
    LauncherName(
        what="processes of each machine",
        job_torchrun="`processes_per_node`; without it one an accelerator, or one",
        job_mpi="`processes_per_node`; without it one an accelerator, or one",
        line_torchrun="one a GPU or Neuron core, or one",
        line_mpi="`processes_per_host`; without it one a GPU or Neuron core, or one",
    ),
    LauncherName(
        what="further options",
        job_torchrun="none: write the `torchrun` into `command`, without `launcher`",
        job_mpi="variables of mpirun in `environment`, as in `OMPI_MCA_btl_tcp_if_include`",
        line_torchrun="none: write the `torchrun` into `entrypoint`, without `distribution`",
        line_mpi="`mpi_options`",
    ),
    LauncherName(
        what="the program",
        job_torchrun="`command`: a first word that ends in `.py` is run by torchrun's Python, any other as a program",
        job_mpi="`command`, as it stands",
        line_torchrun="`program`, or that of the image, by AWS's toolkit: a `.py`. A line with `entrypoint` has no launcher",
        line_mpi="the same; a `.py` is run as `python -m mpi4py`, any other under a shell. A line with `entrypoint` has no launcher",
    ),
    LauncherName(
        what="what the image has to bring",
        job_torchrun="torchrun",
        job_mpi="mpirun: Open MPI 4 or 5, or one with Hydra (MPICH, Intel MPI). No ssh",
        line_torchrun="AWS's toolkit and PyTorch",
        line_mpi="AWS's toolkit, sshd, mpi4py and Open MPI 4, as AWS's containers do; Open MPI 5 refuses the toolkit's "
        "`-bind-to`, which has one dash",
    ),
    LauncherName(
        what="this process among all",
        job_torchrun=_name(*TORCH),
        job_mpi=f"{_name(*OURS)}, whosever mpirun it is; or ask MPI",
        line_torchrun=_name(*TORCH),
        line_mpi=f"{_name(*OPEN_MPI)}; or ask MPI",
    ),
    LauncherName(
        what="this machine among all",
        job_torchrun=NODE,
        job_mpi=NODE,
        line_torchrun="`SM_CURRENT_HOST` in `SM_HOSTS`",
        line_mpi=f"`{HOSTS}`: `SM_CURRENT_HOST` is the first host's in every process, as mpirun passes it on",
    ),
    LauncherName(
        what="address and port of the first machine",
        job_torchrun=MASTER,
        job_mpi=MASTER,
        line_torchrun=_name("MASTER_ADDR", "MASTER_PORT"),
        line_mpi=f"{_name('MASTER_ADDR', 'MASTER_PORT')} in AWS's PyTorch containers; first of `SM_HOSTS` in all",
    ),
    LauncherName(
        what="addresses of all machines",
        job_torchrun=CLUSTER,
        job_mpi=CLUSTER,
        line_torchrun="`SM_HOSTS`, which are host names",
        line_mpi="`SM_HOSTS`, which are host names",
    ),
    LauncherName(
        what="one process fails",
        job_torchrun="its node's torchrun ends the node's others and fails; the agents end all other nodes",
        job_mpi="mpirun ends all others; the agents end what is left",
        line_torchrun="its host's torchrun ends the host's others and fails; SageMaker ends all other hosts",
        line_mpi="mpirun on the first host ends all others and fails, and with it the training",
    ),
    LauncherName(
        what="why it failed",
        job_torchrun="the exit code of the process that failed first, and the last lines of its node's log",
        job_mpi="the exit code of the process that failed first, and the last lines of its node's log",
        line_torchrun="`ExecuteUserScriptError` with the lines from the first error on",
        line_mpi="`ExecuteUserScriptError` with mpirun's exit code, and the lines from the first error on",
    ),
    LauncherName(
        what="output arrives",
        job_torchrun="in the log of the process's own node",
        job_mpi="in the log of the process's own node",
        line_torchrun="in the log of the process's own host",
        line_mpi=f"all in that of the first host, `{FIRST_LOG}`; each line begins with its rank and host, as in "
        "`[1,mpirank:3,algo-2]<stdout>:`",
    ),
)
