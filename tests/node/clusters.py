"""Several nodes of one attempt, each with its own agent, disk and log, and one S3 between them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from contract import tags
from contract.reports import Exit
from tests.node.fakes import FakeS3, imds
from tests.node.world import KEYS, FakeAws, Site, metadata

WAIT_S = 60.0


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
            thread.join(WAIT_S)
        return [self.ends[rank] for rank in sorted(self.ends)]

    def lines(self, rank: int) -> list[str]:
        """What the training wrote on a node."""
        return [line for line in self.sites[rank].lines if not line.startswith("[trainyard]")]
