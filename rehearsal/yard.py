"""A whole account on this computer with the product deployed in it, and the jobs that a person may start there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from contract import keys, names, tags
from contract.codec import decode
from contract.images import CHILD_BASE
from contract.jobs import Job
from contract.mounts import Kind
from contract.reports import NodeReport
from localaws.account import DEPLOYER
from localaws.conditions import Conditions
from localaws.conditions import Fault as AnyFault
from localaws.containers import real
from localaws.containers.images import publish
from localaws.machines import file_systems
from localaws.machines.nodes import Nodes
from localaws.ports import APART, Port
from localaws.server import LocalAws
from localaws.services import ec2, kubernetes
from rehearsal.account import DeployedAccount, guard
from rehearsal.deployment import ACCOUNT, Cdk, Deployed, DeploymentFailed, bring_up, context
from rehearsal.faults import Fault, to_faults
from rehearsal.node_faults import NodeFaults
from rehearsal.packing import pack
from rehearsal.parts import Parts
from rehearsal.state import reports

RUNNING = "RUNNING"
MASTER_PORT = 29500
"""The first port that a yard tries, and the one in the settings."""
GAPS = ("ec2", "cloudformation", "ssm", "ecr", "codebuild", "sagemaker", "batch", "rds_data", "kubernetes")
"""Gaps that the product needs of the local AWS, beyond those of every local AWS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things are in the deployed account."""

    region: str
    machine: str
    """ARN of the Train machine."""
    home: str
    """Name of the home bucket."""
    bytes_: str
    log_group: str
    topic: str
    """ARN of the topic that people subscribe to."""


class Yard:
    """Deploys on entering; on leaving, ends everything that it started, whatever happened."""

    def __init__(
        self,
        work: Path,
        conditions: Conditions,
        *,
        settings: Mapping[str, Any] | None = None,
        wanted: Sequence[str] = (),
        parts: Parts | None = None,
        real_images: bool = False,
        file_systems: Mapping[str, str] | None = None,
    ) -> None:
        """`work` receives whatever the yard writes; `settings` replaces keys of cdk.json's block. The yard chooses a `master_port` that no
        other rehearsal on this computer has, unless it is given. `wanted` are the stacks to deploy, without the deployment's name; what
        they depend on is deployed as well. If `wanted` is empty, all stacks are. `real_images`: builds are real, on a computer that lacks
        nothing for it (`localaws.containers.real`). `file_systems`: name to kind, which the account has in its home region, and jobs may
        mount."""
        work.mkdir(parents=True, exist_ok=True)
        self.work = work
        self.conditions = conditions
        self.parts = parts or Parts()
        self._using = ExitStack()
        self._port = Port(MASTER_PORT, apart=APART)
        self._using.callback(self._port.release)
        self.context = context(conditions.speed, overrides={"master_port": self._port.number, **(settings or {})})
        self.region: str = self.context["trainyard"]["home_region"]
        self._wanted = [f"{self.context['trainyard']['deployment']}-{stack}" for stack in wanted]
        self._file_systems = file_systems or {}
        self.left_out: Sequence[str] = ()
        """Stacks that are not deployed."""
        self.real_images = real_images
        self._changing = threading.Lock()
        """Held while the faults change: scenarios begin and end theirs on threads of their own."""
        self.node_faults = NodeFaults()
        self.aws = LocalAws(
            conditions,
            gaps=GAPS,
            work=work / "functions",
            mischief=self.node_faults,
            root_variables=("TRAINYARD_ROOT",),
        )

    def __enter__(self) -> Yard:
        with ExitStack() as undoing:
            undoing.callback(self._using.close)
            with self.parts.part("local AWS"):
                self.aws.start()
                publish(self.aws.work / "images", CHILD_BASE)
                self._make_file_systems()
                self._make_cluster()
            undoing.callback(self.aws.stop)
            if self.real_images:
                with self.parts.part("registry of real images"):
                    real.begin(self.aws.work / "images", self.aws.at_stop)
            undoing.callback(lambda: ec2.nodes().stop())
            variables = {**self.aws.environment(), **self.aws.credentials_for(DEPLOYER).variables()}
            self.cdk = Cdk(variables=variables, region=self.region, work=self.work)
            try:
                self.assembly, deployed = bring_up(
                    self.cdk, self.client, self.context, self._using, self.parts, wanted=self._wanted
                )
            except DeploymentFailed as problem:
                problem.functions = self.aws.workers.logs()
                raise
            self.left_out, self.output = deployed.left_out, deployed.output
            self.places = self._places(deployed)
            self.guard = guard(self.aws, self.account(), self.context["trainyard"])
            self._using = undoing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._using.close()

    def _make_file_systems(self) -> None:
        """As a person does ahead of a deploy, who then names them in cdk.json."""
        listed = list[dict[str, str]]()
        for name, kind in self._file_systems.items():
            made = file_systems.make(self.aws, self.aws.work, self.region, Kind(kind).type)
            setting = {"name": name, "kind": kind, "region": self.region, "id": made.id}
            listed.append({**setting, "security_group": made.security_group, "mount_name": made.mount_name})
        if listed:
            self.context["trainyard"]["file_systems"] = listed

    def _make_cluster(self) -> None:
        """As the owner of a cluster has done ahead of a deploy that names it; a new one cannot be made here."""
        name = self.context["trainyard"].get("kubernetes", {}).get("cluster", "")
        if name:
            kubernetes.begin(self.aws, name, self.region)

    def files(self, name: str) -> Path:
        """The folder of a file system's files on this computer."""
        (found,) = (one["id"] for one in self.context["trainyard"]["file_systems"] if one["name"] == name)
        return Path(self.aws.work, file_systems.FOLDER, found, file_systems.DATA)

    def account(self) -> DeployedAccount:
        """Returns what IAM knows about the account, as from now on."""
        return DeployedAccount(self.aws, self.region, self.places.machine)

    def _places(self, deployed: Deployed) -> Places:
        return Places(
            region=self.region,
            machine=deployed.output("TrainMachine"),
            home=deployed.output("HomeBucket"),
            bytes_=names.bytes_bucket(self.context["trainyard"]["deployment"], ACCOUNT, self.region),
            log_group=deployed.output("NodeLogGroup"),
            topic=deployed.output("NotificationTopic"),
        )

    # what a person does

    @property
    def nodes(self) -> Nodes:
        return ec2.nodes()

    def client(self, service: str, region: str = "") -> Any:
        """Returns a client, in the home region unless a region is named."""
        return self.aws.client(service, region or self.region)

    def upload(self, folder: Path, name: str) -> str:
        """Uploads the folder as an archive under `uploads/`, as a person would; returns its address."""
        return self.upload_archive(pack(folder), name)

    def upload_archive(self, archive: bytes, name: str) -> str:
        """Uploads what `packing.pack` returned; returns its address."""
        key = f"uploads/{name}.tar.gz"
        self.client("s3").put_object(Bucket=self.places.home, Key=key, Body=archive)
        return f"s3://{self.places.home}/{key}"

    @contextmanager
    def faults(self, faults: Mapping[str, Mapping[str, str]] | Sequence[Fault]) -> Iterator[None]:
        """Applies these faults, beside those that the yard was made with, for as long as the block lasts."""
        mine, before = to_faults(faults), self.aws.conditions.faults_since
        self.begin(mine, since=time.monotonic())
        ec2.machines().begin_faults()
        try:
            yield
        finally:
            self.lift(mine, since=before)

    @contextmanager
    def without(self, fault: str) -> Iterator[None]:
        """Removes the faults of that name for as long as the block lasts; the others continue unchanged."""
        removed = [one for one in self.aws.conditions.faults if one.name == fault]
        self.lift(removed)
        try:
            yield
        finally:
            self.begin(removed)

    def begin(self, faults: Iterable[AnyFault], since: float | None = None) -> None:
        """Adds faults to those that there are; `since` is the moment from which the times of all are counted, where it moves."""
        with self._changing:
            now = self.aws.conditions
            self.aws.conditions = replace(now, faults=(*now.faults, *faults), faults_since=since or now.faults_since)

    def lift(self, faults: Collection[AnyFault], since: float | None = None) -> None:
        """Removes these faults, and no others that are equal to them."""
        with self._changing:
            now = self.aws.conditions
            left = tuple(one for one in now.faults if not any(one is fault for fault in faults))
            self.aws.conditions = replace(now, faults=left, faults_since=since or now.faults_since)

    def start(self, request: Mapping[str, Any], name: str) -> StartedJob:
        """Starts a job."""
        return StartedJob(self, name, self.execute(self.places.machine, request, name))

    def execute(self, machine: str, request: Mapping[str, Any], name: str) -> str:
        """Starts an execution of a machine with the request as its input; returns its ARN."""
        states = self.client("stepfunctions")
        return str(
            states.start_execution(stateMachineArn=machine, name=name, input=json.dumps(request))["executionArn"]
        )


