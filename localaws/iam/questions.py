"""Derives what IAM checks before it allows a recorded call: actions, resources and context, service by service."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from localaws.iam import dynamodb, launches
from localaws.iam.account import Account
from localaws.iam.parameters import Asked, Context, account_of, arn, asking, numbered, tagged
from localaws.iam.simulator import Request
from localaws.recorder import DELETED, Call
from localaws.services.iam import LINKED

S3 = {
    "GetObject": "GetObject",
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "GetBucketAcl": "GetBucketAcl",
    "GetBucketLocation": "GetBucketLocation",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "PutObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "AbortMultipartUpload": "AbortMultipartUpload",
    "ListParts": "ListMultipartUploadParts",
    "DeleteObject": "DeleteObject",
}
"""The right that an API call needs; CopyObject needs several."""
OF_VERSIONS = {"GetObject": "GetObjectVersion", "DeleteObject": "DeleteObjectVersion"}
ABOUT = {
    "GetConsoleOutput": ("instance", "InstanceId"),
    "TerminateInstances": ("instance", "InstanceId"),
    "DeleteVolume": ("volume", "VolumeId"),
    "DeleteNetworkInterface": ("network-interface", "NetworkInterfaceId"),
    "CancelSpotInstanceRequests": ("spot-instances-request", "SpotInstanceRequestId"),
}
"""Kind of the thing that a call of EC2 reads or ends, and the parameter that names it."""
KNOWING_NOTHING = ("Describe", "GetEbsDefault")
"""Prefixes of EC2 calls that IAM cannot limit to resources."""
HERE = "arn:aws:{service}:{region}:{account}:"
PLAIN = {
    "batch:DescribeJobs": "*",
    "batch:ListJobs": "*",
    "cloudformation:DescribeStacks": "{StackName}",
    "codebuild:StartBuild": HERE + "project/{projectName}",
    "ecr:GetAuthorizationToken": "*",
    "eks:DescribeCluster": HERE + "cluster/{name}",
    "events:DescribeRule": HERE + "rule/{Name}",
    "events:PutRule": HERE + "rule/{Name}",
    "events:PutTargets": HERE + "rule/{Rule}",
    "logs:CreateLogGroup": HERE + "log-group:{logGroupName}",
    "logs:CreateLogStream": HERE + "log-group:{logGroupName}:log-stream:{logStreamName}",
    "logs:PutLogEvents": HERE + "log-group:{logGroupName}:log-stream:{logStreamName}",
    "monitoring:GetMetricData": "*",
    "monitoring:PutMetricData": "*",
    "pricing:GetProducts": "*",
    "rds:ModifyDBCluster": HERE + "cluster:{DBClusterIdentifier}",
    "sagemaker:ListTrainingJobs": "*",
    "states:DescribeExecution": "{executionArn}",
    "states:ListExecutions": "{stateMachineArn}",
    "states:StartExecution": "{stateMachineArn}",
    "states:StopExecution": "{executionArn}",
}
"""Calls that need one right, mostly of their own name, on a resource that their parameters name; no context of their own."""
RENAMED = {
    "monitoring:GetMetricData": "cloudwatch:GetMetricData",
    "monitoring:PutMetricData": "cloudwatch:PutMetricData",
}
"""Rights whose names differ from the calls'."""


class Untaught(LookupError):
    """A role makes a call for which this module does not know what IAM checks: add it here."""


def requests(call: Call, account: Account) -> list[Request]:
    """Returns everything that IAM checks before it allows a call. Raises Untaught."""
    asked = list(_list_questions(call, account))
    if not asked:
        raise Untaught(f"{call.name} by {call.role}")
    everywhere: Context = {"aws:RequestedRegion": call.region}
    everywhere |= {f"aws:PrincipalTag/{key}": value for key, value in call.by.tags.items()}
    if call.service == "s3":  # the account only uses its own buckets here
        everywhere["aws:ResourceAccount"] = account_of(call)
    return [
        Request(
            principal=call.role,
            action=action,
            resource=resource,
            context=everywhere | context,
            # A role's policy alone does not open a key; the key's own policy must allow it too.
            resource_policy=_resource_policy(action, resource, account),
            session_policy=json.loads(call.by.policy) if call.by.policy else None,
        )
        for action, resource, context in asked
    ]


def _resource_policy(action: str, resource: str, account: Account) -> Mapping[str, Any] | None:
    if action.startswith("kms:"):
        return account.key_policy(resource)
    return account.trust(resource) if action in ("sts:AssumeRole", "sts:TagSession") else None


