"""The policies of synthesised templates as IAM would have them: every reference resolved to an ARN."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rehearsal.simulator import Policies
from tests.stacks.synth import Synthesised, resources

ACCOUNT, REGION = "111122223333", "eu-central-1"
HASH = re.compile(r"[0-9A-F]{8}$")
PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::Region": REGION}


def role(name: str) -> str:
    """ARN of a role by the name that the stacks give it: `Launcher`, `Node`, `Train`."""
    return f"arn:aws:iam::{ACCOUNT}:role/{name}Role"


def function(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def log_stream(group: str, stream: str) -> str:
    return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:{stream}"


def of_roles(deployment: Synthesised) -> dict[str, Policies]:
    """ARN of every role to its policies."""
    found: dict[str, dict[str, Any]] = {}
    exports = _exports(deployment)
    for template in deployment.stacks.values():
        for name, policy in resources(template, "AWS::IAM::Policy").items():
            (owner,) = policy["Roles"]
            found.setdefault(_resolved({"Fn::GetAtt": [owner["Ref"], "Arn"]}, template, exports), {})[name] = _resolved(
                policy["PolicyDocument"], template, exports
            )
    return dict(found)


def _exports(deployment: Synthesised) -> dict[str, Any]:
    return {
        output["Export"]["Name"]: _resolved(output["Value"], template, {})
        for template in deployment.stacks.values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


def _resolved(value: Any, template: Mapping[str, Any], exports: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_resolved(one, template, exports) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": name}:
            return PSEUDO.get(name, name)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(_resolved(parts, template, exports))
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([^}]+)\}", lambda found: PSEUDO[found[1]], text)
        case {"Fn::ImportValue": name}:
            return exports[name]
        case {"Fn::GetAtt": [name, "Arn"]}:
            return _arn(name, template["Resources"][name])
    return {key: _resolved(inner, template, exports) for key, inner in value.items()}


def _arn(logical_id: str, resource: Mapping[str, Any]) -> str:
    name = HASH.sub("", logical_id)
    match resource["Type"]:
        case "AWS::IAM::Role":
            return f"arn:aws:iam::{ACCOUNT}:role/{name}"
        case "AWS::Lambda::Function":
            return function(name)
        case "AWS::Logs::LogGroup":
            return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{resource['Properties'].get('LogGroupName', name)}:*"
    return f"<{name}.Arn>"
