"""The programs that start the processes of a training, and how each of them is told of several machines."""

from __future__ import annotations

from dataclasses import dataclass

from contract.cluster import SCRIPT
from contract.jobs import Launcher

Names = tuple[str, ...]
"""Options begin with a hyphen; all others are variables. An option's hyphens may be underscores, and the other way round."""
TORCHRUN_FLAGS = frozenset({"--standalone", "--virtual-local-rank", "--use-env"})
TORCHRUN_VALUES = frozenset(
    {
        "--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--max-restarts",
        "--monitor-interval", "--start-method", "--role", "--log-dir", "--redirects", "--tee", "--local-ranks-filter",
        "--node-rank", "--master-addr", "--master-port", "--local-addr", "--logs-specs", "--log-line-prefix-template", "-r", "-t",
        "--event-log-handler", "--signals-to-handle", "--shutdown-timeout", "--numa-binding", "--duplicate-stdout-filters",
        "--duplicate-stderr-filters",
    }
)  # fmt: skip
"""Options of torchrun. An option that is not here may take a value, so the script behind it is unknown."""
TORCHRUN_PROGRAM_FLAGS = frozenset({"-m", "--module", "--no-python", "--run-path"})
"""Options after which torchrun starts no script of its own Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherKind:
    """A launcher by all of its names."""

    programs: tuple[Names, ...] = ()
    """The words with which it begins."""
    modules: tuple[Names, ...] = ()
    """The same behind `python -m`."""
    needs: Names = ()
    """Beginnings and ends of words: without one of them it is another program of the name, or starts no processes."""
    joins: bool = True
    """Whether it is for several machines that each run it. Of any other it is only known that it starts processes."""
    counts: Names = ()
    """What names the number of machines."""
    counts_nodes: bool = True
    """Whether that number is one of machines, and not of processes."""
    masters: Names = ()
    """What names the address of rank 0; empty if it reads MASTER_ADDR."""
    hosts: Names = ()
    """What names the machines themselves; any word with `hostfile` in it does as well."""
    settings: Names = ()
    """What names a file that may say all of it, if the command writes it first."""
    alone: Names = ()
    """What keeps it to one machine."""
    processes: str = ""
    """The option that names the processes of each machine."""
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Its further options, those with a value apart; where these are all, the first other word is what it starts."""
    is_whole: bool = False
    """Whether these are all."""
    instead: Launcher = Launcher.NONE
    """Which launcher of a request does the same."""
    own: str = ""
    """How it is told of the machines itself: {nodes}, {rank}, {address} and {port} stand for variables."""


