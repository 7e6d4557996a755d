"""Several nodes of one attempt, each with its own agent, disk and log, and one S3 between them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from contract import tags
from contract.orders import Order, OrderKind
from contract.reports import Exit
from localaws.testing.waiting import HANG_S, until
from tests.node.fakes import FakeS3, imds
from tests.node.world import KEYS, FakeAws, Site, metadata

SUM = """
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
assert os.environ["RANK"] == str(world.rank) and os.environ["WORLD_SIZE"] == str(world.size)
line = f"process {world.rank} of {world.size} on node {os.environ['NODE_RANK']} sums to {world.allreduce(world.rank + 1)}"
os.write(1, f"{line}\\n".encode())  # at once: the processes of a node share the way to its log
"""
TRAINS = """
import os, pathlib, signal, sys, time
from mpi4py import MPI
world, asked = MPI.COMM_WORLD, []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
pathlib.Path(os.environ["ARTIFACTS_DIR"], f"pid-{world.rank}").write_text(f"{os.getpid()} {os.getppid()}")
print("trains", flush=True)
while not world.allreduce(len(asked), MPI.MAX):
    time.sleep(0.02)
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # another node's order comes later, and Python takes handlers away as it ends
print("leaves", flush=True)
time.sleep(float(os.environ.get("SAVES_FOR_S", "0")) * (world.rank == 1))
pathlib.Path(os.environ["CHECKPOINT_DIR"], f"saved-{world.rank}").write_text("whole")
"""


@dataclass
class Cluster:
    """The nodes by rank."""

    sites: Sequence[Site]

    @classmethod
    def of(cls, stack: ExitStack, folder: Path, nodes: int) -> Cluster:
        s3, sites = FakeS3(), list[Site]()
        addresses = tuple(f"127.20.{folder.stat().st_ino % 250}.{rank + 4}" for rank in range(nodes))
        for rank in range(nodes):
            service = stack.enter_context(imds(metadata(rank=rank)))
            service.values |= {f"tags/instance/{tags.MASTER_ADDRESS}": addresses[0], "instance-type": "m7i.large"}
            aws, root = FakeAws(), folder / f"node-{rank}"
            aws.s3 = s3
            root.mkdir()
            site = Site(root, service, aws, rank=rank, gets_keys=False)
            site.give_credentials(replace(KEYS, addresses=addresses))
            sites.append(site)
        return cls(sites)

    def offer(self, script: str, **changes: object) -> None:
        """Admits a job for all of them."""
        for site in self.sites:
            site.offer(script, nodes=len(self.sites), **changes)

    def start(self, ranks: Sequence[int] = ()) -> list[threading.Thread]:
        """Boots the nodes of these ranks, or every node."""
        self.ends: dict[int, Exit] = {}

        def run(site: Site) -> None:
            self.ends[site.rank] = site.run()

        threads = [
            threading.Thread(target=run, args=(site,), daemon=True)
            for site in self.sites
            if not ranks or site.rank in ranks
        ]
        for thread in threads:
            thread.start()
        return threads

    def run(self) -> list[Exit]:
        """Boots every node, and returns how each ended, by rank."""
        for thread in self.start():
            thread.join(HANG_S)
        return [self.ends[rank] for rank in sorted(self.ends)]

    def end_by_order(self, threads: Sequence[threading.Thread], kind: OrderKind, error: str, reason: str) -> None:
        """Orders every node to end, and waits until it has."""
        for site in self.sites:
            site.order(Order(kind=kind, error=error, reason=reason, by=2**31, author="attendant"))
        for thread in threads:
            thread.join(HANG_S)

    def lines(self, rank: int) -> list[str]:
        """What the training wrote on a node."""
        return [line for line in self.sites[rank].lines if not line.startswith("[trainyard]")]


def once_all_train(cluster: Cluster) -> dict[int, tuple[int, int]]:
    """Waits until every process trains. Returns the process id of each, and that of the shell around it."""
    until(lambda: all("trains" in cluster.lines(rank) for rank in range(3)))
    found = {}
    for rank, site in enumerate(cluster.sites):
        pid, parent = (site.root / f"var/lib/trainyard/artifacts/pid-{rank}").read_text().split()
        found[rank] = int(pid), int(parent)
    return found


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
