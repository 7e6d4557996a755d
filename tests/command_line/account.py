"""A deployment on the fake as the command line meets it: stacks with outputs, histories, logs, and a person who may do less than all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from typer.testing import CliRunner

from contract import keys
from contract.codec import encode
from contract.jobs import Job
from localaws.model import Refused
from tests.builders import JOB, NODE_ROLE, NOW, TOPIC
from tests.fakes.aws import Aws
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.s3 import Bucket
from tests.fakes.state import TABLE
from tests.fakes.wire import HOME, Call
from tests.fakes.yard import deployed
from trainyard.app import app
from trainyard.deployment import Deployment
from trainyard.stops import DEBUG

PERSON = "arn:aws:iam::123456789012:user/ada"
HOME_BUCKET, BYTES_BUCKET = JOB.home_bucket, "yard-bytes-123456789012-eu-central-1"
LOG_GROUP = "/trainyard/yard/nodes"
OUTPUTS = {
    "yard-foundation": {
        "HomeBucket": HOME_BUCKET,
        "StateTable": TABLE,
        "NodeLogGroup": LOG_GROUP,
        "NotificationTopic": TOPIC,
        "NodeRoleId": NODE_ROLE,
    },
    "yard-workflow": {"TrainMachine": MACHINE},
    "yard-grid": {"GridMachine": GRID_MACHINE},
    "yard-search": {"SearchMachineArn": SEARCH_MACHINE},
}
DEPLOYMENT = Deployment(
    name="yard",
    region=HOME,
    home_bucket=HOME_BUCKET,
    table=TABLE,
    log_group=LOG_GROUP,
    topic=TOPIC,
    node_role=NODE_ROLE,
    train_machine=MACHINE,
    machines={"job": MACHINE, "grid": GRID_MACHINE, "search": SEARCH_MACHINE},
)
YARD = ("--deployment", "yard", "--region", HOME)
PLAN = {
    "job": "digits",
    "ladder": ["g5.xlarge in eu-central-1a, on-demand, $1.2500 an hour", "g5.xlarge in eu-central-1b, spot"],
    "left_out": ["2 dearer places"],
    "network": ["g5.xlarge: one network interface without EFA"],
    "mounts": [],
    "resumes": None,
    "step": -1,
    "estimate": {"usd_at_most": 12.5, "words": "1 node of g5.xlarge costs $1.25 an hour at most."},
}
"""What Admit answers to a request that it takes."""
LAUNCH = {
    "region": HOME,
    "instances": ["i-0", "i-1"],
    "rungs": [
        {"region": HOME, "zone": "eu-central-1a", "instance_type": "g5.xlarge", "market": "spot", "answer": "launched"}
    ],
    "cost": {"usd_an_hour_at_most": 2.5},
}


@dataclass
class History:
    """The events of an execution, as Step Functions writes them."""

    at: float = NOW
    events: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, **details: Any) -> History:
        """Adds an event, a second after the one before."""
        self.at += 1
        event = {"timestamp": datetime.fromtimestamp(self.at, timezone.utc), "type": kind, "id": len(self.events) + 1}
        self.events.append({**event, "previousEventId": len(self.events), **details})
        return self

    def enter(self, state: str) -> History:
        return self.add("TaskStateEntered", stateEnteredEventDetails={"name": state, "input": "{}"})

    def leave(self, state: str, answer: Any) -> History:
        return self.add("TaskStateExited", stateExitedEventDetails={"name": state, "output": json.dumps(answer)})

    def schedule(self, payload: Any) -> History:
        parameters = json.dumps({"FunctionName": "f", "Payload": payload})
        details = {"resourceType": "lambda", "resource": "invoke", "region": HOME, "parameters": parameters}
        return self.add("TaskScheduled", taskScheduledEventDetails=details)

    def admit(self) -> History:
        return self.enter("Admit").leave("Admit", PLAN)

    def launch(self) -> History:
        return self.enter("Launch").leave("Launch", LAUNCH).enter("Train")

    def end_attempt(self, error: str = "", cause: str = "", *, step: int = -1, usd: object = 1.0) -> History:
        problem = {"error": error, "cause": cause} if error else None
        self.enter("Terminate").schedule({"job": "digits", "attempt": 1, "problem": problem})
        return self.leave("Terminate", {"cost": {"usd_at_most": usd, "billed_s": 60}, "step": step})


Answer = Callable[[Mapping[str, Any]], dict[str, Any]]


class Account(Aws):
    """What the fake has not, because no function calls it."""

    def __init__(self) -> None:
        super().__init__(now=NOW)
        deployed(fake=self)
        self.s3.buckets[HOME_BUCKET] = Bucket(region=HOME)
        self.outputs: dict[str, dict[str, str]] = {name: dict(outputs) for name, outputs in OUTPUTS.items()}
        self.histories: dict[str, History] = {}
        self.lines: list[dict[str, Any]] = []
        """Events of the nodes' log group."""
        self.denied: set[str] = set()
        """Calls that IAM denies to the person, as `service:Operation`."""
        self.answers: dict[str, Answer] = {}
        """For tests: call to what answers it."""
        self.states.executions.lag_s = 0.0

    def _serve(self, call: Call) -> dict[str, Any]:
        if call.name in self.denied:
            raise Refused(
                "AccessDeniedException", f"User: {PERSON} is not authorized to perform: {call.name} on resource: *", 400
            )
        if call.name in self.answers:
            return self.answers[call.name](call.params)
        match call.name:
            case "cloudformation:DescribeStacks":
                return self._describe_stack(call.params["StackName"])
            case "stepfunctions:GetExecutionHistory":
                events = self.histories.get(call.params["executionArn"], History()).events
                return {"events": list(reversed(events)) if call.params.get("reverseOrder") else events}
            case "logs:FilterLogEvents":
                return self._filter(call.params)
            case "sts:GetCallerIdentity":
                return {"Arn": PERSON, "Account": "123456789012", "UserId": "AIDA"}
        return super()._serve(call)

    def _describe_stack(self, name: str) -> dict[str, Any]:
        if name not in self.outputs:
            raise Refused("ValidationError", f"Stack with id {name} does not exist")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs[name].items()]
        return {
            "Stacks": [{"StackName": name, "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": outputs}]
        }

    def _filter(self, params: dict[str, Any]) -> dict[str, Any]:
        """Pages of two."""
        found = [
            one
            for one in self.lines
            if one["logStreamName"].startswith(params.get("logStreamNamePrefix", ""))
            and one["timestamp"] >= params.get("startTime", 0)
        ]
        first = int(params.get("nextToken", 0))
        following = {"nextToken": str(first + 2)} if first + 2 < len(found) else {}
        return {"events": found[first : first + 2], **following}

    def write_line(self, stream: str, text: str, at: float = NOW) -> None:
        """A node writes a line."""
        event = {"logStreamName": stream, "message": text, "timestamp": int(at * 1000), "ingestionTime": int(at * 1000)}
        self.lines.append({**event, "eventId": f"event-{len(self.lines)}"})

    def begin(self, name: str = "digits", machine: str = MACHINE, history: History | None = None) -> Execution:
        """An execution that runs."""
        execution = self.states.executions.begin(name, machine)
        self.histories[execution.arn] = history or History()
        return execution

    def end(self, execution: Execution, status: str = "SUCCEEDED", output: Any = None, **problem: str) -> None:
        self.states.executions.end(execution, status, problem.get("error"), problem.get("cause"))
        execution.output = None if output is None else json.dumps(output)

    def put(self, key: str, body: bytes) -> None:
        """Into the home bucket."""
        self.s3.write(HOME_BUCKET, key, body)

    def admit(self, job: Job) -> None:
        """The job's job.json."""
        self.put(keys.JobPrefix(job.id).description, encode(job))


@contextmanager
def account() -> Iterator[Account]:
    """A new account, which every client talks to meanwhile."""
    there = Account()
    with there.connected():
        yield there


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        """The JSON documents on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments: object, debugs: bool = True) -> Ran:
    """Runs a command in this process. A fault of the command line comes through, unless it shall be words as people read them."""
    variables = {DEBUG: "1" if debugs else None}
    result = CliRunner().invoke(app, [str(one) for one in arguments], env=variables)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)
