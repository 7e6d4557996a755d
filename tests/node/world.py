"""A whole node in a folder: a job, its code archive, metadata, and the agent run against the fakes."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.aws import Aws
from agent.credentials import JobCredentials
from agent.work import World, work
from contract import items, tags
from contract.codec import decode, encode
from contract.jobs import Job
from contract.keys import JobPrefix
from contract.orders import Order
from contract.reports import Exit, NodeReport
from contract.sessions import SessionCredentials
from contract.timing import Timing
from localaws.testing.waiting import HANG_S
from tests import builders
from tests.node.fakes import FakeImds, FakeLogs, FakeS3, refusal
from tests.node.table import NAME, ROLE, NodeTable

FAST = Timing(
    report_every_s=0.2,
    orders_every_s=0.05,
    metadata_every_s=0.05,
    logs_every_s=0.1,
    stop_grace_s=HANG_S,
    boot_allowance_s=HANG_S,
    meet_allowance_s=HANG_S,
    deadline_notice_s=2.0,
)
"""Often, and patient: what a trainer or a peer has to do in time it does on any machine. A test that waits in vain shortens that."""
REGION = "eu-central-1"
KEYS = SessionCredentials(access_key="ASIAJOB", secret_key="s", token="t", expires=2e9)


def archive(files: Mapping[str, str]) -> bytes:
    """A tar.gz of text files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def metadata(job: str = "job-1", attempt: int = 1, rank: int = 0) -> dict[str, str]:
    """What the service of a node says once every tag is there."""
    return {
        f"tags/instance/{tags.DEPLOYMENT}": "yard",
        f"tags/instance/{tags.JOB}": job,
        f"tags/instance/{tags.ATTEMPT}": str(attempt),
        f"tags/instance/{tags.DEADLINE}": str(int(time.time()) + 3600),
        f"tags/instance/{tags.MASTER_ADDRESS}": "10.0.0.5",
        "ami-launch-index": str(rank),
        "instance-id": f"i-{rank:017x}",
        "placement/region": REGION,
    }


class FakeAws(Aws):
    """One account, one S3 for every region."""

    def __init__(self) -> None:
        super().__init__()
        self.s3, self.table, self.logs, self.secrets = FakeS3(), NodeTable(), FakeLogs(), dict[str, str]()
        self.used: list[SessionCredentials] = []
        """The credentials of the job that the agent used."""
        self.without_credentials = 0
        """So many looks find none yet."""

    def has_credentials(self) -> bool:
        self.without_credentials -= 1
        return self.without_credentials < 0

    def use(self, credentials: JobCredentials) -> None:
        self.job_credentials = credentials
        self.used.append(credentials.current())

    def client(self, service: str, region: str) -> Any:  # noqa: ARG002
        assert service == "dynamodb" or self.used, f"{service} is reached with the credentials of the job alone"
        return {"s3": self.s3, "dynamodb": self.table, "logs": self.logs}[service]

    def secret(self, region: str, arn: str) -> str:  # noqa: ARG002
        assert self.used
        if arn not in self.secrets:
            raise refusal("ResourceNotFoundException")
        return self.secrets[arn]


@dataclass
class Site:
    """One account and one machine."""

    root: Path
    imds: FakeImds
    aws: FakeAws = field(default_factory=FakeAws)
    job: Job = field(default_factory=lambda: replace(builders.JOB, timing=FAST, admitted_at=time.time()))
    rank: int = 0
    attempt: int = 1
    now: Callable[[], float] = time.time
    """The node's own clock."""
    sleep: Callable[[float], None] = time.sleep
    """How the agent waits for what answers later: metadata, keys, the last report."""
    gets_keys: bool = True

    def offer(self, script: str, **changes: object) -> None:
        """Admits a job that runs `script` as train.py."""
        command = changes.pop("command", ("python", "train.py"))
        files = changes.pop("files", {})
        now = time.time()
        facts = {"admitted_at": now, "deadline": int(now) + 3600, "command": command, **changes}
        self.job = replace(self.job, **facts)  # type: ignore[arg-type]
        self.imds.values[f"tags/instance/{tags.DEADLINE}"] = str(self.job.deadline)
        home = self.job.home_bucket
        if self.job.code is not None:
            self.aws.s3.objects[home, self.job.code.key] = archive({"train.py": script, **files})  # type: ignore[dict-item]
        self.aws.s3.objects[home, JobPrefix(self.job.id).description] = encode(self.job)

    def order(self, order: Order) -> None:
        """Gives the node its copy, as the attendant does."""
        self.put_order(encode(order))

    def put_order(self, document: bytes) -> None:
        self.aws.table.give(items.node_order(ROLE, self.instance), document)

    def give_credentials(self, credentials: SessionCredentials = KEYS) -> None:
        """Gives the node credentials of its job, as the attendant does."""
        self.aws.table.give(items.node_credentials(ROLE, self.instance), encode(credentials))

    def run(self) -> Exit:
        """The agent, in this process; the attendant was there before."""
        if self.gets_keys:
            self.give_credentials()
        return work(
            World(
                root=self.root,
                home_region=REGION,
                home_bucket=self.job.home_bucket,
                table=NAME,
                role=ROLE,
                booted=self.now(),
                metadata=self.imds.metadata,
                aws=self.aws,
                variables={
                    **os.environ,
                    "TRAINYARD_HOME_BUCKET": "x",
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    # Two mpiruns of one computer that begin at once in one folder may end with code 213: "listener thread failed to start".
                    "TMPDIR": str(self._make_temporary()),
                },
                now=self.now,
                sleep=self.sleep,
            )
        )

    def _make_temporary(self) -> Path:
        folder = self.root / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def instance(self) -> str:
        return self.imds.values["instance-id"]

    def sent(self, *, urgent: bool = False) -> list[NodeReport]:
        """The reports that arrived, in order; or the urgent ones."""
        written = (item for item in self.aws.table.written if not urgent or items.URGENT in item)
        return [decode(NodeReport, items.unpacked(item)) for item in written]

    def report(self, *, urgent: bool = False) -> NodeReport:
        """The last one."""
        return self.sent(urgent=urgent)[-1]

    @property
    def lines(self) -> list[str]:
        return self.aws.logs.lines
