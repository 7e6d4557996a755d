"""What the roles of grids may and may not do, and what ends what they left: rows of test_rights.py."""

from __future__ import annotations

from contract import keys, names, tags
from contract.grid import GridPrefix
from tests.security.asking import BYTES, EXECUTIONS, HOME, JOB, OURS, PROTECTED, STATES, TAGGED, THEIRS, Ask
from tests.security.policies import ACCOUNT, REGION, TOPIC, TOPIC_KEY, function, log_stream, queue, role

AWAY, OLD = "eu-west-1", "ap-south-2"
GRID = GridPrefix("sweep")
ECR = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository"
CONTAINERS = f"arn:aws:ecr:{REGION}:763104351884:repository/pytorch-training"
IMAGES, PLATFORM = (f"{ECR}/{names.repository('trainyard', name)}" for name in ("images", names.PLATFORM))
TRAININGS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job"
TRAINING = f"{TRAININGS}/trainyard-sweep-0123456789ab-0"
STRANGE = f"{TRAININGS}/other-sweep-0123456789ab-0"
BATCH = f"arn:aws:batch:{REGION}:{ACCOUNT}"
BATCH_JOB = f"{BATCH}:job/11111111-2222-3333-4444-555555555555"
DEFINITION = f"{BATCH}:job-definition/{names.child_definition('trainyard')}"
QUEUE = f"{BATCH}:job-queue/{names.grid_queue('trainyard')}"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventsForBatchJobsRule"
GRID_EXECUTION = f"{EXECUTIONS}:{names.grid_machine('trainyard')}:sweep"
GRID_MACHINE = f"{STATES}:{names.grid_machine('trainyard')}"
SAGEMAKER_LOG = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"
METRIC = {"cloudwatch:namespace": "/aws/sagemaker/TrainingJobs"}
CREATING = TAGGED | {"sagemaker:TaggingAction": "CreateTrainingJob"}
TO_SAGEMAKER = {"iam:PassedToService": "sagemaker.amazonaws.com"}
THROUGH_SNS = {"kms:ViaService": f"sns.{REGION}.amazonaws.com"}
TAGGED_BY_OTHERS = {f"aws:RequestTag/{tags.DEPLOYMENT}": "other"}
UPLOAD = f"{keys.UPLOADS}lines.csv"
TRAIN_MACHINE = f"{STATES}:{names.machine('trainyard')}"
LINE_NAME = "trainyard-sweep-0123456789ab-0"
LINE_EXECUTION = f"{EXECUTIONS}:{names.machine('trainyard')}:{LINE_NAME}"
JOB_EXECUTION = f"{EXECUTIONS}:{names.machine('trainyard')}:{JOB.job}"
"""Of a person's own job."""
LINE_JOB = keys.JobPrefix(LINE_NAME)


def _watching_jobs(who: str) -> list[Ask]:
    """Of what sees how the jobs of lines end, and ends them."""
    return [
        Ask(who, "states:DescribeExecution", LINE_EXECUTION),
        Ask(who, "states:StopExecution", LINE_EXECUTION),
        Ask(who, "s3:GetObject", f"{HOME}/{LINE_JOB.result}"),
        Ask(who, "s3:GetObject", f"{HOME}/{LINE_JOB.description}"),
    ]


def _not_of_people(who: str) -> list[Ask]:
    """Jobs of people, other machines, and other objects of a line's job."""
    return [
        Ask(who, "states:StopExecution", JOB_EXECUTION),
        Ask(who, "states:DescribeExecution", JOB_EXECUTION),
        Ask(who, "states:StopExecution", LINE_EXECUTION.replace("trainyard-train", "trainyard-build")),
        Ask(who, "states:StopExecution", LINE_EXECUTION.replace("trainyard-train", "trainyard-two-train")),
        Ask(who, "states:ListExecutions", TRAIN_MACHINE),
        Ask(who, "s3:GetObject", f"{HOME}/{JOB.result}"),
        Ask(who, "s3:GetObject", f"{HOME}/{LINE_JOB.code('code.tar.gz')}"),
        Ask(who, "s3:PutObject", f"{HOME}/{LINE_JOB.result}"),
    ]