def _list_questions(call: Call, account: Account) -> Asked:
    """Yields nothing for a call that nobody taught."""
    if resource := PLAIN.get(call.name):
        names = {"service": call.service, "region": call.region, "account": account_of(call)}
        yield RENAMED.get(call.name, call.name), resource.format_map({**call.parameters, **names}), {}
    elif translate := _TRANSLATORS.get(call.service):
        yield from translate(call, account)


def _s3(call: Call, _: Account) -> Asked:
    bucket, key = call.parameters.get("Bucket", ""), call.parameters.get("Key", "")
    objects = f"arn:aws:s3:::{bucket}/{key}"
    version = "versionId" in call.parameters
    if call.action in ("CopyObject", "UploadPartCopy"):
        yield from _copy(call)
    elif call.action == "DeleteObjects":
        for key, *named in call.parameters.get(DELETED, []):
            yield f"s3:{OF_VERSIONS['DeleteObject'] if named else 'DeleteObject'}", f"arn:aws:s3:::{bucket}/{key}", {}
    elif call.action not in S3:
        return
    elif not key:
        prefix = call.parameters.get("prefix")
        yield f"s3:{S3[call.action]}", f"arn:aws:s3:::{bucket}", {} if prefix is None else {"s3:prefix": prefix}
    else:
        action = S3[call.action]
        yield f"s3:{OF_VERSIONS.get(action, action) if version else action}", objects, {}
    if call.parameters.get("If-Match"):
        yield "s3:GetObject", objects, {}  # a caller that replaces by ETag learns whether the object is unchanged
    if call.parameters.get("Tagging"):
        yield "s3:PutObjectTagging", objects, {}
    if call.status == 404 and S3.get(call.action) == "GetObject":
        # Without this right S3 answers "forbidden" for a missing object. The request then has no prefix.
        yield "s3:ListBucket", f"arn:aws:s3:::{bucket}", {}


def _copy(call: Call) -> Asked:
    source, _, version = call.parameters["CopySource"].lstrip("/").partition("?versionId=")
    yield f"s3:{OF_VERSIONS['GetObject'] if version else 'GetObject'}", f"arn:aws:s3:::{source}", {}
    yield "s3:PutObject", f"arn:aws:s3:::{call.parameters['Bucket']}/{call.parameters['Key']}", {}


def _ec2(call: Call, account: Account) -> Asked:
    region: Context = {"ec2:Region": call.region}
    if call.action.startswith(KNOWING_NOTHING):
        yield call.name, "*", region
    elif call.action == "RunInstances":
        for action, resource, context in launches.questions(call, account):
            yield action, resource, context | (region if action.startswith("ec2:") else {})
    elif call.action == "CreateTags":
        keys = numbered(call, "Tag.", ".Key")
        values = numbered(call, "Tag.", ".Value")
        for instance in numbered(call, "ResourceId."):
            context = region | tagged("ResourceTag", account.tags(call.region, instance))
            yield call.name, arn(call, f"instance/{instance}"), context | asking(dict(zip(keys, values, strict=True)))
    elif call.action in ABOUT:
        kind, parameter = ABOUT[call.action]
        for one in numbered(call, f"{parameter}.") or [call.parameters[parameter]]:
            known = tagged("ResourceTag", account.tags(call.region, one))
            if kind == "instance" and (profile := account.instance_profile(call.region, one)):
                known["ec2:InstanceProfile"] = profile
            yield call.name, arn(call, f"{kind}/{one}"), region | known


def _states(call: Call, account: Account) -> Asked:
    if call.action.startswith("SendTask"):
        yield call.name, account.machine(call.region), {}


def _sqs(call: Call, _: Account) -> Asked:
    account, queue = call.parameters["QueueUrl"].rsplit("/", 2)[1:]
    # Lambda deletes messages in batches under the same right.
    yield f"sqs:{call.action.removesuffix('Batch')}", f"arn:aws:sqs:{call.region}:{account}:{queue}", {}


def _lambda(call: Call, _: Account) -> Asked:
    """A caller may give the function's ARN, or its name alone."""
    if call.action == "Invoke":
        function = call.parameters["FunctionName"]
        yield (
            "lambda:InvokeFunction",
            function if function.startswith("arn:") else arn(call, f"function:{function}"),
            {},
        )


def _sns(call: Call, account: Account) -> Asked:
    if call.action != "Publish":
        return
    topic = call.parameters["TopicArn"]
    yield call.name, topic, {}
    if key := account.key(call.region, topic):  # SNS encrypts on behalf of the publisher
        for action in ("kms:Decrypt", "kms:GenerateDataKey"):
            yield action, key, {"kms:ViaService": f"sns.{call.region}.amazonaws.com"}


def _ecr(call: Call, _: Account) -> Asked:
    """A registry belongs to an account."""
    registry = call.parameters.get("registryId", account_of(call))
    repository = f"repository/{call.parameters['repositoryName']}"
    yield call.name, f"arn:aws:ecr:{call.region}:{registry}:{repository}", {}


