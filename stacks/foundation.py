"""The Foundation stack (home region): the table of state, the home bucket, the nodes' log, their role, and the topic for people."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from contract import agents, keys, names
from stacks.parts import bench_rights, interfaces
from stacks.parts.access_logs import AccessLogs
from stacks.parts.bucket import Bucket
from stacks.parts.common import Common
from stacks.parts.customer_key import CustomerKey
from stacks.parts.item_rights import own_items
from stacks.parts.job_rights import instance
from stacks.parts.logs import log_group
from stacks.parts.people import people_policy
from stacks.parts.right import grant
from stacks.parts.rights import Rights
from stacks.parts.service_roles import ServiceRoles
from stacks.parts.table import StateTable
from stacks.parts.topic import Topic

CONTEXTS_DAYS = 30
"""How long build contexts from git are kept: much longer than a build waits, and as long as the layers that were made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationExports:
    """What the workflow and the reaper use of the foundation."""

    home: Bucket
    table: StateTable
    topic: Topic
    node_role: iam.IRole
    node_role_id: str
    instance_profile: iam.IInstanceProfile


class FoundationStack(cdk.Stack):
    """Holds everything that outlives a workflow; nothing in it starts anything."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        data_buckets: tuple[str, ...],
        keep_data: bool,
        sends_events: bool = False,
        workbench: bool = False,
        compliance: bool = False,
    ) -> None:
        """`sends_events`: whether EventBridge sees what is written to the home bucket; `workbench`: whether nodes answer Session
        Manager."""
        rights, deployment = common.rights, common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: table of state, home bucket, node role, log",
        )
        home = Bucket(
            self,
            "Home",
            physical_name=rights.home_bucket,
            days=7,  # long enough to undo a mistake
            keep=keep_data,
            forgets={keys.AGENTS: agents.KEPT_DAYS, keys.CONTEXTS: CONTEXTS_DAYS},
            sends_events=sends_events,
        )
        log = log_group(self, "NodeLog", days=common.log_retention_days, physical_name=names.log_group(deployment))
        topic = Topic(self, "Notifications", display_name=f"Trainyard {deployment}")
        role = iam.Role(
            self,
            "NodeRole",
            assumed_by=interfaces.principal(iam.ServicePrincipal("ec2.amazonaws.com")),
            description=f"Nodes of Trainyard {deployment}: their own items, their agent, nothing of EC2",
        )
        profile = iam.InstanceProfile(self, "NodeProfile", role=interfaces.role(role))
        grant(
            role,
            *instance(rights),
            *rights.data(data_buckets),
            own_items(rights),
            *(bench_rights.answer_sessions(rights) if workbench else ()),
        )
        account = ServiceRoles(self, "Account", deployment=deployment, log_retention_days=common.log_retention_days)
        table = StateTable(self, "State", physical_name=names.state_table(deployment), keep=keep_data)
        # The last one, because a table under deletion protection stays when a later resource cannot be created.
        people = people_policy(self, "People", rights=rights)
        if workbench:
            self._offer_benches(rights)
        table.node.add_dependency(home, log, topic, role, profile, account, people)
        self._alarm(common, table, topic)
        self.key = self._key(home, common, keep=keep_data) if compliance else None
        """Encrypts what the stacks of the home region store; None without the setting `compliance`."""
        self.exports = FoundationExports(
            home=home,
            table=table,
            topic=topic,
            node_role=interfaces.role(role),
            node_role_id=role.role_id,
            instance_profile=profile,
        )

        self._tell(home, log, table, topic, people)
        cdk.CfnOutput(
            self, names.NODE_ROLE_ID, value=role.role_id, description="Whose reports are in the table of state"
        )

    def _offer_benches(self, rights: Rights) -> None:
        policy = bench_rights.bench_policy(self, "Workbench", rights=rights)
        cdk.CfnOutput(
            self,
            "WorkbenchPolicy",
            value=policy.managed_policy_arn,
            description="Attach this to people who open workbenches of their own: it allows nothing else",
        )

    def _alarm(self, common: Common, table: StateTable, topic: Topic) -> None:
        alarms = common.add_alarms(self, topic)
        for name, metric in (
            ("table-reads-throttled", "ReadThrottleEvents"),
            ("table-writes-throttled", "WriteThrottleEvents"),
        ):
            alarms.on_any(
                name,
                table.metric(metric, statistic="Sum"),
                "DynamoDB throttled requests to the table of state. Callers try again, so looks and reports come late; an on-demand "
                "table grows within minutes, unless the account has reached a quota.",
            )

    def _tell(
        self, home: Bucket, log: logs.LogGroup, table: StateTable, topic: Topic, people: iam.ManagedPolicy
    ) -> None:
        cdk.CfnOutput(
            self,
            "PeoplePolicy",
            value=people.managed_policy_arn,
            description="Attach this to people who start and watch jobs: it allows nothing else",
        )
        cdk.CfnOutput(self, "HomeBucket", value=home.bucket_name, description="Uploads, jobs and results")
        cdk.CfnOutput(self, "StateTable", value=table.table_name, description="State of jobs: facts and decisions")
        cdk.CfnOutput(
            self,
            "UploadPrefix",
            value=home.s3_url_for_object(keys.UPLOADS),
            description="Upload the code of your jobs here",
        )
        cdk.CfnOutput(self, "NodeLogGroup", value=log.log_group_name, description="Output of all nodes")
        cdk.CfnOutput(
            self,
            "NotificationTopic",
            value=topic.topic_arn,
            description="Subscribe here for messages that need a person",
        )

    def _key(self, home: Bucket, common: Common, *, keep: bool) -> CustomerKey:
        deployment, region = common.deployment, common.rights.home_region
        key = CustomerKey(
            self, "Key", alias=names.home_key(deployment), deployment=deployment, region=region, keep=keep
        )
        key.let_rules_send()
        AccessLogs(self, "AccessLogs", buckets=[home], days=common.log_retention_days)
        return key