def _collecting(who: str) -> list[Ask]:
    return [
        Ask(who, "s3:GetObject", f"{HOME}/{GRID.description}"),
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.record(0)}"),
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.results_csv}"),
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.stopped}"),
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.work(2)}"),
        Ask(who, "s3:ListBucket", HOME),
        Ask(who, "sagemaker:DescribeTrainingJob", TRAINING),
        Ask(who, "sagemaker:ListTags", TRAINING),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING, OURS),
        Ask(who, "batch:ListJobs", "*"),
        Ask(who, "batch:DescribeJobs", "*"),
        Ask(who, "batch:TerminateJob", BATCH_JOB, OURS),
        Ask(who, "sns:Publish", TOPIC),
        Ask(who, "kms:GenerateDataKey", TOPIC_KEY, THROUGH_SNS),
        Ask(who, "logs:PutLogEvents", log_stream(f"{who}Log", "x")),
    ]


def _not_collecting(who: str) -> list[Ask]:
    return [
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.description}"),
        Ask(who, "s3:PutObject", f"{HOME}/{GRID.lines(0)}"),
        Ask(who, "s3:DeleteObject", f"{HOME}/{GRID.record(0)}"),
        Ask(who, "s3:PutObject", f"{HOME}/{JOB.result}"),
        Ask(who, "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING, THEIRS),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING, OURS | PROTECTED),
        Ask(who, "sagemaker:StopTrainingJob", STRANGE, OURS),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING.replace(REGION, AWAY), OURS),
        Ask(who, "batch:TerminateJob", BATCH_JOB, THEIRS),
        Ask(who, "batch:SubmitJob", QUEUE, TAGGED),
        Ask(who, "iam:PassRole", role("Training"), TO_SAGEMAKER),
    ]


def _ending(who: str) -> list[Ask]:
    """Of what ends trainings whose grid is gone, in regions that have left the settings as well."""
    return [
        Ask(who, "sagemaker:ListTrainingJobs", "*", {"aws:RequestedRegion": OLD}),
        Ask(who, "sagemaker:DescribeTrainingJob", TRAINING),
        Ask(who, "sagemaker:ListTags", TRAINING.replace(REGION, OLD)),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING.replace(REGION, OLD), OURS),
        Ask(who, "batch:ListJobs", "*"),
        Ask(who, "batch:TerminateJob", BATCH_JOB, OURS),
        Ask(who, "states:ListExecutions", GRID_MACHINE),
        Ask(who, "states:DescribeExecution", GRID_EXECUTION),
    ]


