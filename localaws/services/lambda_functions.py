"""Lambda: moto would need Docker or return fixed answers; here the deployed code runs, and no property of a function is lost."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.awslambda.models import LambdaFunction, LayerVersion
from moto.awslambda_simple.models import LambdaSimpleBackend

from localaws.runtime_api import Outcome
from localaws.services.cloudformation_repairs import around_creation
from localaws.workers import Stopped

if TYPE_CHECKING:
    from localaws.server import LocalAws


SILENT = Outcome(payload=b"null")


def find_function(backend: Any, name: str, qualifier: str | None = None) -> Any:
    """Returns moto's function of a name or an ARN. One that is found by an alias has its `resource`, as CloudWatch counts it apart."""
    function = backend.get_function(name, qualifier)
    alias = qualifier or name.rpartition(":function:")[2].partition(":")[2]
    if alias in {one.name for one in backend.list_aliases(function.function_name)}:
        function = copy.copy(function)
        function.resource = f"{function.function_name}:{alias}"
    return function


def install(aws: LocalAws) -> None:
    """Installs real invocations, and the layers, architectures, tags and log groups of functions that CloudFormation creates."""
    aws.configure("lambda", use_docker=False)
    _invocations(aws)
    # A Ref to a layer is its version's ARN.
    aws.patch(LayerVersion, "physical_resource_id", property(lambda self: self.arn))
    around_creation(aws, LambdaFunction, _complete)
    _deaths(aws)


def _invocations(aws: LocalAws) -> None:
    def run(function: Any, body: Any, headers: Any, response_headers: dict[str, str]) -> bytes:
        payload = body.encode() if isinstance(body, str) else bytes(body or b"")
        payload = payload or b"{}"
        response_headers["x-amzn-requestid"] = str(uuid.uuid4())
        kind = headers.get("x-amz-invocation-type") or headers.get("X-Amz-Invocation-Type") or "RequestResponse"
        if kind == "DryRun":
            return b""
        if kind == "Event":
            aws.workers.invoke_later(function, payload)
            return b""
        outcome = aws.workers.invoke(function, payload)
        if outcome.failed:
            response_headers["x-amz-function-error"] = "Unhandled"
        response_headers["x-amz-executed-version"] = "$LATEST"
        response_headers["Content-Length"] = str(len(outcome.payload))
        return outcome.payload

    def by_api(
        backend: Any, function_name: str, qualifier: str | None, body: Any, headers: Any, response_headers: Any
    ) -> bytes:
        return run(find_function(backend, function_name, qualifier), body, headers, response_headers)

    aws.patch(LambdaSimpleBackend, "invoke", by_api)
    # Custom resources, log subscriptions and bucket notifications invoke the function themselves.
    aws.patch(LambdaFunction, "invoke", run)


def _deaths(aws: LocalAws) -> None:
    """Applies the faults that make a function dead: no invocation begins while they last."""

    def alive(invoke: Any, deployed: Any, payload: bytes) -> Outcome:
        fault = aws.conditions.dead(deployed.handler)
        if fault is None:
            try:
                return invoke(deployed, payload)  # type: ignore[no-any-return]
            except Stopped as over:  # a state machine is a thread, which learns of the end last
                return Outcome.error("Stopped", str(over))
        how = fault.text("how")
        if how == "silent":
            return SILENT
        if how == "hangs":
            aws.stopping.wait(float(deployed.timeout) / aws.conditions.speed)
            kind, why = "Sandbox.Timedout", f"Task timed out after {float(deployed.timeout):.2f} seconds"
        else:
            kind, why = "Runtime.ExitError", "Runtime exited with error: signal: killed"
        return Outcome.error(kind, f"RequestId: {uuid.uuid4()} Error: {why}")

    aws.wrap(aws.workers, "invoke", alive)


def _complete(_client: Any, function: Any, properties: Mapping[str, Any]) -> None:
    """Sets the properties that moto drops."""
    properties = json.loads(json.dumps(properties, default=str))
    function.layers = function._get_layers_data(properties.get("Layers", []))
    function.architectures = properties.get("Architectures", ["x86_64"])
    function.tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
    if group := properties.get("LoggingConfig", {}).get("LogGroup"):
        function.logs_group_name = group
