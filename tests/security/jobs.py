"""What a node may do with the credentials of its job, and what it may not do to another job, or as the instance that it is."""

from __future__ import annotations

from contract import keys, names, sessions
from contract.keys import BytesPrefix, CommitKind, JobPrefix
from tests.security.asking import BYTES, EXECUTIONS, HERE, HOME, JOB, JOB_ROLE, NODES_LOG, SECRETS, STATES, Ask
from tests.security.policies import ACCOUNT, REGION, TOPIC, function, log_stream, role
from tests.security.state import JOB as JOB_ITEMS
from tests.security.state import MINE, ORDER, SESSION, ask

MEASURED = HERE | {"cloudwatch:namespace": names.node_metrics("trainyard")}
AWAY = BYTES.replace(REGION, "us-east-2")
DIGEST = "f" * 64


def of(job: str) -> list[tuple[str, str, dict[str, object]]]:
    """(action, resource, context) of everything that the nodes of a job do with its keys."""
    home, stored = JobPrefix(job), BytesPrefix(job)
    checkpoint, commit = stored.checkpoint(0, DIGEST, "a/b.pt"), stored.commit(CommitKind.CHECKPOINTS, 1, 5, 0)
    stream = names.log_stream(job, 1, 0)
    return [
        ("s3:GetObject", f"{HOME}/{home.description}", {}),
        ("s3:GetObject", f"{HOME}/{home.code('code.zip')}", {}),
        *((f"s3:{action}Object", f"{BYTES}/{checkpoint}", {}) for action in ("Get", "Put", "Delete")),
        *((f"s3:{action}Object", f"{AWAY}/{commit}", {}) for action in ("Get", "Put", "Delete")),
        ("s3:PutObject", f"{BYTES}/{stored.pack(0, DIGEST)}", {}),
        ("s3:AbortMultipartUpload", f"{BYTES}/{checkpoint}", {}),
        ("s3:AbortMultipartUpload", f"{BYTES}/{stored.artifact(0, 'model.pt')}", {}),
        ("s3:PutObject", f"{BYTES}/{stored.artifact(0, 'model.pt')}", {}),
        ("s3:PutObject", f"{BYTES}/{stored.commit(CommitKind.ARTIFACTS, 1, 5, 0)}", {}),
        ("s3:PutObject", f"{BYTES}/{stored.part(1, 5, 0)}", {}),
        ("s3:PutObject", f"{BYTES}/{stored.closed(1, 5)}", {}),
        ("s3:DeleteObject", f"{BYTES}/{stored.closed(1, 5)}", {}),
        ("s3:GetObject", f"{BYTES}/{stored.plan(1, 5)}", {}),
        *((f"s3:{action}Object", f"{BYTES}/{stored.remote_command(1, 2)}", {}) for action in ("Get", "Put")),
        *((f"s3:{action}Object", f"{BYTES}/{stored.remote_end(1, 2)}", {}) for action in ("Get", "Put")),
        ("s3:ListBucket", BYTES, {"s3:prefix": stored.remote(1)}),
        ("s3:ListBucket", BYTES, {"s3:prefix": stored.commits(CommitKind.CHECKPOINTS)}),
        *((f"s3:{action}", f"{BYTES}/{stored.environment(DIGEST)}", {}) for action in ("GetObject", "PutObject")),
        ("s3:GetObject", f"{BYTES}/{stored.environment_file(DIGEST, DIGEST)}", {}),
        ("s3:AbortMultipartUpload", f"{BYTES}/{stored.environment_file(DIGEST, DIGEST)}", {}),
        ("s3:ListBucket", BYTES, {"s3:prefix": stored.environment(DIGEST)}),
        ("s3:ListBucket", BYTES, {"s3:prefix": stored.checkpoints(0)}),
        ("s3:ListBucket", HOME, {"s3:prefix": home.code("code.zip")}),
        ("logs:CreateLogStream", log_stream(NODES_LOG, stream), {}),
        ("logs:PutLogEvents", log_stream(NODES_LOG, stream), {}),
        ("logs:PutLogEvents", log_stream(NODES_LOG, names.kernel_stream(job, 2, 1)), {}),
    ]


