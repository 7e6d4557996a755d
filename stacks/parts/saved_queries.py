"""Queries that people find saved in CloudWatch Logs Insights, in the folder of the deployment. They cost nothing until they are run.

A query stands in the stack of the logs that it reads: their names are CloudFormation's, and no stack depends on another one for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from contract import names
from stacks.parts import checkpoint_alarms
from stacks.parts.cost_alarm import NEAR
from stacks.parts.deployed import find_functions, has_queues

MOST_GROUPS = 50
"""The most log groups of a query of Logs Insights."""
OLD = f"""fields @timestamp, message, job, attempt, age_s, step, commit_s, checkpoint_minutes, usd_at_most, max_cost_usd, todo
| filter message in ["{checkpoint_alarms.OLD}", "{checkpoint_alarms.SLOW}", "{NEAR}"]
| sort @timestamp desc
| limit 100"""
REFUSED = """fields @timestamp, service, execution, reason
| filter message = "refused"
| sort @timestamp desc
| limit 100"""
ERRORS = """fields @timestamp, service, message, job, grid, problem, exception, @message
| filter level in ["ERROR", "CRITICAL"] or @message like /^\\[ERROR\\]|Task timed out|Runtime\\./
| filter @message not like /^\\[ERROR\\] (InvalidRequest|CapacityPending|StillRunning)/
| sort @timestamp desc
| limit 100"""
NODES = """fields @timestamp, @logStream, @message
| filter @logStream like /^JOB\\//
| filter @message like /(?i)error|exception|traceback|not committed|is missed|xid/
| sort @timestamp desc
| limit 200"""


def save_queries(stack: cdk.Stack, deployment: str) -> None:
    """Saves what is asked of the logs of a stack's functions: its last errors, and what its functions say about requests and jobs. A stack
    without queues has functions for its deploy alone, and gets none."""
    functions = find_functions(stack)
    if not functions or not has_queues(stack):
        return
    packages = {one.package: one.log_group.log_group_name for one in functions}
    short = stack.stack_name.removeprefix(f"{deployment}-")
    _save(stack, "Errors", f"{deployment}/last errors of {short}", ERRORS, list(packages.values())[:MOST_GROUPS])
    if "attendant" in packages:
        _save(stack, "Old", f"{deployment}/which job is old, slow or near its cap", OLD, [packages["attendant"]])
    refusing = [packages[one] for one in ("admission", "planner", "search") if one in packages]
    if refusing:
        _save(stack, "Refused", f"{deployment}/why was it refused: {short}", REFUSED, refusing)


def save_node_query(scope: Construct, deployment: str) -> None:
    """Saves the question for what the nodes of a job said about an error; a person puts the job's name in place of JOB."""
    _save(scope, "Nodes", f"{deployment}/last errors of the nodes of JOB", NODES, [names.log_group(deployment)])


def _save(scope: Construct, name: str, shown: str, text: str, groups: Sequence[str]) -> None:
    logs.CfnQueryDefinition(scope, f"{name}Query", name=shown, query_string=text, log_group_names=list(groups))