TORCHRUN = LauncherKind(
    programs=(("torchrun",), ("dlrover-run",)),
    modules=(("torch.distributed.run",), ("torch.distributed.launch",)),
    counts=("--nnodes", "PET_NNODES"),
    masters=("--master-addr", "--rdzv-endpoint", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"),
    alone=("--standalone",),
    processes="--nproc-per-node",
    flags=TORCHRUN_FLAGS | TORCHRUN_PROGRAM_FLAGS,
    values=TORCHRUN_VALUES,
    is_whole=True,
    instead=Launcher.TORCHRUN,
    own="torchrun --nnodes {nodes} --node-rank {rank} --master-addr {address} --master-port {port} ...",
)
ACCELERATE = LauncherKind(
    programs=(("accelerate", "launch"), ("accelerate-launch",)),
    modules=(("accelerate.commands.launch",), ("accelerate.commands.accelerate_cli", "launch"), ("accelerate", "launch")),
    counts=("--num_machines",),
    masters=("--main_process_ip",),
    settings=("--config_file",),
    flags=frozenset(
        {
            "--multi-gpu", "--cpu", "--tpu", "--use-deepspeed", "--use-fsdp", "--use-megatron-lm", "--use-parallelism-config", "--ipex",
            "--use-xpu", "-m", "--module", "--no-python", "-q", "--quiet", "--debug", "--enable-cpu-affinity", "--same-network",
        }
    ),
    values=frozenset(
        {
            "--num-processes", "--machine-rank", "--main-process-port", "--mixed-precision", "--dynamo-backend",
            "--gpu-ids", "--rdzv-backend", "--rdzv-conf", "--max-restarts", "--deepspeed-config-file", "--zero-stage",
            "--gradient-accumulation-steps", "--main-training-function", "--deepspeed-multinode-launcher",
        }
    ),
    instead=Launcher.TORCHRUN,
    own="accelerate launch --num_machines {nodes} --machine_rank {rank} --main_process_ip {address} --main_process_port {port} ... (with "
    "--num_processes for all nodes together)",
)  # fmt: skip
DEEPSPEED = LauncherKind(
    programs=(("deepspeed",), ("deepspeed.pt",)),
    modules=(("deepspeed.launcher.runner",), ("deepspeed.launcher.launch",)),
    counts=("--num_nodes",),
    masters=("--master_addr",),
    hosts=("--hostfile", "-H", "--world_info", "--no_ssh"),
    processes="--num_gpus",
    values=frozenset(
        {"--num-gpus", "--master-port", "--node-rank", "-i", "--include", "-e", "--exclude", "--launcher"}
    ),
    flags=frozenset(
        {"--module", "--no-python", "--no-local-rank", "--force-multi", "--elastic-training", "--save-pid"}
    ),
    instead=Launcher.TORCHRUN,
)
MPI_HOSTS = ("-H", "-host", "--host", "-hosts", "--hosts", "-machinefile", "--machinefile", "--machine-file", "-f")
MPIRUN = LauncherKind(
    programs=tuple(
        (name,)
        for name in (
            "mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra",
            # Debian's names for those of two MPIs side by side.
            "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich",
        )
    ),
    hosts=(*MPI_HOSTS, "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
    instead=Launcher.MPI,
)  # fmt: skip
LAUNCHERS = (
    TORCHRUN,
    ACCELERATE,
    DEEPSPEED,
    MPIRUN,
    LauncherKind(
        programs=(("horovodrun",),),
        modules=(("horovod.runner.launch",), ("horovod.runner",), ("horovod.run",)),
        hosts=("-H", "--hosts", "--host-discovery-script"),
        instead=Launcher.MPI,
    ),
    LauncherKind(
        programs=(("colossalai", "run"),),
        modules=(("colossalai.cli", "run"),),
        counts=("--num_nodes",),
        masters=("--master_addr",),
        hosts=("-H", "--host", "--hostfile"),
        processes="--nproc_per_node",
        instead=Launcher.TORCHRUN,
    ),
    LauncherKind(
        programs=(("composer",),),
        modules=(("composer.cli",), ("composer.cli.launcher",)),
        needs=(SCRIPT,),
        counts=("--world_size", "WORLD_SIZE"),
        counts_nodes=False,
        processes="-n",
        instead=Launcher.TORCHRUN,
    ),
    LauncherKind(
        programs=(("lightning", "run"), ("fabric", "run"), ("lightning", "fabric", "run")),
        modules=(("lightning", "run"), ("lightning.fabric.cli", "run"), ("lightning_fabric.cli", "run")),
        needs=(SCRIPT,),
        counts=("--num_nodes",),
        masters=("--main_address",),
        instead=Launcher.TORCHRUN,
        own="fabric run --num-nodes {nodes} --node-rank {rank} --main-address {address} --main-port {port} ...",
    ),
    LauncherKind(
        programs=(("fleetrun",),),
        modules=(("paddle.distributed.launch",),),
        counts=("--nnodes", "PADDLE_NNODES"),
        masters=("--master", "PADDLE_MASTER"),
        hosts=("--ips", "--cluster_node_ips"),
        own="python -m paddle.distributed.launch --nnodes {nodes} --master {address}:{port} ...",
    ),
    LauncherKind(
        programs=(("tune", "run"),),
        needs=("--nproc", "--nnodes", "--standalone"),
        counts=TORCHRUN.counts,
        masters=TORCHRUN.masters,
        alone=TORCHRUN.alone,
        flags=TORCHRUN.flags,
        values=TORCHRUN.values,
        own="tune run --nnodes {nodes} --node-rank {rank} --master-addr {address} --master-port {port} ...",
    ),
    LauncherKind(
        programs=(
            ("srun",),
            ("jsrun",),
            ("ray", "start"),
            ("ray", "job", "submit"),
            ("ray", "submit"),
            ("torchx", "run"),
        ),
        joins=False,
    ),
)