FOREIGN = (names.METRICS, names.node_metrics("other"))
MAY = [
    *of("resnet"),
    ("secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf", {}),
    ("cloudwatch:PutMetricData", "*", MEASURED),
]
NEARLY = ("resnet2", "resne", "RESNET", "bert", "resnet.1", "-resnet")
"""Other jobs, whose names are much like this one's."""
PLANTED = f"{keys.JOBS}resnet/x/checkpoints/launch-9/attempts/0/nodes/z"

CORPUS = "arn:aws:iam::444455556666:role/corpus"
"""The only one of the setting `job_roles`, in the deployment with everything that the settings can add."""
WITH_JOB: dict[str, object] = {f"aws:RequestTag/{sessions.TAG}": "resnet", "aws:TagKeys": [sessions.TAG]}
WITHOUT_JOB: tuple[dict[str, object], ...] = (
    {},
    {"aws:TagKeys": [sessions.TAG]},
    {f"aws:RequestTag/{sessions.TAG}": "", "aws:TagKeys": [sessions.TAG]},
    {"aws:RequestTag/owner": "ada", "aws:TagKeys": ["owner"]},
    WITH_JOB | {"aws:RequestTag/admin": "yes", "aws:TagKeys": ["admin", sessions.TAG]},
)
BEGINS = ("sts:AssumeRole", "sts:TagSession")
ALLOWED = [
    Ask("Attendant", "states:ListExecutions", f"{STATES}:trainyard-train"),
    Ask("Attendant", "states:DescribeExecution", f"{EXECUTIONS}:trainyard-train:resnet"),
    *(Ask("Job", *one) for one in MAY),
    # Admit learns from the attendant whether sessions can be had; it gets none itself.
    Ask("Admission", "lambda:InvokeFunction", function("Attendant")),
    Ask(
        "Attendant",
        "sts:AssumeRole",
        JOB_ROLE,
        {f"aws:RequestTag/{sessions.TAG}": "resnet", "aws:TagKeys": [sessions.TAG]},
    ),
    Ask(
        "Attendant",
        "sts:TagSession",
        JOB_ROLE,
        {f"aws:RequestTag/{sessions.TAG}": "resnet", "aws:TagKeys": [sessions.TAG]},
    ),
]
DENIED = [
    Ask("Attendant", "states:ListExecutions", f"{STATES}:other-train"),
    Ask("Attendant", "states:DescribeExecution", f"{EXECUTIONS}:other-train:resnet"),
    Ask("Attendant", "states:DescribeExecution", f"{EXECUTIONS}:trainyard-grid:sweep"),
    Ask("Attendant", "states:StopExecution", f"{EXECUTIONS}:trainyard-train:resnet"),
    Ask("Attendant", "states:GetExecutionHistory", f"{EXECUTIONS}:trainyard-train:resnet"),
    *(
        Ask(who, "states:DescribeExecution", f"{EXECUTIONS}:trainyard-train:resnet")
        for who in ("Node", "Job", "Launcher")
    ),
    Ask("Job", "sns:Publish", TOPIC),
    # One job against another.
    *(Ask("Job", *one) for other in NEARLY for one in of(other)),
    # The instance without the credentials of its job.
    *(Ask("Node", *one) for one in MAY),
    *(
        Ask(who, one, JOB_ROLE, WITH_JOB)
        for who in ("Node", "Job", "Admission", "Launcher", "Child", "Training", "Build")
        for one in BEGINS
    ),
    *(
        Ask(who, "lambda:InvokeFunction", function("Attendant"))
        for who in ("Job", "Launcher", "Child", "Training", "Build", "Terminator")
    ),
    *(
        Ask("Admission", "lambda:InvokeFunction", function(one))
        for one in ("Launcher", "Terminator", "Drain", "Reaper")
    ),
    # A session against what the control plane keeps, of its own job too.
    *(
        ask("Job", action, one)
        for action in ("GetItem", "PutItem", "Query")
        for one in (MINE, JOB_ITEMS, ORDER, SESSION)
    ),
    Ask("Job", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("Job", "s3:PutObject", f"{HOME}/{JOB.code('code.zip')}"),
    Ask("Job", "s3:GetObject", f"{HOME}/{JOB.result}"),
    Ask("Job", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Job", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Job", "s3:PutObject", f"{HOME}/{PLANTED}"),
    Ask("Job", "s3:PutObject", f"{BYTES}/{PLANTED}"),
    Ask("Job", "s3:GetObject", f"{HOME}/{keys.agent('a' * 64)}"),
    Ask("Job", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Job", "s3:GetObject", f"{BYTES}/{BytesPrefix('resnet').artifact(0, 'model.pt')}"),
    Ask("Job", "s3:DeleteObject", f"{BYTES}/{BytesPrefix('resnet').artifact(0, 'model.pt')}"),
    Ask("Job", "s3:GetObject", f"{BYTES}/{BytesPrefix('resnet').artifact(0, 'checkpoints/x')}"),
    Ask("Job", "s3:DeleteObject", f"{BYTES}/{BytesPrefix('resnet').artifact(0, 'commits/x')}"),
    Ask("Job", "s3:AbortMultipartUpload", f"{BYTES}/{BytesPrefix('resnet').commit(CommitKind.CHECKPOINTS, 1, 5, 0)}"),
    Ask("Job", "s3:AbortMultipartUpload", f"{HOME}/{JOB.code('code.zip')}"),
    Ask("Job", "s3:DeleteObject", f"{BYTES}/{BytesPrefix('resnet').environment(DIGEST)}"),
    Ask("Job", "s3:DeleteObjectVersion", f"{BYTES}/{BytesPrefix('resnet').checkpoint(0, DIGEST, 'a')}"),
    Ask(
        "Job",
        "s3:PutObject",
        f"{BYTES}/{BytesPrefix('resnet').artifact(0, 'a')}",
        {"aws:ResourceAccount": "444455556666"},
    ),
    Ask("Job", "s3:GetObject", f"{HOME}/{JOB.description}", {"aws:ResourceAccount": "444455556666"}),
    # Lists of everything, and of other jobs.
    Ask("Job", "s3:ListBucket", BYTES),
    Ask("Job", "s3:ListBucket", HOME),
    *(
        Ask("Job", "s3:ListBucket", BYTES, {"s3:prefix": one})
        for one in (
            "",
            "jobs/",
            "jobs/resnet",
            "jobs/resnet2/",
            "jobs/*/",
            "*",
            "environments/",
            "environments/resnet2/",
        )
    ),
    # Secrets elsewhere, other logs, other metrics.
    Ask("Job", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/other/key-AbCdEf"),
    Ask("Job", "secretsmanager:PutSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask(
        "Job",
        "secretsmanager:GetSecretValue",
        f"{SECRETS.replace(REGION, 'us-west-1')}:trainyard/trainyard/wandb-AbCdEf",
    ),
    Ask("Job", "logs:PutLogEvents", log_stream("AttendantLog", "resnet/1/0")),
    Ask("Job", "logs:DeleteLogStream", log_stream(NODES_LOG, names.log_stream("resnet", 1, 0))),
    *(Ask("Job", "cloudwatch:PutMetricData", "*", HERE | {"cloudwatch:namespace": one}) for one in FOREIGN),
    Ask("Job", "cloudwatch:PutMetricData", "*", HERE),
    Ask(
        "Job", "s3:GetObject", f"arn:aws:s3:::{names.bytes_bucket('other', ACCOUNT, REGION)}/jobs/resnet/checkpoints/x"
    ),
    Ask("Job", "ec2:DescribeInstances", "*", HERE),
    Ask("Job", "ec2:TerminateInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
    # Only the attendant begins sessions, only such as name a job, and of the job role alone where the settings name no other.
    *(Ask("Attendant", begins, one, WITH_JOB) for begins in BEGINS for one in (role("Launcher"), CORPUS)),
    *(Ask("Attendant", begins, JOB_ROLE, given) for begins in BEGINS for given in WITHOUT_JOB),
]
