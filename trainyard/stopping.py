"""The command `stop`: ends an execution in the caller's name, and says what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws import executions
from aws.clients import BRISK, client
from trainyard.options import Command
from trainyard.stops import CommandExit
from trainyard.watching import find

if TYPE_CHECKING:
    from types_boto3_sts.client import STSClient

ERROR = "Stopped"
"""The error of an execution that a person stops."""
FOLLOWS = {
    "job": "the cleanup ends its nodes within seconds, and then writes the report: trainyard report {name}",
    "grid": "the cleanup stops its trainings, and then writes the results of what ended: trainyard grid results {name}",
    "search": "the cleanup stops the grid of its round, and then writes the trials that ended: trainyard search status {name}",
}


def stop(command: Command, name: str, kind: str | None) -> int:
    """Returns the exit code."""
    printer, deployment = command.printer, command.open_deployment()
    found = find(deployment, name, (kind,) if kind else ())
    if not found.status.runs:
        printer.document({"kind": found.kind, "name": name, "stopped": False, "status": found.status.name})
        if not printer.as_json:
            printer.say(f"{name} has ended already: {found.status.name}")
        return CommandExit.DONE
    sts: STSClient = client("sts", deployment.region, BRISK)
    cause = f"stopped by {sts.get_caller_identity()['Arn']}"
    executions.stop(found.arn, ERROR, cause)
    follows = FOLLOWS[found.kind].format(name=name)
    printer.document({"kind": found.kind, "name": name, "stopped": True, "cause": cause, "follows": follows})
    if not printer.as_json:
        printer.say(f"{found.kind} {name}: {cause}; {follows}")
    return CommandExit.DONE