class StartedJob:
    """One execution, as the console and the buckets show it."""

    def __init__(self, yard: Yard, name: str, arn: str) -> None:
        self.yard = yard
        self.name = name
        self.arn = arn
        self.started = time.time()

    def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = self.yard.client("stepfunctions").describe_execution(executionArn=self.arn)
        return found

    def runs(self) -> bool:
        return bool(self.describe()["status"] == RUNNING)

    def wait(self, limit_s: float, every_s: float = 0.3) -> dict[str, Any]:
        """Returns the execution once it has ended; raises TimeoutError after `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while (now := self.describe())["status"] == RUNNING:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} still runs after {limit_s:.0f} s, in {self.states()}")
            time.sleep(every_s)
        return now

    def history(self) -> list[dict[str, Any]]:
        pages = self.yard.client("stepfunctions").get_paginator("get_execution_history").paginate(executionArn=self.arn)
        return [event for page in pages for event in page["events"]]

    def states(self) -> list[str]:
        """The states entered so far, in order."""
        return [
            event["stateEnteredEventDetails"]["name"] for event in self.history() if "stateEnteredEventDetails" in event
        ]

    def attempt(self) -> int:
        return max(1, self.states().count("Launch"))

    def reports(self, attempt: int) -> dict[int, NodeReport]:
        """Returns the newest report of each rank."""
        return {one.rank: one for one in reports() if (one.job, one.attempt) == (self.name, attempt)}

    def describe_admitted(self) -> Job:
        """Returns the job as Admit wrote it."""
        body = self.yard.client("s3").get_object(
            Bucket=self.yard.places.home, Key=keys.JobPrefix(self.name).description
        )
        return decode(Job, body["Body"].read())

    def recovered(self) -> list[dict[str, Any]]:
        """Attempt, error and cause of every attempt that another one followed, as the job's report has them."""
        found: list[dict[str, Any]] = self.read_report().get("recovered", [])
        return found

    def read_report(self) -> dict[str, Any]:
        """Returns the job's report; empty before its first attempt has ended, and where nothing was launched."""
        s3 = self.yard.client("s3")
        try:
            body = s3.get_object(Bucket=self.yard.places.home, Key=keys.JobPrefix(self.name).result)["Body"].read()
        except s3.exceptions.NoSuchKey:
            return {}
        found: dict[str, Any] = json.loads(body)
        return found

    def read_ends(self) -> dict[int, str]:
        """Returns by attempt how it ended, of those that the job's report knows."""
        report = self.read_report()
        each: list[dict[str, Any]] = [*report.get("recovered", []), {**report, "attempt": report.get("attempts")}]
        return {int(one["attempt"]): f"{one['error']}: {one.get('cause') or ''}" for one in each if one.get("error")}

    def spans(self) -> list[tuple[str, float, float]]:
        """Returns each state entered so far, with its time of entry and that of the next state, or the end; seconds since the epoch."""
        history = self.history()
        entered = [
            (one["stateEnteredEventDetails"]["name"], one["timestamp"].timestamp())
            for one in history
            if "stateEnteredEventDetails" in one
        ]
        ends = [*(at for _, at in entered[1:]), history[-1]["timestamp"].timestamp()] if entered else []
        return [(name, at, end) for (name, at), end in zip(entered, ends, strict=True)]

    def settle(self, limit_s: float = 60.0) -> None:
        """Waits until the processes of the job's nodes have ended too: an instance that shuts down still flushes its log."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until and any(
            node.alive and node.machine.tags[tags.JOB][0] == self.name for node in self.yard.nodes.all()
        ):
            time.sleep(0.1)

    def artifacts(self) -> list[str]:
        """Lists the keys under the job's artifacts prefix in the region's bucket."""
        return self._listed(self.yard.places.bytes_, f"{keys.BytesPrefix(self.name).root}artifacts/")

    def log_streams(self) -> list[str]:
        pages = (
            self.yard.client("logs")
            .get_paginator("describe_log_streams")
            .paginate(logGroupName=self.yard.places.log_group, logStreamNamePrefix=f"{self.name}/")
        )
        return sorted(stream["logStreamName"] for page in pages for stream in page["logStreams"])

    def log(self, stream: str) -> list[str]:
        logs, lines, token = self.yard.client("logs"), list[str](), ""
        while True:
            more: dict[str, str] = {"nextToken": token} if token else {}
            page = logs.get_log_events(
                logGroupName=self.yard.places.log_group, logStreamName=stream, startFromHead=True, **more
            )
            lines += [event["message"] for event in page["events"]]
            if page["nextForwardToken"] == token or not page["events"]:
                return lines
            token = page["nextForwardToken"]

    def instances_left(self) -> int:
        """Counts the instances that have not begun to end, of this job or of none."""
        pages = (
            self.yard.client("ec2")
            .get_paginator("describe_instances")
            .paginate(
                Filters=[{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
            )
        )
        found = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
        owners = [{tag["Key"]: tag["Value"] for tag in one.get("Tags", [])}.get(tags.JOB) for one in found]
        return sum(owner in (None, self.name) for owner in owners)

    def download(self, into: Path) -> None:
        """Saves artifacts and logs as files beside the summary."""
        s3 = self.yard.client("s3")
        root = keys.BytesPrefix(self.name).root
        for key in self.artifacts():
            target = into / key.removeprefix(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            s3.download_file(self.yard.places.bytes_, key, str(target))
        for stream in self.log_streams():
            target = into / "logs" / f"{stream.removeprefix(f'{self.name}/').replace('/', '-')}.log"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(self.log(stream)) + "\n")

    def _listed(self, bucket: str, prefix: str) -> list[str]:
        pages = self.yard.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]
