"""What the roles that end things may and may not do: rows of the tables in test_rights.py."""

from __future__ import annotations

from contract import names, tags
from tests.security.asking import (
    BYTES,
    EC2,
    EXECUTIONS,
    HERE,
    HOME,
    JOB,
    LAUNCHING,
    OURS,
    PROTECTED,
    STATES,
    TAGGED,
    THEIRS,
    UNDER_OURS,
    UNDER_THEIRS,
    Ask,
)
from tests.security.policies import ACCOUNT, REGION, TOPIC, TOPIC_KEY, function, log_stream, queue

AWAY = "eu-west-1"
THERE = {"aws:RequestedRegion": AWAY}
EC2_AWAY = f"arn:aws:ec2:{AWAY}:{ACCOUNT}"
BY_SNS = {"kms:ViaService": f"sns.{REGION}.amazonaws.com"}
PRICES = {"aws:RequestedRegion": "us-east-1"}
LOOKS_LIKE_OURS = [
    {f"aws:ResourceTag/{tags.DEPLOYMENT}": value} for value in ("trainyard ", "Trainyard", "trainyard-2")
]
RUN = f"{EXECUTIONS}:trainyard-train:resnet"
THEIR_RUN = f"{EXECUTIONS}:other-train:resnet"
DRAIN = f"{STATES}:{names.drain_machine('trainyard')}"