def _events(call: Call, _: Account) -> Asked:
    if call.action == "PutEvents":
        for entry in call.parameters["Entries"]:
            bus = str(entry.get("EventBusName", "default"))
            yield call.name, bus if bus.startswith("arn:") else arn(call, f"event-bus/{bus}"), {}


def _dynamodb(call: Call, account: Account) -> Asked:
    found = dynamodb.questions(call, account)
    if found is None:
        raise Untaught(f"{call.name} by {call.role}")
    yield from found


def _sts(call: Call, _: Account) -> Asked:
    if call.action != "AssumeRole":
        return
    role, tags = (
        call.parameters["RoleArn"],
        dict(zip(numbered(call, "Tags.member.", ".Key"), numbered(call, "Tags.member.", ".Value"), strict=True)),
    )
    asked = asking(tags)
    yield call.name, role, asked | {"sts:RoleSessionName": call.parameters["RoleSessionName"]}
    if tags:
        yield "sts:TagSession", role, asked


def _codebuild(call: Call, _: Account) -> Asked:
    if call.action == "BatchGetBuilds":
        for build in call.parameters["ids"]:
            yield call.name, arn(call, f"project/{build.partition(':')[0]}"), {}


def _sagemaker(call: Call, account: Account) -> Asked:
    given = call.parameters
    training = given.get("ResourceArn") or arn(call, f"training-job/{given['TrainingJobName']}")
    if call.action == "CreateTrainingJob":
        wanted = asking({one["Key"]: one["Value"] for one in given.get("Tags", [])})
        yield call.name, training, wanted
        if wanted:
            yield "sagemaker:AddTags", training, wanted | {"sagemaker:TaggingAction": call.action}
        yield "iam:PassRole", given["RoleArn"], {"iam:PassedToService": "sagemaker.amazonaws.com"}
    elif call.action in ("DescribeTrainingJob", "StopTrainingJob", "ListTags"):
        yield call.name, training, tagged("ResourceTag", account.tags(call.region, training))


def _batch(call: Call, account: Account) -> Asked:
    given = call.parameters
    if call.action == "SubmitJob":
        wanted = asking(given.get("tags", {}))
        yield call.name, arn(call, f"job-definition/{given['jobDefinition'].rpartition('/')[2]}"), wanted
        yield call.name, arn(call, f"job-queue/{given['jobQueue'].rpartition('/')[2]}"), wanted
        if wanted:
            yield "batch:TagResource", arn(call, "job/*"), wanted
    elif call.action == "TerminateJob":
        job = arn(call, f"job/{given['jobId'].partition(':')[0]}")
        yield call.name, job, tagged("ResourceTag", account.tags(call.region, job))


def _ssm(call: Call, _: Account) -> Asked:
    if call.action != "GetParameter":
        return
    parameter = call.parameters["Name"]
    # Parameters that AWS publishes belong to no account.
    owner = "" if parameter.startswith("/aws/service/") else account_of(call)
    yield call.name, f"arn:aws:ssm:{call.region}:{owner}:parameter{parameter}", {}


def _secretsmanager(call: Call, account: Account) -> Asked:
    if call.action in ("DescribeSecret", "GetSecretValue"):
        yield call.name, account.secret(call.region, call.parameters["SecretId"]), {}


def _rds_data(call: Call, account: Account) -> Asked:
    """The Data API reads the secret with the caller's own rights."""
    yield call.name, call.parameters["resourceArn"], {}
    yield "secretsmanager:GetSecretValue", account.secret(call.region, call.parameters["secretArn"]), {}


def _iam(call: Call, _: Account) -> Asked:
    """Service-linked roles: the ARN of each contains its path."""
    services = {role: service for service, role in LINKED.items()}
    service = call.parameters.get("AWSServiceName") or services[call.parameters["RoleName"]]
    about = {"iam:AWSServiceName": service} if call.action == "CreateServiceLinkedRole" else {}
    yield call.name, f"arn:aws:iam::{account_of(call)}:role/aws-service-role/{service}/{LINKED[service]}", about


_TRANSLATORS: dict[str, Callable[[Call, Account], Asked]] = {
    "s3": _s3,
    "ec2": _ec2,
    "dynamodb": _dynamodb,
    "events": _events,
    "sts": _sts,
    "states": _states,
    "ssm": _ssm,
    "batch": _batch,
    "codebuild": _codebuild,
    "ecr": _ecr,
    "sagemaker": _sagemaker,
    "rds-data": _rds_data,
    "secretsmanager": _secretsmanager,
    "sqs": _sqs,
    "sns": _sns,
    "lambda": _lambda,
    "iam": _iam,
}
