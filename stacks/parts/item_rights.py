"""Rights on items of the table of state. IAM limits them by partition key, and the key begins with the kind of the item."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk

from contract import items, names
from stacks.parts.right import Right
from stacks.parts.rights import Rights

LEADING = "dynamodb:LeadingKeys"
OWN_ITEMS = "${aws:userid}"
"""Policy variable: the caller's own partition key (`items.userid`), if the caller is an instance."""


def item_right(rights: Rights, name: str, actions: Sequence[str], *leading: str) -> Right:
    """Allows `actions`, such as `GetItem`, on items whose partition key is one of `leading`, or begins with one that ends with `*`.

    Only for actions that name partition keys: a Scan names none.
    """
    operator = "StringLike" if any("*" in one for one in leading) else "StringEquals"
    return Right(
        name,
        [f"dynamodb:{action}" for action in actions],
        [_table(rights)],
        conditions={
            f"ForAllValues:{operator}": {LEADING: list(leading)},
            # Without the Null condition, ForAllValues is true for a request without keys.
            "Null": {LEADING: "false"},
        },
    )


def own_items(rights: Rights) -> Right:
    """For the role of nodes: each writes its own report, and reads its own order and its own credentials."""
    return item_right(rights, "WriteAndReadOwnItems", ["GetItem", "PutItem"], OWN_ITEMS)


def read_attempts(rights: Rights) -> list[Right]:
    """Allows to read admitted jobs, and what was launched for them."""
    return [
        item_right(rights, "ReadJobItems", ["GetItem"], f"{items.JOBS}*"),
        query_launches(rights),
    ]


def query_launches(rights: Rights) -> Right:
    """Allows to read what was launched for jobs."""
    return item_right(rights, "QueryLaunches", ["Query"], f"{items.LAUNCHES}*")


def admit(rights: Rights) -> list[Right]:
    """For Admit: reads whether admission is closed, and where the job ran that another one names (`resume_from`); writes the job. Few
    statements, because with many regions its policy nearly fills what IAM takes."""
    return [
        item_right(rights, "ReadAdmissionAndLaunches", ["GetItem", "Query"], items.ADMISSION, f"{items.LAUNCHES}*"),
        item_right(rights, "WriteJobItems", ["PutItem"], f"{items.JOBS}*", items.UNTOLD),
    ]


def launch(rights: Rights) -> list[Right]:
    """For the launcher: few statements, because with many regions its policy nearly fills what IAM takes."""
    return [
        item_right(
            rights, "ReadJobsAndClosed", ["GetItem"], f"{items.JOBS}*", f"{items.CLOSED}*", items.GROUPS, items.TURN
        ),
        item_right(
            rights,
            "QueryLaunches",
            ["Query"],
            *(f"{items.LAUNCHES}*", f"{items.CLOSED}*", f"{items.UNHEALTHY}*", items.CAPACITY, items.EMPTY),
        ),
        item_right(
            rights,
            "WriteLaunches",
            ["PutItem"],
            *(f"{items.LAUNCHES}*", items.REGIONS, items.GROUPS, items.CAPACITY, items.TURN, items.EMPTY),
        ),
        item_right(rights, "ForgetWaits", ["DeleteItem"], items.CAPACITY),
    ]


def end_attempts(rights: Rights) -> list[Right]:
    """Allows to read attempts, to close them, and to note and read when they ended, by which a job's cost is counted."""
    return [
        *read_attempts(rights),
        item_right(rights, "CloseAttempts", ["PutItem"], f"{items.CLOSED}*"),
        item_right(rights, "QueryEnds", ["Query"], f"{items.CLOSED}*"),
    ]


def show_jobs(rights: Rights, node_role: str) -> list[Right]:
    """For the pages of jobs: reads what was launched, how attempts ended, what nodes reported, and the metric over steps."""
    shown = (f"{items.LAUNCHES}*", f"{items.CLOSED}*", f"{items.UNHEALTHY}*")
    return [
        item_right(rights, "QueryAttempts", ["Query"], *shown),
        item_right(rights, "ReadCurves", ["GetItem"], f"{items.CURVES}*"),
        read_reports(rights, node_role),
    ]


def query_unhealthy(rights: Rights) -> Right:
    """Allows to read because of which nodes' machines attempts ended."""
    return item_right(rights, "QueryUnhealthyNodes", ["Query"], f"{items.UNHEALTHY}*")


def read_admission(rights: Rights) -> Right:
    """Allows to read whether admission is closed."""
    return item_right(rights, "ReadAdmission", ["GetItem"], items.ADMISSION)


def note_regions(rights: Rights) -> Right:
    """Allows to note that something is launched in a region, and not to take that back."""
    return item_right(rights, "NoteLaunchedRegions", ["PutItem"], items.REGIONS)


def query_regions(rights: Rights) -> Right:
    """Allows to read in which regions anything was ever launched."""
    return item_right(rights, "QueryLaunchedRegions", ["Query"], items.REGIONS)


def attend(rights: Rights, node_role: str) -> list[Right]:
    """For the attendant: reads attempts and reports, gives orders and credentials, keeps task tokens, the metric over steps and the time of
    its last pass, tells people of ends. Few statements, because its policy nearly fills what IAM takes. `node_role` is the id of the
    nodes' role."""
    nodes = items.userid(node_role, "*")
    return [
        item_right(rights, "ReadJobItems", ["GetItem"], f"{items.JOBS}*"),
        item_right(
            rights,
            "QueryAttemptsAndWaiting",
            ["Query"],
            *(f"{items.LAUNCHES}*", f"{items.CLOSED}*", items.WAITING, items.UNTOLD),
        ),
        read_reports(rights, node_role),
        item_right(
            rights,
            "NoteOrdersSessionsAndPasses",
            ["GetItem", "PutItem"],
            *(f"{items.ORDERS}*", f"{items.SESSIONS}*", f"{items.CURVES}*", items.PASS),
        ),
        item_right(rights, "GiveToNodesAndKeepTaskTokens", ["PutItem"], nodes, items.WAITING, f"{items.UNHEALTHY}*"),
        item_right(rights, "ForgetTaskTokensAndEnds", ["DeleteItem"], items.WAITING, items.UNTOLD),
    ]


def read_reports(rights: Rights, node_role: str) -> Right:
    """Allows to read what nodes wrote, in batches."""
    return item_right(rights, "ReadReports", ["BatchGetItem"], items.userid(node_role, "*"))


def follow(rights: Rights, stream_arn: str) -> list[Right]:
    """Lambda's own calls, with the function's role, to read a stream for it."""
    reason = "Listing supports no resource-level permissions and answers ARNs of streams alone; the condition keeps to the home region."
    home = {"StringEquals": {"aws:RequestedRegion": rights.home_region}}
    reading = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    return [
        Right("FollowTheStream", reading, [stream_arn]),
        Right("ListStreams", ["dynamodb:ListStreams"], ["*"], reason, home),
    ]


def _table(rights: Rights) -> str:
    name = names.state_table(rights.deployment)
    return f"arn:{cdk.Aws.PARTITION}:dynamodb:{rights.home_region}:{cdk.Aws.ACCOUNT_ID}:table/{name}"
