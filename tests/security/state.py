"""Which items of the table of state each role may use, and how: the complement of this is denied (test_state.py)."""

from __future__ import annotations

from contract import items, names
from tests.security.asking import Ask
from tests.security.policies import NODE_ROLE_ID, STREAM, TABLE, function, queue

MINE, OTHERS = (items.userid(NODE_ROLE_ID, instance) for instance in ("i-0a", "i-0b"))
"""Partitions of the instance that asks, and of another one."""
JOB, LAUNCHES, CLOSED, ORDER, SESSION, UNHEALTHY, CURVE = (
    key.partition
    for key in (
        items.job("a"),
        items.launch("a", 1, 1),
        items.closed("a", 1),
        items.order("a", 1),
        items.session("a", 1),
        items.unhealthy("a", 1, 0),
        items.curve("a"),
    )
)
WAITING, ADMISSION, REGIONS, MARKS, PASS = items.WAITING, items.ADMISSION, items.REGIONS, items.MARKS, items.PASS
GROUPS, CAPACITY, TURN, EMPTY, UNTOLD = items.GROUPS, items.CAPACITY, items.TURN, items.EMPTY, items.UNTOLD
PARTITIONS = (
    *(MINE, OTHERS, JOB, LAUNCHES, CLOSED, ORDER, SESSION, UNHEALTHY, CURVE),
    *(WAITING, ADMISSION, REGIONS, MARKS, PASS, GROUPS),
    *(CAPACITY, TURN, EMPTY, UNTOLD),
)
WITH_KEYS = (
    "GetItem",
    "PutItem",
    "DeleteItem",
    "Query",
    "BatchGetItem",
    "UpdateItem",
    "BatchWriteItem",
    "ConditionCheckItem",
)
"""Actions whose requests tell IAM the partition keys; a transaction asks for those of its parts."""
PARTIQL = ("PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
OF_THE_TABLE = ("Scan", "DescribeTable", "UpdateTable", "DeleteTable", "UpdateTimeToLive", "UpdateContinuousBackups")
"""Actions without a partition key."""

ENDING = {"GetItem": {JOB}, "Query": {LAUNCHES, CLOSED}, "PutItem": {CLOSED}}
MAY: dict[str, dict[str, set[str]]] = {
    "Node": {"GetItem": {MINE}, "PutItem": {MINE}},
    # One statement for two kinds: Admit gets the flag, and queries where the job ran that another one names.
    "Admission": {"GetItem": {ADMISSION, LAUNCHES}, "Query": {ADMISSION, LAUNCHES}, "PutItem": {JOB, UNTOLD}},
    "Launcher": {
        "GetItem": {JOB, CLOSED, GROUPS, TURN},
        "Query": {LAUNCHES, CLOSED, CAPACITY, EMPTY, UNHEALTHY},
        "PutItem": {LAUNCHES, REGIONS, GROUPS, CAPACITY, TURN, EMPTY},
        "DeleteItem": {CAPACITY},
    },
    "Attendant": {
        "GetItem": {JOB, ORDER, PASS, SESSION, CURVE},
        "Query": {LAUNCHES, WAITING, CLOSED, UNTOLD},
        "BatchGetItem": {MINE, OTHERS},
        "PutItem": {MINE, OTHERS, ORDER, WAITING, PASS, SESSION, UNHEALTHY, CURVE},
        "DeleteItem": {WAITING, UNTOLD},
    },
    "ArtifactCheck": {"GetItem": {JOB}, "Query": {LAUNCHES}, "BatchGetItem": {MINE, OTHERS}},
    "Terminator": {**ENDING, "Query": {LAUNCHES, UNHEALTHY, CLOSED}},
    "Cleanup": ENDING,
    "Drain": {
        "GetItem": {JOB, ADMISSION},
        "Query": {LAUNCHES, CLOSED, REGIONS},
        "PutItem": {CLOSED, ADMISSION},
        "DeleteItem": {ADMISSION},
    },
    "Reaper": {"GetItem": {MARKS}, "Query": {MARKS, REGIONS}, "PutItem": {MARKS}, "DeleteItem": {MARKS}},
    "RegionCheck": {"Query": {REGIONS}},
    "GridPlan": {"GetItem": {ADMISSION}, "Query": {LAUNCHES}, "PutItem": {REGIONS}},
    "Search": {"GetItem": {ADMISSION}, "Query": {LAUNCHES}},
    "PageWriter": {"GetItem": {CURVE}, "Query": {LAUNCHES, CLOSED, UNHEALTHY}, "BatchGetItem": {MINE, OTHERS}},
}
"""Role, action and partitions, as docs/reference/state.md lists them."""


def ask(role: str, action: str, *partitions: str, table: str = TABLE) -> Ask:
    """The request of the instance i-0a where the role is the nodes'."""
    context: dict[str, object] = {"dynamodb:LeadingKeys": list(partitions)} if partitions else {}
    return Ask(role, f"dynamodb:{action}", table, context | ({"aws:userid": MINE} if role == "Node" else {}))


ELSEWHERE = TABLE.replace(names.state_table("trainyard"), names.state_table("other"))
"""The table of another deployment of the account."""

ALLOWED = [
    *(ask(role, action, one) for role, may in MAY.items() for action, ones in may.items() for one in sorted(ones)),
    ask("Attendant", "BatchGetItem", MINE, OTHERS),
    *(Ask("Attendant", f"dynamodb:{one}", STREAM) for one in ("DescribeStream", "GetRecords", "GetShardIterator")),
    Ask("Attendant", "dynamodb:ListStreams", "*"),
    Ask("Attendant", "lambda:InvokeFunction", function("Attendant")),
    Ask("Attendant", "sqs:SendMessage", queue("AttendantLetters")),
]

DENIED = [
    *(
        ask(role, action, one, table=ELSEWHERE)
        for role, may in MAY.items()
        for action, ones in may.items()
        for one in ones
    ),
    *(ask(role, action) for role, may in MAY.items() for action in may),
    ask("Attendant", "BatchGetItem", MINE, JOB),
    ask("ArtifactCheck", "BatchGetItem", MINE, WAITING),
    *(
        ask("Node", "GetItem", one)
        for one in (MINE + "1", MINE[:-1], NODE_ROLE_ID, f"{NODE_ROLE_ID}:", f"{NODE_ROLE_ID}:*", "${aws:userid}", "")
    ),
    *(ask("Node", action, MINE, OTHERS) for action in ("BatchGetItem", "GetItem", "PutItem", "BatchWriteItem")),
    *(Ask("Node", f"dynamodb:{one}", STREAM) for one in ("DescribeStream", "GetRecords", "GetShardIterator")),
    Ask("Attendant", "dynamodb:GetRecords", STREAM.replace("trainyard", "other")),
    Ask("Attendant", "dynamodb:ListStreams", "*", {"aws:RequestedRegion": "us-east-1"}),
    Ask("Reaper", "dynamodb:GetRecords", STREAM),
    Ask("Attendant", "lambda:InvokeFunction", function("Launcher")),
    Ask("Attendant", "lambda:InvokeFunction", f"{function('Attendant')}:1"),
    Ask("Attendant", "sqs:ReceiveMessage", queue("AttendantLetters")),
    Ask("Attendant", "sqs:SendMessage", queue("CleanupLetters")),
    Ask("Node", "lambda:InvokeFunction", function("Attendant")),
    Ask("Node", "dynamodb:RestoreTableToPointInTime", TABLE),
    Ask("Drain", "dynamodb:DeleteTable", TABLE),
]
