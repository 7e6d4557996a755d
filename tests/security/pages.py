"""What the roles of pages may and may not do: rows of test_rights.py."""

from __future__ import annotations

from contract import items, keys, names
from contract.grid import GridPrefix
from contract.keys import BytesPrefix
from contract.search import SearchPrefix
from tests.security.asking import BYTES, EC2, EXECUTIONS, HOME, JOB, NODES_LOG, OURS, SECRETS, STATES, Ask
from tests.security.policies import NODE_ROLE_ID, TABLE, TOPIC, function, log_stream, queue, role

GRID, SEARCH, COMMITS = GridPrefix("sweep"), SearchPrefix("find"), BytesPrefix("resnet")
MACHINES = {
    "resnet": names.machine("trainyard"),
    "sweep": names.grid_machine("trainyard"),
    "find": names.search_machine("trainyard"),
}
"""Name of an execution, and its machine."""
OTHERS = (names.build_machine("trainyard"), names.drain_machine("trainyard"), names.machine("other"))
NODE = items.userid(NODE_ROLE_ID, "i-0a")

ALLOWED = [
    *(Ask("PageWriter", "states:ListExecutions", f"{STATES}:{machine}") for machine in MACHINES.values()),
    *(
        Ask("PageWriter", "states:DescribeExecution", f"{EXECUTIONS}:{machine}:{name}")
        for name, machine in MACHINES.items()
    ),
    *(
        Ask("PageWriter", "s3:GetObject", f"{HOME}/{key}")
        for key in (
            *(JOB.description, JOB.result, JOB.wait, JOB.page),
            *(GRID.description, GRID.lines(0), GRID.record(0), GRID.results_jsonl, GRID.report, GRID.page),
            *(SEARCH.description, SEARCH.questions(1), SEARCH.trials, SEARCH.report, SEARCH.page),
        )
    ),
    *(Ask("PageWriter", "s3:PutObject", f"{HOME}/{key}") for key in (JOB.page, GRID.page, SEARCH.page)),
    Ask("PageWriter", "s3:ListBucket", HOME),
    Ask("PageWriter", "s3:ListBucket", BYTES),
    Ask("PageWriter", "s3:GetObject", f"{BYTES}/{COMMITS.closed(1, 1)}"),
    Ask("PageWriter", "sqs:ReceiveMessage", queue("PageQueue")),
    Ask("PageWriter", "sqs:DeleteMessage", queue("PageQueue")),
    Ask("PageWriter", "sqs:ChangeMessageVisibility", queue("PageQueue")),
    Ask("PageWriter", "sqs:SendMessage", queue("PageQueue")),
    Ask("PageWriter", "logs:PutLogEvents", log_stream("PageWriterLog", "x")),
    Ask("PageClock", "lambda:InvokeFunction", function("PageWriter")),
    Ask("PageClock", "sqs:SendMessage", queue("PageLetters")),
]

DENIED = [
    # It changes nothing that anything but a person reads.
    *(
        Ask("PageWriter", "s3:PutObject", f"{HOME}/{key}")
        for key in (
            *(JOB.description, JOB.result, JOB.wait, JOB.code("code.tar"), JOB.artifacts(1)),
            *(GRID.description, GRID.record(0), GRID.results_csv, GRID.report, GRID.stopped, GRID.lines(0)),
            *(SEARCH.description, SEARCH.questions(1), SEARCH.trials, SEARCH.report),
            *(f"{keys.UPLOADS}report.html", f"{keys.AGENTS}report.html", keys.own_context("a"), "report.html"),
        )
    ),
    Ask("PageWriter", "s3:PutObject", f"{BYTES}/{JOB.page}"),
    Ask("PageWriter", "s3:DeleteObject", f"{HOME}/{JOB.page}"),
    Ask("PageWriter", "s3:PutObjectAcl", f"{HOME}/{JOB.page}"),
    # It reads what pages show, and neither code nor checkpoints nor artifacts.
    Ask("PageWriter", "s3:GetObject", f"{HOME}/{JOB.code('code.tar')}"),
    Ask("PageWriter", "s3:GetObject", f"{HOME}/{keys.UPLOADS}code.zip"),
    Ask("PageWriter", "s3:GetObject", f"{BYTES}/{COMMITS.artifact(0, 'model.bin')}"),
    Ask("PageWriter", "s3:GetObject", f"{BYTES}/{COMMITS.checkpoint(0, '0' * 16, 'weights.pt')}"),
    Ask("PageWriter", "s3:GetObject", f"{BYTES}/{COMMITS.part(1, 1, 0)}"),
    Ask("PageWriter", "secretsmanager:GetSecretValue", f"{SECRETS}:{names.secret_prefix('trainyard')}token-a1b2c3"),
    # It starts and ends nothing.
    *(Ask("PageWriter", "states:StartExecution", f"{STATES}:{machine}") for machine in MACHINES.values()),
    *(
        Ask("PageWriter", "states:StopExecution", f"{EXECUTIONS}:{machine}:{name}")
        for name, machine in MACHINES.items()
    ),
    *(Ask("PageWriter", "states:ListExecutions", f"{STATES}:{machine}") for machine in OTHERS),
    *(Ask("PageWriter", "states:DescribeExecution", f"{EXECUTIONS}:{machine}:resnet") for machine in OTHERS),
    Ask("PageWriter", "states:SendTaskSuccess", f"{STATES}:{MACHINES['resnet']}"),
    Ask("PageWriter", "ec2:DescribeInstances", "*"),
    Ask("PageWriter", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("PageWriter", "iam:PassRole", role("Node")),
    Ask("PageWriter", "sns:Publish", TOPIC),
    Ask("PageWriter", "sqs:SendMessage", queue("CleanupQueue")),
    Ask("PageWriter", "sqs:ReceiveMessage", queue("PageLetters")),
    Ask("PageWriter", "lambda:InvokeFunction", function("Attendant")),
    Ask("PageWriter", "logs:GetLogEvents", log_stream(NODES_LOG, "resnet/1/0")),
    Ask("PageWriter", "dynamodb:PutItem", TABLE, {"dynamodb:LeadingKeys": [NODE]}),
    # Nobody else writes pages.
    *(
        Ask(who, "s3:PutObject", f"{HOME}/{key}")
        for who in ("Node", "Job", "Training", "Child", "Terminator", "GridCollect", "Launcher")
        for key in (JOB.page, GRID.page)
    ),
    Ask("PageClock", "lambda:InvokeFunction", function("Reaper")),
    Ask("PageClock", "sqs:SendMessage", queue("PageQueue")),
]
