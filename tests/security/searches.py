"""What the roles of searches may and may not do, and what ends what they left: rows of test_rights.py."""

from __future__ import annotations

from contract import names
from contract.grid import GridPrefix
from contract.search import SearchPrefix, name_round
from tests.security.asking import BYTES, EXECUTIONS, HOME, JOB, STATES, TAGGED, Ask
from tests.security.grids import (
    BATCH_JOB,
    CONTAINERS,
    GRID_EXECUTION,
    GRID_MACHINE,
    IMAGES,
    LINE_EXECUTION,
    PLATFORM,
    QUEUE,
    RULE,
    THROUGH_SNS,
    TO_SAGEMAKER,
    TRAINING,
    UPLOAD,
)
from tests.security.policies import TOPIC, TOPIC_KEY, function, log_stream, queue, role

FOUND = SearchPrefix("find")
ROUND = GridPrefix(name_round("find", 1))
SEARCH_MACHINE = f"{STATES}:{names.search_machine('trainyard')}"
SEARCH_EXECUTION = f"{EXECUTIONS}:{names.search_machine('trainyard')}:find"
ROUND_EXECUTION = f"{EXECUTIONS}:{names.grid_machine('trainyard')}:{ROUND.grid}"
FOLLOWING = RULE.replace("BatchJobs", "StepFunctionsExecution")


def _reporting(who: str) -> list[Ask]:
    return [
        Ask(who, "s3:GetObject", f"{HOME}/{FOUND.description}"),
        Ask(who, "s3:GetObject", f"{HOME}/{ROUND.results_jsonl}"),
        Ask(who, "s3:PutObject", f"{HOME}/{FOUND.trials}"),
        Ask(who, "s3:PutObject", f"{HOME}/{FOUND.report}"),
        Ask(who, "s3:ListBucket", HOME),
        Ask(who, "states:DescribeExecution", ROUND_EXECUTION),
        Ask(who, "states:DescribeExecution", SEARCH_EXECUTION),
        Ask(who, "sns:Publish", TOPIC),
        Ask(who, "kms:GenerateDataKey", TOPIC_KEY, THROUGH_SNS),
        Ask(who, "logs:PutLogEvents", log_stream(f"{who}Log", "x")),
    ]


def _not_training(who: str) -> list[Ask]:
    """Nothing of searches trains, ends a training, or touches what grids and jobs write."""
    return [
        Ask(who, "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING),
        Ask(who, "batch:SubmitJob", QUEUE, TAGGED),
        Ask(who, "batch:TerminateJob", BATCH_JOB),
        Ask(who, "iam:PassRole", role("Training"), TO_SAGEMAKER),
        Ask(who, "s3:PutObject", f"{HOME}/{ROUND.description}"),
        Ask(who, "s3:PutObject", f"{HOME}/{ROUND.record(0)}"),
        Ask(who, "s3:PutObject", f"{HOME}/{UPLOAD}"),
        Ask(who, "s3:PutObject", f"{HOME}/{JOB.result}"),
        Ask(who, "s3:DeleteObject", f"{HOME}/{FOUND.trials}"),
        Ask(who, "s3:PutObject", f"{BYTES}/{ROUND.code('0')}code"),
        Ask(who, "states:StopExecution", SEARCH_EXECUTION),
        Ask(who, "states:StopExecution", LINE_EXECUTION),
        Ask(who, "states:StopExecution", GRID_EXECUTION),
        Ask(who, "states:StopExecution", ROUND_EXECUTION.replace("trainyard-grid", "trainyard-train")),
        Ask(who, "states:StopExecution", ROUND_EXECUTION.replace("trainyard-grid", "trainyard-two-grid")),
    ]


ALLOWED = [
    *_reporting("Search"),
    *_reporting("SearchCleanup"),
    Ask("Search", "s3:PutObject", f"{HOME}/{FOUND.description}"),
    Ask("Search", "s3:PutObject", f"{HOME}/{FOUND.questions(1)}"),
    Ask("Search", "s3:ListBucket", BYTES),
    Ask("Search", "s3:GetObjectVersion", f"{HOME}/{UPLOAD}"),
    Ask("Search", "ecr:BatchGetImage", IMAGES),
    Ask("Search", "ecr:DescribeImages", CONTAINERS),
    Ask("Search", "ecr:DescribeImages", PLATFORM),
    Ask("Search", "pricing:GetProducts", "*", {"aws:RequestedRegion": "us-east-1"}),
    Ask("SearchCleanup", "states:StopExecution", ROUND_EXECUTION),
    Ask("SearchCleanup", "sqs:ReceiveMessage", queue("SearchQueue")),
    Ask("SearchCleanup", "sqs:ChangeMessageVisibility", queue("SearchQueue")),
    Ask("SearchCleanup", "sqs:SendMessage", queue("SearchQueue")),
    Ask("SearchMachine", "lambda:InvokeFunction", function("Search")),
    Ask("SearchMachine", "states:StartExecution", GRID_MACHINE),
    Ask("SearchMachine", "states:DescribeExecution", ROUND_EXECUTION),
    Ask("SearchMachine", "states:StopExecution", ROUND_EXECUTION),
    Ask("SearchMachine", "events:PutRule", FOLLOWING),
    Ask("SearchMachine", "events:PutTargets", FOLLOWING),
    Ask("GridPlan", "s3:GetObjectVersion", f"{HOME}/{FOUND.questions(1)}"),
    Ask("Reaper", "states:ListExecutions", SEARCH_MACHINE),
    Ask("Reaper", "states:DescribeExecution", SEARCH_EXECUTION),
    Ask("Reaper", "states:StopExecution", ROUND_EXECUTION),
    Ask("Drain", "states:ListExecutions", SEARCH_MACHINE),
    Ask("Drain", "states:DescribeExecution", SEARCH_EXECUTION),
    Ask("Drain", "states:StopExecution", SEARCH_EXECUTION),
]

DENIED = [
    *_not_training("Search"),
    *_not_training("SearchCleanup"),
    *_not_training("SearchMachine"),
    Ask("Search", "states:StopExecution", ROUND_EXECUTION),
    Ask("Search", "states:StartExecution", GRID_MACHINE),
    Ask("Search", "states:DescribeExecution", GRID_EXECUTION),
    Ask("SearchCleanup", "states:StartExecution", GRID_MACHINE),
    Ask("SearchCleanup", "sqs:ReceiveMessage", queue("GridQueue")),
    Ask("SearchMachine", "states:StartExecution", f"{STATES}:{names.machine('trainyard')}"),
    Ask("SearchMachine", "states:StartExecution", SEARCH_MACHINE),
    Ask("SearchMachine", "lambda:InvokeFunction", function("GridPlan")),
    Ask("SearchMachine", "events:PutRule", RULE),
    Ask("SearchMachine", "s3:GetObject", f"{HOME}/{FOUND.description}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{FOUND.questions(1)}"),
    Ask("GridCollect", "s3:PutObject", f"{HOME}/{FOUND.report}"),
    Ask("Child", "s3:GetObject", f"{HOME}/{FOUND.description}"),
    Ask("Child", "states:StopExecution", ROUND_EXECUTION),
    Ask("Training", "s3:PutObject", f"{HOME}/{FOUND.questions(1)}"),
    Ask("Training", "states:StartExecution", SEARCH_MACHINE),
    Ask("Node", "s3:PutObject", f"{HOME}/{FOUND.questions(1)}"),
    Ask("Reaper", "states:StopExecution", SEARCH_EXECUTION),
]
