"""Starts the node's share of the training."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.failures import CannotStart
from agent.identity import NodeIdentity
from agent.launching import bench, mpi, torchrun
from agent.launching.mpi_variables import EFA, PROCESS, SHARE, build_variables
from agent.launching.relay import CommandRelay, Meeting, tell_end, wait_for_command
from agent.metadata import Metadata
from agent.store import Store
from agent.training import RunningTraining
from agent.workspace import Workspace
from contract.cluster import Cluster
from contract.jobs import Job, Launcher
from contract.mounts import JobMount
from contract.workbench import FOLDER as BENCH

AWS_OPEN_MPI = "/opt/amazon/openmpi/bin"
"""Where EFA's installer puts Open MPI on AWS's images, which only login shells have on their PATH."""
FOLDER = "launcher"
"""Below the work folder."""


class Launch:
    """Starts what the request's `launcher` starts on this node."""

    def __init__(
        self,
        job: Job,
        node: NodeIdentity,
        workspace: Workspace,
        store: Store,
        work: Path,
        *,
        note: Callable[[str], None],
        pause: Callable[[float], None],
        tell: Callable[[str], None],
        on_failure: Callable[[float], None],
        places: Sequence[tuple[Path, JobMount]] = (),
    ) -> None:
        """`store`: the bucket of the node's region; `places`: where the machine has the job's file systems. `pause` raises what ends the
        wait, such as an order; `tell` says in the node's report what it waits for; `on_failure` gets the moment (epoch seconds) at which a
        process has failed whose launcher still ends the others."""
        self._job, self._node, self._workspace, self._store = job, node, workspace, store
        self._folder, self._note, self._pause, self._tell = work / FOLDER, note, pause, tell
        self._on_failure = on_failure
        self._work, self._places = work, places
        self._arguments = job.container.arguments if job.container else ()

    def start(
        self,
        environment: Mapping[str, str],
        metadata: Metadata,
        on_line: Callable[[str], None],
    ) -> RunningTraining:
        """Starts the training. Raises CannotStart, and on nodes that wait for rank 0's mpirun MachineTrouble and what `pause` raises."""
        job, node = self._job, self._node
        if job.workbench is not None:
            return self._start_bench(environment, on_line)
        if job.launcher is Launcher.NONE:
            return self._workspace.start(job.command, environment, on_line, self._arguments)
        if len(node.addresses) != job.nodes:
            raise CannotStart(
                f"launcher {job.launcher.value} needs the addresses of all {job.nodes} nodes, and the launch named {len(node.addresses)}: "
                "the deployment was taken back to a version without launchers"
            )
        kind = metadata.patient("instance-type", self._pause)
        cluster = Cluster(
            addresses=node.addresses, rank=node.rank, port=job.master_port, processes=job.processes_of(kind)
        )
        if job.launcher is Launcher.TORCHRUN:
            return self._start_torchrun(cluster, environment, on_line)
        return self._start_mpi(cluster, self._mpi_environment(environment, job.efas_of(kind) > 0), on_line)

    def _start_bench(self, environment: Mapping[str, str], on_line: Callable[[str], None]) -> RunningTraining:
        job, scripts, token = self._job, self._workspace.folders.launcher, bench.make_token()
        bench.lay_out(self._folder)
        folder = bench.find_folder(self._places, self._work)
        words = bench.build_words(job, scripts, BENCH if job.container else str(folder))
        inner = self._workspace.start(words, bench.add_variables(environment, scripts, token), on_line)
        for line in bench.word_way_in(self._node.region, self._node.instance, token):
            on_line(line)  # and to nothing else that the agent writes: the machine's own console may be read by others
        return bench.BenchServer(inner, job, folder, note=self._note)

    def _start_torchrun(
        self, cluster: Cluster, environment: Mapping[str, str], on_line: Callable[[str], None]
    ) -> RunningTraining:
        torchrun.lay_out(self._folder)
        worker = f"{self._workspace.folders.launcher}/{torchrun.WORKER}"
        words = cluster.build_torchrun([worker, *self._job.command])
        inner = self._workspace.start(words, environment, on_line, self._arguments)
        return torchrun.TorchrunShare(inner, self._folder, on_failure=self._on_failure)

    def _start_mpi(
        self, cluster: Cluster, environment: Mapping[str, str], on_line: Callable[[str], None]
    ) -> RunningTraining:
        job, node, scripts = self._job, self._node, self._workspace.folders.launcher
        mpi.lay_out(self._folder, cluster, [*job.command, *self._arguments])
        meeting = Meeting(store=self._store, job=job.id, attempt=node.attempt, nodes=job.nodes)
        if node.rank == 0:
            relay = CommandRelay(meeting, self._folder, note=self._note)
            words = cluster.build_mpirun([f"{scripts}/{PROCESS}"])
            inner = self._workspace.start([f"{scripts}/{SHARE}", *words], environment, on_line)
            relay.start()
            return mpi.MpiShare(
                inner, self._folder, cluster.processes, what=mpi.MPIRUN, on_end=lambda _: True, close=relay.close
            )
        self._tell("waits for rank 0's mpirun")
        most_s = job.timing.gate_allowance_s
        command = wait_for_command(meeting, node.rank, most_s=most_s, pause=self._pause, note=self._note)
        self._tell("")
        inner = self._workspace.start([f"{scripts}/{SHARE}", "/bin/sh", "-c", command], environment, on_line)
        return mpi.MpiShare(
            inner, self._folder, cluster.processes, what=mpi.DAEMON, close=lambda: None,
            on_end=lambda code: tell_end(meeting, node.rank, code, self._note),
        )  # fmt: skip

    def _mpi_environment(self, environment: Mapping[str, str], has_efa: bool) -> dict[str, str]:
        """Returns the environment with what mpirun reads; what the request sets stays."""
        ours = build_variables(self._workspace.folders.launcher, self._job.nodes) | (EFA if has_efa else {})
        whole = {**ours, **environment}
        if self._job.container is None:
            whole["PATH"] = f"{whole.get('PATH', os.defpath)}{os.pathsep}{AWS_OPEN_MPI}"
            if program := shutil.which("mpirun", path=whole["PATH"]):
                # mpirun itself finds its libraries; the processes that it starts may not.
                libraries = Path(program).parents[1] / "lib"
                whole["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (whole.get("LD_LIBRARY_PATH"), str(libraries))))
        return whole


def describe_cluster(job: Job, node: NodeIdentity) -> dict[str, str]:
    """Returns the cluster in TensorFlow's words, where there are several nodes, or roles, and all their addresses are known."""
    if (job.nodes == 1 and not job.roles) or len(node.addresses) != job.nodes:
        return {}
    return Cluster(addresses=node.addresses, rank=node.rank, port=job.master_port, roles=job.roles).build_variables()


def format_command(job: Job) -> str:
    """Returns the command with its launcher, for the log."""
    words = shlex.join(job.command) or "the entry point of the image"
    return words if job.launcher is Launcher.NONE else f"{job.launcher.value}: {words}"
