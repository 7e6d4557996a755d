"""Attacks another job with everything that a node has: its instance's credentials, the credentials of its job, and its own items.

The arguments are the fields of `Victim` as JSON, and the folder of a whole boto3. Writes what each try answered to `attack.json` among the
artifacts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

# The agent brings the contract, and a boto3 that knows few services; the attacker brings a whole one.
sys.path[:0] = [sys.argv[2], str(Path.cwd().parents[3] / "opt" / "trainyard" / "agent")]

import boto3  # noqa: E402
import botocore.session  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

from contract import items  # noqa: E402

REGION = "eu-central-1"
CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 8})


Try = Callable[[], object]


@dataclass(frozen=True)
class Victim:
    """A job, an instance of it, and where everything of its deployment is."""

    job: str
    instance: str
    home: str
    stored: str
    table: str
    log_group: str
    account: str
    deployment: str

    @property
    def machine(self) -> str:
        return f"arn:aws:states:{REGION}:{self.account}:stateMachine:{self.deployment}-train"


def fetch_text(request: Request) -> str:
    """What metadata answers, which may leave a request unanswered."""
    for _ in range(10):
        with suppress(OSError):
            return str(urlopen(request).read().decode())
        time.sleep(0.2)
    raise OSError("metadata does not answer")


def own_identity() -> tuple[str, str]:
    """The role's id and the instance's own, as the node's items have them in their key: the agent knows the one, metadata the other."""
    agent = Path(f"/proc/{os.getppid()}/environ").read_text().split("\0")
    (role,) = (one.partition("=")[2] for one in agent if one.startswith("TRAINYARD_NODE_ROLE="))
    endpoint = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
    life = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = fetch_text(Request(f"{endpoint}/latest/api/token", method="PUT", headers=life))
    wanted = Request(f"{endpoint}/latest/meta-data/instance-id", headers={"X-aws-ec2-metadata-token": token})
    return role, fetch_text(wanted)


def keys_of_job(session: Any, table: str, role: str, instance: str) -> Any:
    key = {"pk": {"S": items.userid(role, instance)}, "sk": {"S": items.KEYS}}
    item = session.client("dynamodb", REGION, config=CONFIG).get_item(TableName=table, Key=key)["Item"]
    told = json.loads(items.unpacked(item))
    return boto3.session.Session(told["access_key"], told["secret_key"], told["token"], region_name=REGION)