ALLOWED = [
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:spot-instances-request/*", LAUNCHING),
    Ask("Cleanup", "logs:PutLogEvents", log_stream("CleanupLog", "x")),
    Ask("Cleanup", "sqs:ReceiveMessage", queue("CleanupQueue")),
    Ask("Cleanup", "sqs:DeleteMessage", queue("CleanupQueue")),
    Ask("Cleanup", "sqs:GetQueueAttributes", queue("CleanupQueue")),
    Ask("Cleanup", "sqs:ChangeMessageVisibility", queue("CleanupQueue")),
    Ask("Cleanup", "sqs:SendMessage", queue("CleanupQueue")),
    Ask("Cleanup", "states:DescribeExecution", RUN),
    Ask("Cleanup", "states:ListExecutions", f"{STATES}:trainyard-train"),
    Ask("Cleanup", "s3:ListBucket", HOME, {"s3:prefix": JOB.root}),
    Ask("Cleanup", "s3:GetObject", f"{HOME}/{JOB.result}"),
    Ask("Cleanup", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Cleanup", "ec2:DescribeInstances", "*", HERE),
    Ask("Cleanup", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS | UNDER_OURS),
    Ask("Reaper", "logs:CreateLogStream", log_stream("ReaperLog", "x")),
    Ask("Reaper", "ec2:DescribeInstances", "*", HERE),
    Ask("Reaper", "ec2:DescribeInstances", "*", THERE),
    Ask("Reaper", "ec2:DescribeVolumes", "*", THERE),
    Ask("Reaper", "ec2:DescribeNetworkInterfaces", "*", THERE),
    Ask("Reaper", "ec2:DescribeSpotInstanceRequests", "*", THERE),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS | UNDER_OURS),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2_AWAY}:instance/i-1", OURS | UNDER_OURS | THERE),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2}:instance/i-1", UNDER_OURS),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2_AWAY}:instance/i-1", UNDER_OURS | THERE),
    Ask("Reaper", "ec2:DeleteVolume", f"{EC2_AWAY}:volume/vol-1", OURS | THERE),
    Ask("Reaper", "ec2:DeleteNetworkInterface", f"{EC2}:network-interface/eni-1", OURS),
    Ask("Reaper", "ec2:CancelSpotInstanceRequests", f"{EC2}:spot-instances-request/sir-1", OURS),
    Ask("Reaper", "states:ListExecutions", f"{STATES}:trainyard-train"),
    Ask("Reaper", "states:DescribeExecution", RUN),
    Ask("Reaper", "sns:Publish", TOPIC),
    Ask("Reaper", "kms:GenerateDataKey", TOPIC_KEY, BY_SNS),
    Ask("Reaper", "kms:Decrypt", TOPIC_KEY, BY_SNS),
    Ask("Reaper", "cloudwatch:GetMetricData", "*"),
    Ask("Reaper", "pricing:GetProducts", "*", PRICES),
    Ask("Reaper", "sqs:SendMessage", queue("Letters")),
    Ask("Schedule", "lambda:InvokeFunction", function("Reaper")),
    Ask("Schedule", "sqs:SendMessage", queue("Letters")),
    Ask("Drain", "logs:PutLogEvents", log_stream("DrainLog", "x")),
    Ask("Drain", "s3:ListBucket", HOME, {"s3:prefix": JOB.root}),
    Ask("Drain", "s3:GetObject", f"{HOME}/{JOB.result}"),
    Ask("Drain", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Drain", "states:ListExecutions", f"{STATES}:trainyard-train"),
    Ask("Drain", "states:DescribeExecution", RUN),
    Ask("Drain", "states:StopExecution", RUN),
    Ask("Drain", "states:StartExecution", DRAIN),
    Ask("Drain", "ec2:DescribeInstances", "*", THERE),
    Ask("Drain", "ec2:DescribeSpotInstanceRequests", "*", THERE),
    Ask("Drain", "ec2:DescribeVpcs", "*", THERE),
    Ask("Drain", "ec2:DescribeSecurityGroups", "*", THERE),
    Ask("Drain", "ec2:DescribeNetworkInterfaces", "*", THERE),
    Ask("Drain", "ec2:DescribeNatGateways", "*", THERE),
    Ask("Drain", "ec2:DescribeVpcEndpoints", "*", THERE),
    Ask("Drain", "ec2:CancelSpotInstanceRequests", f"{EC2_AWAY}:spot-instances-request/sir-1", OURS | THERE),
    Ask("Drain", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS | UNDER_OURS),
    Ask("Drain", "ec2:TerminateInstances", f"{EC2_AWAY}:instance/i-1", OURS | UNDER_OURS | THERE),
    Ask("DrainMachine", "lambda:InvokeFunction", function("Drain")),
]

DENIED = [
    *(
        Ask(one, "ec2:TerminateInstances", f"{EC2}:instance/i-9", context)
        for one in ("Cleanup", "Reaper", "Drain")
        for context in (
            {},
            THEIRS,
            OURS,
            OURS | UNDER_OURS | PROTECTED,
            OURS | UNDER_THEIRS,
            UNDER_THEIRS,
            THEIRS | UNDER_OURS,
            *(one | UNDER_OURS for one in LOOKS_LIKE_OURS),
        )
    ),
    *(
        Ask(one, action, resource, context)
        for one in ("Cleanup", "Reaper", "Drain")
        for action, resource, context in (
            ("ec2:StopInstances", f"{EC2}:instance/i-1", OURS),
            ("ec2:DetachNetworkInterface", f"{EC2}:network-interface/eni-1", {}),
            ("ec2:DeleteNetworkInterface", f"{EC2}:network-interface/eni-8", {}),
            ("ec2:DeleteSubnet", f"{EC2}:subnet/subnet-1", OURS),
            ("ec2:DeleteNatGateway", f"{EC2}:natgateway/nat-1", OURS),
            ("ec2:DeleteVpcEndpoints", f"{EC2}:vpc-endpoint/vpce-1", OURS),
            ("ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
            ("ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.PROTECTED]}),
            ("ec2:DeleteTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.PROTECTED]}),
            ("ec2:ModifyInstanceAttribute", f"{EC2}:instance/i-1", OURS),
            ("states:SendTaskSuccess", f"{STATES}:trainyard-train", {}),
            ("states:StartExecution", f"{STATES}:trainyard-train", {}),
            ("states:StopExecution", THEIR_RUN, {}),
            ("states:DescribeExecution", THEIR_RUN, {}),
            ("states:ListExecutions", f"{STATES}:other-train", {}),
            ("s3:GetObject", f"{BYTES}/jobs/resnet/checkpoints/x", {}),
            ("s3:DeleteObject", f"{HOME}/{JOB.description}", {}),
            ("s3:GetObject", f"arn:aws:s3:::{names.home_bucket('other', ACCOUNT, REGION)}/{JOB.description}", {}),
        )
    ),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS | UNDER_OURS | PROTECTED),
    Ask("Cleanup", "ec2:TerminateInstances", f"{EC2_AWAY}:instance/i-1", OURS | UNDER_OURS | THERE),
    Ask("Cleanup", "ec2:TerminateInstances", f"{EC2}:instance/i-1", UNDER_OURS),
    Ask("Cleanup", "ec2:DescribeInstances", "*", THERE),
    Ask("Cleanup", "states:StopExecution", RUN),
    *(
        Ask("Cleanup", "states:ListExecutions", f"{STATES}:{machine}")
        for machine in ("trainyard-grid", "trainyard-search", "trainyard-train-2")
    ),
    Ask("Cleanup", "lambda:InvokeFunction", function("Cleanup")),
    Ask("Cleanup", "sqs:ReceiveMessage", queue("CleanupLetters")),
    Ask("Cleanup", "sqs:SendMessage", queue("CleanupLetters")),
    Ask("Cleanup", "sqs:PurgeQueue", queue("CleanupQueue")),
    Ask("Cleanup", "sns:Publish", TOPIC),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2}:instance/i-1", UNDER_OURS | PROTECTED),
    Ask("Reaper", "ec2:TerminateInstances", f"{EC2_AWAY}:instance/i-1", UNDER_OURS | THEIRS | THERE),
    *(
        Ask("Drain", "ec2:CancelSpotInstanceRequests", f"{EC2}:spot-instances-request/sir-9", context)
        for context in ({}, THEIRS, OURS | PROTECTED)
    ),
    *(
        Ask("Reaper", action, f"{EC2}:{thing}", context)
        for action, thing in (
            ("ec2:DeleteVolume", "volume/vol-9"),
            ("ec2:DeleteNetworkInterface", "network-interface/eni-9"),
            ("ec2:CancelSpotInstanceRequests", "spot-instances-request/sir-9"),
        )
        for context in ({}, THEIRS, OURS | PROTECTED)
    ),
    Ask("Reaper", "ec2:DetachVolume", f"{EC2}:volume/vol-1", OURS),
    Ask("Reaper", "ec2:DeleteSnapshot", f"arn:aws:ec2:{REGION}::snapshot/snap-1", OURS),
    Ask("Reaper", "states:StopExecution", RUN),
    *(Ask(one, "s3:GetObject", f"{HOME}/{JOB.description}") for one in ("Cleanup", "Reaper", "Drain")),
    Ask("Reaper", "s3:ListBucket", HOME),
    Ask("Reaper", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Reaper", "sns:Publish", f"arn:aws:sns:{REGION}:{ACCOUNT}:somebody-elses"),
    Ask("Reaper", "sns:Subscribe", TOPIC),
    Ask("Reaper", "kms:Decrypt", TOPIC_KEY),
    Ask("Reaper", "kms:Decrypt", TOPIC_KEY, {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}),
    Ask("Reaper", "kms:Decrypt", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/somebody-elses", BY_SNS),
    Ask("Reaper", "kms:ScheduleKeyDeletion", TOPIC_KEY, BY_SNS),
    Ask("Reaper", "cloudwatch:GetMetricData", "*", THERE),
    Ask("Reaper", "cloudwatch:PutMetricData", "*"),
    Ask("Reaper", "cloudwatch:DeleteAlarms", f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:trainyard-reaper-silent"),
    Ask("Reaper", "pricing:GetProducts", "*", THERE),
    Ask("Reaper", "sqs:SendMessage", queue("CleanupQueue")),
    Ask("Reaper", "sqs:ReceiveMessage", queue("Letters")),
    Ask("Reaper", "lambda:InvokeFunction", function("Drain")),
    Ask("Schedule", "lambda:InvokeFunction", function("Drain")),
    Ask("Schedule", "lambda:InvokeFunction", f"{function('Reaper')}:1"),
    Ask("Schedule", "sqs:SendMessage", queue("CleanupQueue")),
    Ask("Schedule", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Drain", "ec2:TerminateInstances", f"{EC2}:instance/i-1", UNDER_OURS),
    Ask("Drain", "ec2:DeleteVolume", f"{EC2}:volume/vol-1", OURS),
    Ask("Drain", "s3:DeleteObjectVersion", f"{HOME}/{JOB.description}"),
    Ask("Drain", "s3:DeleteObject", f"{BYTES}/jobs/resnet/checkpoints/x"),
    Ask("Drain", "s3:DeleteBucket", HOME),
    Ask("Drain", "states:StopExecution", f"{EXECUTIONS}:trainyard-drain:drain-1"),
    Ask("Drain", "cloudformation:DeleteStack", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/trainyard-workflow/1"),
    Ask("DrainMachine", "lambda:InvokeFunction", function("Reaper")),
    Ask("DrainMachine", "lambda:InvokeFunction", f"{function('Drain')}:1"),
    Ask("DrainMachine", "states:StartExecution", DRAIN),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:spot-instances-request/sir-1", TAGGED),
    Ask("Node", "sqs:SendMessage", queue("CleanupQueue")),
    Ask("Node", "sns:Publish", TOPIC),
]
