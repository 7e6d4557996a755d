"""Describes the cluster of an attempt in the words of those who start processes on it: TensorFlow, torchrun, mpirun."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from contract.roles import Role, find_place
from contract.training import CLUSTER_SPEC, ROLE, ROLE_ADDRESSES, ROLE_RANK, TF_CONFIG

WORKER = "worker"
"""The role of every node of a job without roles."""
SCRIPT = ".py"
"""How a command begins that torchrun runs with its own Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes of an attempt, as one of them sees them."""

    addresses: tuple[str, ...]
    """Private addresses by rank."""
    rank: int
    """Of the node."""
    port: int
    """At which rank 0 listens (MASTER_PORT)."""
    processes: int = 1
    """Of each node."""
    roles: tuple[Role, ...] = ()
    """Those of the job; empty where every node is a worker."""

    @property
    def world_size(self) -> int:
        """Returns the number of all processes."""
        return len(self.addresses) * self.processes

    def build_variables(self) -> dict[str, str]:
        """Returns TF_CONFIG, as TFConfigClusterResolver of tf.distribute reads it (`cluster`: role to addresses with ports; `task`: role
        and index of this node), and CLUSTER_SPEC, the cluster alone, as tf.train.ClusterSpec takes it. With roles, also what programs
        need that read neither: the node's role, its place in it, and the addresses of each role."""
        place = find_place(self.roles, self.rank)
        each = self._sort_addresses()
        spec = {
            name: [f"{one}:{self.port}" for one in some] for name, some in each.items() if self._is_in_cluster(name)
        }
        task = {"type": place.role.name, "index": place.index} if place else {"type": WORKER, "index": self.rank}
        told = {TF_CONFIG: json.dumps({"cluster": spec, "task": task}), CLUSTER_SPEC: json.dumps(spec)}
        if place is None:
            return told
        addresses = {f"{ROLE_ADDRESSES}{name.upper()}": ",".join(some) for name, some in each.items()}
        return {**told, ROLE: place.role.name, ROLE_RANK: str(place.index), **addresses}

    def _sort_addresses(self) -> dict[str, Sequence[str]]:
        """Returns the addresses by role, in the order of ranks."""
        left, found = self.addresses, dict[str, Sequence[str]]()
        for role in self.roles:
            found[role.name], left = left[: role.count], left[role.count :]
        return found or {WORKER: self.addresses}

    def _is_in_cluster(self, name: str) -> bool:
        return all(role.is_in_cluster for role in self.roles if role.name == name)

    def build_torchrun(self, command: Sequence[str]) -> list[str]:
        """Returns the command with torchrun before it. The rendezvous is static: rank 0's address is known, and torchrun's own restarts
        would go on with fewer nodes or without a checkpoint. A new attempt restarts all."""
        words = ["torchrun", "--nnodes", str(len(self.addresses)), "--node-rank", str(self.rank)]
        words += ["--nproc-per-node", str(self.processes), "--max-restarts", "0"]
        words += ["--master-addr", self.addresses[0], "--master-port", str(self.port)]
        return [*words, *([] if command[0].endswith(SCRIPT) else ["--no-python"]), *command]

    def build_mpirun(self, command: Sequence[str]) -> list[str]:
        """Returns the command with mpirun before it, for rank 0. Its hosts are in files, whose form depends on whose mpirun it is."""
        return ["mpirun", "-np", str(self.world_size), *command]

    def format_open_mpi_hosts(self) -> str:
        """Returns Open MPI's host file: a line a node, with its processes as slots."""
        return "".join(f"{one} slots={self.processes}\n" for one in self.addresses)

    def format_hydra_hosts(self) -> str:
        """Returns the host file of Hydra (MPICH, Intel MPI, MVAPICH): a line a node, with its processes behind a colon."""
        return "".join(f"{one}:{self.processes}\n" for one in self.addresses)