def _not_ending(who: str) -> list[Ask]:
    return [
        Ask(who, "sagemaker:StopTrainingJob", TRAINING, THEIRS),
        Ask(who, "sagemaker:StopTrainingJob", TRAINING, OURS | PROTECTED),
        Ask(who, "sagemaker:StopTrainingJob", STRANGE, OURS),
        Ask(who, "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
        Ask(who, "sagemaker:DeleteTrainingJob", TRAINING, OURS),
        Ask(who, "batch:TerminateJob", BATCH_JOB, THEIRS),
        Ask(who, "batch:ListJobs", "*", {"aws:RequestedRegion": OLD}),
        Ask(who, "states:StartExecution", GRID_MACHINE),
    ]


ALLOWED = [
    Ask("GridPlan", "s3:GetObject", f"{HOME}/{UPLOAD}"),
    Ask("GridPlan", "s3:GetObjectVersion", f"{HOME}/{GRID.failed}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{GRID.description}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{GRID.facts}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{GRID.lines(0)}"),
    Ask("GridPlan", "s3:PutObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("GridPlan", "s3:GetObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("GridPlan", "s3:AbortMultipartUpload", f"{BYTES}/{GRID.code('0')}code"),
    Ask("GridPlan", "s3:ListBucket", HOME),
    Ask("GridPlan", "s3:ListBucket", BYTES),
    Ask("GridPlan", "ecr:BatchGetImage", IMAGES),
    Ask("GridPlan", "ecr:BatchGetImage", CONTAINERS),
    Ask("GridPlan", "ecr:DescribeImages", CONTAINERS),
    Ask("GridPlan", "ecr:DescribeImages", PLATFORM),
    Ask("GridPlan", "pricing:GetProducts", "*", {"aws:RequestedRegion": "us-east-1"}),
    Ask("GridPlan", "logs:PutLogEvents", log_stream("GridPlanLog", "x")),
    *_collecting("GridCollect"),
    *_collecting("GridCleanup"),
    *(one for who in ("Child", "GridCollect", "GridCleanup") for one in _watching_jobs(who)),
    Ask("Child", "states:StartExecution", TRAIN_MACHINE),
    Ask("Reaper", "states:StopExecution", LINE_EXECUTION),
    Ask("GridCleanup", "states:DescribeExecution", GRID_EXECUTION),
    Ask("GridCleanup", "sqs:ReceiveMessage", queue("GridQueue")),
    Ask("GridCleanup", "sqs:ChangeMessageVisibility", queue("GridQueue")),
    Ask("GridCleanup", "sqs:SendMessage", queue("GridQueue")),
    Ask("Child", "s3:GetObject", f"{HOME}/{GRID.lines(0)}"),
    Ask("Child", "s3:GetObject", f"{HOME}/{GRID.stopped}"),
    Ask("Child", "s3:GetObject", f"{HOME}/{GRID.work(2)}"),
    Ask("Child", "s3:PutObject", f"{HOME}/{GRID.record(7)}"),
    Ask("Child", "s3:ListBucket", HOME),
    Ask("Child", "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
    Ask("Child", "sagemaker:AddTags", TRAINING, CREATING),
    Ask("Child", "sagemaker:DescribeTrainingJob", TRAINING),
    Ask("Child", "sagemaker:ListTags", TRAINING, THEIRS),
    Ask("Child", "sagemaker:StopTrainingJob", TRAINING, OURS),
    Ask("Child", "iam:PassRole", role("Training"), TO_SAGEMAKER),
    Ask("Child", "batch:DescribeJobs", "*"),
    Ask("ChildrenStart", "ecr:GetAuthorizationToken", "*"),
    Ask("ChildrenStart", "ecr:BatchGetImage", PLATFORM),
    Ask("ChildrenStart", "logs:CreateLogStream", log_stream(names.child_log_group("trainyard"), "child/x")),
    Ask("Training", "s3:GetObject", f"{HOME}/{UPLOAD}"),
    Ask("Training", "s3:ListBucket", HOME, {"s3:prefix": f"{keys.UPLOADS}digits/"}),
    Ask("Training", "s3:GetObject", f"{BYTES}/{keys.UPLOADS}digits.csv"),
    Ask("Training", "s3:GetObject", f"{BYTES}/{GRID.bytes(0)}checkpoints/1"),
    Ask("Training", "s3:GetObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("Training", "s3:PutObject", f"{BYTES}/{GRID.bytes(0)}output/model.tar.gz"),
    Ask("Training", "s3:DeleteObject", f"{BYTES}/{GRID.bytes(0)}checkpoints/1"),
    Ask("Training", "s3:ListBucket", BYTES, {"s3:prefix": f"{keys.UPLOADS}digits/"}),
    Ask("Training", "s3:ListBucket", BYTES, {"s3:prefix": f"{GRID.bytes(0)}checkpoints/"}),
    Ask("Training", "ecr:GetAuthorizationToken", "*"),
    Ask("Training", "ecr:BatchGetImage", IMAGES),
    Ask("Training", "ecr:GetDownloadUrlForLayer", CONTAINERS),
    Ask("Training", "logs:CreateLogGroup", f"{SAGEMAKER_LOG}"),
    Ask("Training", "logs:PutLogEvents", f"{SAGEMAKER_LOG}:log-stream:trainyard-sweep-0123456789ab-0/algo-1"),
    Ask("Training", "cloudwatch:PutMetricData", "*", METRIC),
    Ask("Grid", "lambda:InvokeFunction", function("GridPlan")),
    Ask("Grid", "lambda:InvokeFunction", function("GridCollect")),
    Ask("Grid", "batch:SubmitJob", QUEUE, TAGGED),
    Ask("Grid", "batch:SubmitJob", DEFINITION, TAGGED),
    Ask("Grid", "batch:SubmitJob", f"{DEFINITION}:7", TAGGED),
    Ask("Grid", "batch:TagResource", BATCH_JOB, TAGGED),
    Ask("Grid", "batch:DescribeJobs", "*"),
    Ask("Grid", "batch:TerminateJob", BATCH_JOB, OURS),
    Ask("Grid", "events:PutRule", RULE),
    Ask("Grid", "events:PutTargets", RULE),
    *_ending("Reaper"),
    *_ending("Drain"),
    Ask("Drain", "states:StopExecution", GRID_EXECUTION),
    Ask("Drain", "s3:PutObject", f"{HOME}/{GRID.stopped}"),
]

DENIED = [
    *(one for who in ("Child", "GridCollect", "GridCleanup") for one in _not_of_people(who)),
    Ask("Child", "states:StartExecution", GRID_MACHINE),
    Ask("Child", "states:StartExecution", TRAIN_MACHINE.replace("trainyard-train", "trainyard-two-train")),
    Ask("GridCollect", "states:StartExecution", TRAIN_MACHINE),
    Ask("GridPlan", "states:StartExecution", TRAIN_MACHINE),
    Ask("Training", "states:StartExecution", TRAIN_MACHINE),
    Ask("GridPlan", "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
    Ask("GridPlan", "batch:SubmitJob", QUEUE, TAGGED),
    Ask("GridPlan", "iam:PassRole", role("Training"), TO_SAGEMAKER),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{GRID.record(0)}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{GRID.stopped}"),
    Ask("GridPlan", "s3:PutObject", f"{HOME}/{UPLOAD}"),
    Ask("GridPlan", "s3:GetObject", f"{BYTES}/{GRID.bytes(0)}output/model.tar.gz"),
    Ask("GridPlan", "s3:PutObject", f"{BYTES}/{GRID.bytes(0)}output/model.tar.gz"),
    Ask("GridPlan", "s3:PutObject", f"{BYTES}/{keys.JOBS}resnet/checkpoints/a"),
    Ask("GridPlan", "s3:DeleteObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("GridPlan", "ecr:PutImage", IMAGES),
    Ask("GridPlan", "ecr:DescribeImages", IMAGES),
    Ask("GridPlan", "ecr:DescribeImages", CONTAINERS.replace(REGION, AWAY)),
    Ask("GridPlan", "ecr:BatchGetImage", IMAGES.replace(REGION, AWAY)),
    Ask("GridPlan", "pricing:GetProducts", "*", {"aws:RequestedRegion": AWAY}),
    *_not_collecting("GridCollect"),
    *_not_collecting("GridCleanup"),
    Ask("GridCleanup", "states:StopExecution", GRID_EXECUTION),
    Ask("GridCleanup", "sqs:ReceiveMessage", queue("CleanupQueue")),
    Ask("Child", "sagemaker:CreateTrainingJob", TRAINING),
    Ask("Child", "sagemaker:CreateTrainingJob", TRAINING, TAGGED_BY_OTHERS),
    Ask("Child", "sagemaker:CreateTrainingJob", STRANGE, TAGGED),
    Ask("Child", "sagemaker:CreateTrainingJob", TRAINING.replace(REGION, AWAY), TAGGED),
    Ask("Child", "sagemaker:AddTags", TRAINING, TAGGED),
    Ask("Child", "sagemaker:AddTags", TRAINING, TAGGED | {"sagemaker:TaggingAction": "CreateModel"}),
    Ask("Child", "sagemaker:DescribeTrainingJob", STRANGE),
    Ask("Child", "sagemaker:StopTrainingJob", TRAINING, THEIRS),
    Ask("Child", "sagemaker:StopTrainingJob", TRAINING, OURS | PROTECTED),
    Ask("Child", "sagemaker:CreateModel", f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:model/trainyard-x", TAGGED),
    Ask("Child", "iam:PassRole", role("Training")),
    Ask("Child", "iam:PassRole", role("Training"), {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Child", "iam:PassRole", role("Node"), TO_SAGEMAKER),
    Ask("Child", "s3:PutObject", f"{HOME}/{GRID.lines(0)}"),
    Ask("Child", "s3:PutObject", f"{HOME}/{GRID.stopped}"),
    Ask("Child", "s3:DeleteObject", f"{HOME}/{GRID.record(7)}"),
    Ask("Child", "s3:GetObject", f"{HOME}/{JOB.description}"),
    Ask("Child", "s3:PutObject", f"{BYTES}/{GRID.bytes(0)}x"),
    Ask("Child", "batch:TerminateJob", BATCH_JOB, OURS),
    Ask("Child", "batch:SubmitJob", QUEUE, TAGGED),
    Ask("Child", "ec2:RunInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/*", TAGGED),
    Ask("ChildrenStart", "ecr:PutImage", PLATFORM),
    Ask("ChildrenStart", "ecr:BatchGetImage", IMAGES),
    Ask("ChildrenStart", "s3:GetObject", f"{HOME}/{GRID.lines(0)}"),
    Ask("ChildrenStart", "logs:PutLogEvents", log_stream(names.log_group("trainyard"), "x")),
    Ask("Training", "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
    Ask("Training", "sagemaker:StopTrainingJob", TRAINING, OURS),
    Ask("Training", "s3:PutObject", f"{HOME}/{GRID.record(0)}"),
    Ask("Training", "s3:GetObject", f"{HOME}/{GRID.lines(0)}"),
    Ask("Training", "s3:PutObject", f"{BYTES}/{keys.UPLOADS}digits.csv"),
    Ask("Training", "s3:PutObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("Training", "s3:DeleteObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("Child", "s3:GetObject", f"{BYTES}/{GRID.code('0')}code"),
    Ask("Training", "s3:PutObject", f"{BYTES}/{keys.JOBS}resnet/artifacts/a"),
    Ask("Training", "s3:GetObject", f"{BYTES}/{keys.JOBS}resnet/checkpoints/a"),
    Ask("Training", "s3:PutObject", f"{BYTES}/{GRID.bytes(0)}x", {"aws:ResourceAccount": "444455556666"}),
    *(
        Ask("Training", "s3:ListBucket", bucket, prefix)
        for bucket in (HOME, BYTES)
        for prefix in ({}, {"s3:prefix": ""}, {"s3:prefix": keys.JOBS}, {"s3:prefix": f"{keys.JOBS}resnet/"})
    ),
    Ask("Training", "s3:ListBucket", HOME, {"s3:prefix": GRID.root}),
    Ask("Training", "s3:ListBucket", HOME, {"s3:prefix": keys.OWN_IMAGES}),
    Ask("Training", "logs:PutLogEvents", f"{SAGEMAKER_LOG}:log-stream:other-sweep-0123456789ab-0/algo-1"),
    Ask("Training", "logs:CreateLogStream", f"{SAGEMAKER_LOG}:log-stream:somebody/algo-1"),
    Ask("Training", "logs:PutLogEvents", f"{SAGEMAKER_LOG}:log-stream:trainyard-x/algo-1".replace(REGION, AWAY)),
    Ask("Training", "ecr:PutImage", IMAGES),
    Ask("Training", "ecr:BatchGetImage", f"{ECR}/other/images"),
    Ask("Training", "ecr:BatchGetImage", PLATFORM),
    Ask("Training", "logs:PutLogEvents", log_stream(names.log_group("trainyard"), "x")),
    Ask("Training", "cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": names.METRICS}),
    Ask("Training", "cloudwatch:PutMetricData", "*"),
    Ask("Training", "ec2:CreateNetworkInterface", f"arn:aws:ec2:{REGION}:{ACCOUNT}:network-interface/*"),
    Ask("Training", "ec2:DeleteNetworkInterface", f"arn:aws:ec2:{REGION}:{ACCOUNT}:network-interface/eni-1"),
    Ask("Training", "iam:PassRole", role("Training"), TO_SAGEMAKER),
    Ask("Grid", "batch:SubmitJob", QUEUE),
    Ask("Grid", "batch:SubmitJob", QUEUE, TAGGED_BY_OTHERS),
    Ask("Grid", "batch:SubmitJob", f"{BATCH}:job-queue/other-grid", TAGGED),
    Ask("Grid", "batch:SubmitJob", f"{BATCH}:job-definition/other-grid-child", TAGGED),
    Ask("Grid", "batch:TerminateJob", BATCH_JOB, THEIRS),
    Ask("Grid", "batch:RegisterJobDefinition", DEFINITION),
    Ask("Grid", "events:PutRule", RULE.replace("StepFunctions", "Other")),
    Ask("Grid", "lambda:InvokeFunction", function("GridCleanup")),
    Ask("Grid", "lambda:InvokeFunction", function("Launcher")),
    Ask("Grid", "sagemaker:CreateTrainingJob", TRAINING, TAGGED),
    *_not_ending("Reaper"),
    *_not_ending("Drain"),
    Ask("Reaper", "states:StopExecution", GRID_EXECUTION),
    Ask("Drain", "s3:PutObject", f"{HOME}/{GRID.record(0)}"),
    Ask("Train", "batch:SubmitJob", QUEUE, TAGGED),
]