class Attack:
    """Everything that would read, change or end what is not this job's, with the credentials of a session."""

    def __init__(self, session: Any, victim: Victim, role: str) -> None:
        self.victim, self.role = victim, role
        services = ("s3", "dynamodb", "ec2", "stepfunctions", "sts", "logs", "secretsmanager", "cloudwatch", "lambda")
        self.clients = {one: session.client(one, REGION, config=CONFIG) for one in services}

    def put(self, bucket: str, key: str) -> Try:
        return lambda: self.clients["s3"].put_object(Bucket=bucket, Key=key, Body=b"{}")

    def get(self, bucket: str, key: str) -> Try:
        return lambda: self.clients["s3"].get_object(Bucket=bucket, Key=key)

    def list(self, bucket: str, prefix: str) -> Try:
        return lambda: self.clients["s3"].list_objects_v2(Bucket=bucket, Prefix=prefix)

    def write(self, partition: str, sort: str) -> Try:
        item = {"pk": {"S": partition}, "sk": {"S": sort}, "doc": {"S": "{}"}, "version": {"N": "9"}, "at": {"N": "1"}}
        return lambda: self.clients["dynamodb"].put_item(TableName=self.victim.table, Item=item)

    def read(self, partition: str, sort: str) -> Try:
        key = {"pk": {"S": partition}, "sk": {"S": sort}}
        return lambda: self.clients["dynamodb"].get_item(TableName=self.victim.table, Key=key)

    def files(self) -> dict[str, Try]:
        job, home, stored = self.victim.job, self.victim.home, self.victim.stored
        return {
            "read its description": self.get(home, f"jobs/{job}/job.json"),
            "read its code": self.get(home, f"jobs/{job}/code/code.tar.gz"),
            "read its result": self.get(home, f"jobs/{job}/report.json"),
            "replace its description": self.put(home, f"jobs/{job}/job.json"),
            "replace its code": self.put(home, f"jobs/{job}/code/code.tar.gz"),
            "fake its result": self.put(home, f"jobs/{job}/report.json"),
            "list all jobs": self.list(home, "jobs/"),
            "list everything": self.list(stored, ""),
            "list its checkpoints": self.list(stored, f"jobs/{job}/"),
            "plant a checkpoint": self.put(stored, f"jobs/{job}/checkpoints/rank-0000/{'0' * 16}/model.pt"),
            "plant a commit": self.put(stored, f"jobs/{job}/commits/checkpoints/a0001/s000000000099/r0000.json"),
            "plant an artifact": self.put(stored, f"jobs/{job}/artifacts/rank-0000/model.txt"),
            "delete a checkpoint": lambda: self.clients["s3"].delete_object(
                Bucket=stored, Key=f"jobs/{job}/checkpoints/rank-0000/x"
            ),
            "plant a launch": self.put(home, f"jobs/{job}/attempts/1/nodes/z/attempts/2/launch-1.json"),
            "replace the agent": self.put(home, f"agents/{'0' * 64}.zip"),
            "read uploads": self.get(home, "uploads/trainer.tar.gz"),
            "replace uploads": self.put(home, "uploads/trainer.tar.gz"),
        }

    def facts(self) -> dict[str, Try]:
        job, theirs = self.victim.job, f"{self.role}:{self.victim.instance}"
        query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "waiting"}}}
        return {
            "read its report": self.read(theirs, "report"),
            "fake its report": self.write(theirs, "report"),
            "read its order": self.read(theirs, "order"),
            "order it to stop": self.write(theirs, "order"),
            "read its keys": self.read(theirs, "keys"),
            "order its attempt to stop": self.write(f"order#{job}", "0001"),
            "close its attempt": self.write(f"closed#{job}", "0001"),
            "plant an intent": self.write(f"launch#{job}", "0001#0002"),
            "replace its item": self.write(f"job#{job}", "job"),
            "forget its session": self.write(f"session#{job}", "0001"),
            "plant a token": self.write("waiting", f"{job}#0001#x"),
            "close admission": self.write("admission", "closed"),
            "read who waits": lambda: self.clients["dynamodb"].query(TableName=self.victim.table, **query),
        }

    def machines(self) -> dict[str, Try]:
        victim, machine = self.victim, self.victim.machine
        ec2, states, clients = self.clients["ec2"], self.clients["stepfunctions"], self.clients
        new = {"ImageId": "ami-1", "InstanceType": "p5.48xlarge", "MinCount": 1, "MaxCount": 1}
        running = f"{machine.replace('stateMachine', 'execution')}:{victim.job}"
        role = f"arn:aws:iam::{victim.account}:role/{victim.deployment}-job-{REGION}"
        line = {"timestamp": int(time.time() * 1000), "message": "all is well"}
        beat = {"MetricName": "Heartbeat", "Value": 1.0}
        return {
            "end its machine": lambda: ec2.terminate_instances(InstanceIds=[victim.instance]),
            "list machines": lambda: ec2.describe_instances(),
            "start machines": lambda: ec2.run_instances(**new),
            "stop its execution": lambda: states.stop_execution(executionArn=running),
            "start an execution": lambda: states.start_execution(stateMachineArn=machine, input="{}"),
            "fake its success": lambda: states.send_task_success(taskToken="x" * 40, output="{}"),
            "get its keys": lambda: clients["sts"].assume_role(
                RoleArn=role, RoleSessionName="attacker", Tags=[{"Key": "job", "Value": victim.job}]
            ),
            "write its log": lambda: clients["logs"].put_log_events(
                logGroupName=victim.log_group, logStreamName=f"{victim.job}/1/0", logEvents=[line]
            ),
            "read secrets": lambda: clients["secretsmanager"].get_secret_value(
                SecretId=f"trainyard/{victim.deployment}/of-{victim.job}"
            ),
            "silence alarms": lambda: clients["cloudwatch"].put_metric_data(Namespace="Trainyard", MetricData=[beat]),
            "wake the attendant": lambda: clients["lambda"].invoke(FunctionName="attendant", Payload=b"{}"),
        }


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except ClientError as problem:
        return str(problem.response["Error"]["Code"])
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "done"


def lie(session: Any, table: str, role: str, instance: str, victim: str) -> None:
    """Says under its own key what the victim's rank 0 would say that has failed; IAM cannot see that."""
    told: dict[str, Any] = {
        "job": victim,
        "attempt": 1,
        "rank": 0,
        "instance": instance,
        "phase": "ended",
        "sent_at": 0.0,
        "sequence": 10**9,
    }
    told["exit"] = {"code": 1, "error": "TrainingFailed", "reason": "a lie"}
    item = {"pk": {"S": items.userid(role, instance)}, "sk": {"S": items.REPORT}, "doc": {"S": json.dumps(told)}}
    item |= {"version": {"N": "1"}, "at": {"N": f"{time.time():.3f}"}, "urgent": {"N": "1"}}
    session.client("dynamodb", REGION, config=CONFIG).put_item(TableName=table, Item=item)


def main() -> None:
    victim = Victim(**json.loads(sys.argv[1]))
    patient = botocore.session.Session()  # one request in fifty to the metadata service is not answered
    patient.set_config_variable("metadata_service_num_attempts", 5)
    own = boto3.session.Session(botocore_session=patient, region_name=REGION)
    role, instance = own_identity()
    told: dict[str, dict[str, str]] = {}
    for who, session in (("instance", own), ("job", keys_of_job(own, victim.table, role, instance))):
        attack = Attack(session, victim, role)
        tries = {**attack.files(), **attack.facts(), **attack.machines()}
        told[who] = {what: outcome(one) for what, one in tries.items()}
    Path(os.environ["ARTIFACTS_DIR"], "attack.json").write_text(json.dumps(told, indent=1))
    for _ in range(20):
        lie(own, victim.table, role, instance, victim.job)


if __name__ == "__main__":
    main()
