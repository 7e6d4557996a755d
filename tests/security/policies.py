"""The policies of synthesised templates as IAM would have them: every reference resolved to an ARN."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from contract import names
from localaws.iam.simulator import Policies
from tests.stacks.synth import MANAGED_POLICY, only, resources
from tools.synthesis import Synthesised

ACCOUNT, REGION = "111122223333", "eu-central-1"
HASH = re.compile(r"[0-9A-F]{8}$")
PROFILE = f"arn:aws:iam::{ACCOUNT}:instance-profile/node"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:Notifications"
TOPIC_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
"""There is one of each in a deployment."""
HOME_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/Key"
"""The customer key of the home region's stacks, in deployments with `compliance`."""
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{names.state_table('trainyard')}"
STREAM = f"{TABLE}/stream/2026-01-01T00:00:00.000"
NODE_ROLE_ID = "AROAEXAMPLEOFANODE01"
DEFAULT_GROUP = "sg-0default"
KNOWN_BY_ARN = ("AWS::SNS::Topic", "AWS::StepFunctions::StateMachine", "AWS::SecretsManager::Secret")
"""Types whose Ref is an ARN."""
PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::Region": REGION}


def role(name: str) -> str:
    """ARN of a role by the name that the stacks give it: `Launcher`, `Node`, `Train`."""
    return f"arn:aws:iam::{ACCOUNT}:role/{name}Role"


def function(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def queue(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def log_stream(group: str, stream: str) -> str:
    return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:{stream}"


def of_roles(deployment: Synthesised) -> dict[str, Policies]:
    """ARN of every role to its policies."""
    found: dict[str, dict[str, Any]] = {}
    exports = _exports(deployment)
    for template in deployment.stacks.values():
        managed = {name: one for name, one in resources(template, MANAGED_POLICY).items() if one.get("Roles")}
        for name, policy in (resources(template, "AWS::IAM::Policy") | managed).items():
            (owner,) = policy["Roles"]
            found.setdefault(_resolved({"Fn::GetAtt": [owner["Ref"], "Arn"]}, template, exports), {})[name] = _resolved(
                policy["PolicyDocument"], template, exports
            )
    return dict(found)


def of_people(deployment: Synthesised) -> dict[str, Policies]:
    """The managed policy of people, as that of a role `People` which has no other."""
    return {role("People"): {"People": offered(deployment, "People")}}


def offered(deployment: Synthesised, name: str) -> dict[str, Any]:
    """The managed policy of the foundation whose logical id begins so."""
    template = deployment.template("foundation")
    policy: dict[str, Any] = _resolved(only(template, "AWS::IAM::ManagedPolicy", name)["PolicyDocument"], template, {})
    return policy


def of_resource(deployment: Synthesised, kind: str) -> dict[str, Any]:
    """The policy of the one key (`AWS::KMS::Key`), or of the one topic (`AWS::SNS::TopicPolicy`), of a deployment."""
    template = deployment.template("foundation")
    (found,) = resources(template, kind).values()
    resolved: dict[str, Any] = _resolved(found.get("KeyPolicy") or found["PolicyDocument"], template, {})
    return resolved


def of_bytes_bucket(deployment: Synthesised, region: str) -> dict[str, Any]:
    """The policy of a region's bucket of bytes."""
    template = deployment.template(f"region-{region}")
    (found,) = [
        one
        for one in resources(template, "AWS::S3::BucketPolicy").values()
        if any(statement.get("Sid") == "JobsInOurNetworkAlone" for statement in one["PolicyDocument"]["Statement"])
    ]
    bucket = found["Bucket"]["Ref"]
    text = json.dumps(found["PolicyDocument"]).replace(f'{{"Fn::GetAtt": ["{bucket}", "Arn"]}}', '"BUCKET"')
    resolved: dict[str, Any] = _resolved(json.loads(text), template, {})
    name = names.bytes_bucket("trainyard", ACCOUNT, region)
    whole: dict[str, Any] = json.loads(json.dumps(resolved).replace("BUCKET", f"arn:aws:s3:::{name}"))
    return whole


def trust(deployment: Synthesised, name: str) -> dict[str, Any]:
    """The trust policy of a role of the workflow, by the role's name there."""
    template = deployment.template("workflow")
    (found,) = [one for key, one in resources(template, "AWS::IAM::Role").items() if HASH.sub("", key) == name]
    resolved: dict[str, Any] = _resolved(found["AssumeRolePolicyDocument"], template, _exports(deployment))
    return resolved


def customer_key(deployment: Synthesised, stack: str) -> dict[str, Any]:
    """The policy of a stack's customer key."""
    template = deployment.template(stack)
    resolved: dict[str, Any] = _resolved(only(template, "AWS::KMS::Key", "Key")["KeyPolicy"], template, {})
    return resolved


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
        case {"Ref": name} if template["Resources"].get(name, {}).get("Type") in KNOWN_BY_ARN:
            return _arn(name, template["Resources"][name])
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
        case {"Fn::GetAtt": [name, "DBClusterArn"]}:
            return f"arn:aws:rds:{REGION}:{ACCOUNT}:cluster:{template['Resources'][name]['Properties']['DBClusterIdentifier']}"
        case {"Fn::GetAtt": [name, "RoleId"]}:
            return NODE_ROLE_ID
        case {"Fn::GetAtt": [name, "StreamArn"]}:
            return STREAM
        case {"Fn::GetAtt": [_, "DefaultSecurityGroup"]}:
            return DEFAULT_GROUP
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
        case "AWS::IAM::InstanceProfile":
            return PROFILE
        case "AWS::SQS::Queue":
            return queue(name)
        case "AWS::SNS::Topic":
            return TOPIC
        case "AWS::SecretsManager::Secret":
            return f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{resource['Properties']['Name']}-AbCdEf"
        case "AWS::KMS::Key":
            return TOPIC_KEY if name.startswith("Notifications") else f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{name}"
    return f"<{name}.Arn>"
