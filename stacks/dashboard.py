"""The Dashboard stack (home region): one page of CloudWatch about the whole deployment, and a saved query of nodes' logs."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from contract import names
from contract.environments import CheckpointLimits
from contract.links import Console
from stacks.forms import partition
from stacks.parts import widgets
from stacks.parts.common import Common
from stacks.parts.deployed import DeployedThings
from stacks.parts.outputs import shown
from stacks.parts.saved_queries import save_node_query

MACHINES = {"jobs": names.machine, "grids": names.grid_machine, "searches": names.search_machine}
"""What people start, and its state machine."""


class DashboardStack(cdk.Stack):
    """Shows, and decides nothing. It refers to no other stack, and none to it: it may go and come back at any time."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        deployed: DeployedThings,
        checkpoints: CheckpointLimits,
    ) -> None:
        deployment, home = common.deployment, common.rights.home_region
        super().__init__(
            scope, name, env=common.env, description=f"Trainyard {deployment}: the dashboard, and saved queries"
        )
        arns = {what: common.rights.machine(machine(deployment)) for what, machine in MACHINES.items()}
        page = names.dashboard(deployment, home)
        console = Console(partition(home), home)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=page,
            default_interval=cdk.Duration.days(1),
            widgets=[
                [widgets.show_text(_write_links(console, deployment, common, arns), height=3)],
                [widgets.show_alarms(self, deployed.alarms)],
                widgets.show_money(deployment, home),
                [
                    *widgets.show_checkpoints(deployment, home, checkpoints),
                    *widgets.show_letters(deployed.queues, home),
                ],
                widgets.show_executions(arns, home),
                widgets.show_reaper(deployment, home),
                widgets.show_functions(deployed.functions, home),
            ],
        )
        save_node_query(self, deployment)
        shown(self, "DashboardPage", console.dashboard(page), "Dollars an hour, checkpoints, executions, alarms")


def _write_links(console: Console, deployment: str, common: Common, machines: Mapping[str, str]) -> str:
    """Writes the page's head: where everything else is."""
    links = {
        **{f"Start and watch {what}": console.machine(arn) for what, arn in machines.items()},
        "Output of nodes": console.streams(names.log_group(deployment), ""),
        "Saved queries": console.queries,
        "Results": console.folder(common.rights.home_bucket, ""),
        **({"Runbook": common.runbook_url} if common.runbook_url else {}),
    }
    listed = " · ".join(f"[{words}]({address})" for words, address in links.items())
    where = "" if common.runbook_url else " The runbook is docs/runbook.md."
    return f"# Trainyard {deployment}\n{listed}\n\nChanges are made in cdk.json and lost here.{where}"
