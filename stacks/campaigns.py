"""The Campaigns stack (home region): starts what uploaded data starts, and builds what was pushed. Only with the settings for it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from contract.campaign_environments import StarterEnvironment, WatchEnvironment
from contract.campaigns import STARTS_FILE
from contract.codec import encode
from contract.environments import Environment
from stacks.foundation import FoundationExports
from stacks.parts.alarms import AlarmEvidence, Alarms
from stacks.parts.bad_ends import AT_ONCE
from stacks.parts.campaign_rights import CampaignRights
from stacks.parts.campaign_rules import send_uploads
from stacks.parts.common import Common
from stacks.parts.function import Function, Layer
from stacks.parts.git_rights import GitHosts
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.right import Right
from stacks.parts.schedules import Schedules

STARTER_TIMEOUT = cdk.Duration.minutes(2)
WATCH_TIMEOUT = cdk.Duration.minutes(10)
"""Ten branches, two at a time, each for two minutes at most: its head, and the commit."""
WATCH_MB = 2048
"""Git hosts are asked in processes of their own, two at a time."""
EVERY_TICK = "rate(5 minutes)"
STEPS = 6
"""Half an hour of ticks in a row: hosts are away for minutes every few weeks."""


class CampaignsStack(cdk.Stack):
    """Starts executions, and nothing else. A destroy deletes it before all others, whose drains end what it started; deleted alone, it
    ends nothing."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        rights: CampaignRights,
        git: GitHosts,
    ) -> None:
        deployment = common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: starts campaigns by uploaded data, and builds by pushed commits",
        )
        self._common, self._foundation, self._rights = common, foundation, rights
        self._layer = Layer(self, "Libraries")
        letters = DeadLetters(self, "StartLetters")
        queue = Queue(
            self,
            "StartQueue",
            function_timeout=STARTER_TIMEOUT,
            receives=common.timing.start_patience_s / common.timing.start_again_s,
            letters=letters,
        )
        alarms = common.add_alarms(self, foundation.topic)
        self._starter(queue, letters, alarms)
        send_uploads(self, rights.campaigns, deployment=deployment, queue=queue, letters=letters)
        if rights.starts.watches:
            self._watch(queue, letters, git, alarms)
        cdk.CfnOutput(
            self, "StartLettersUrl", value=letters.queue_url, description="Uploads and pushes that started nothing"
        )

    def _starter(self, queue: Queue, letters: DeadLetters, alarms: Alarms) -> None:
        topic, rights = self._foundation.topic, self._rights.rights
        starter = self._function(
            "Starter",
            "starter",
            "Starts what uploaded data starts, and tells people what was refused",
            StarterEnvironment(
                deployment=rights.deployment,
                table=self._foundation.table.table_name,
                bucket=rights.home_bucket,
                machines=dict(self._rights.machines),
                messages=queue.queue_url,
                letters=letters.queue_url,
                topic=topic.topic_arn,
                again_s=self._common.timing.start_again_s,
                check_s=self._common.timing.start_check_s,
            ),
            STARTER_TIMEOUT,
            *self._rights.start_campaigns(topic.topic_arn, topic.key.key_arn, letters.queue_arn),
            rights.work_through(queue.queue_arn),
        )
        starter.add_event_source_mapping(
            "Messages",
            event_source_arn=queue.queue_arn,
            batch_size=1,
            report_batch_item_failures=True,
            max_concurrency=AT_ONCE,
        )
        alarms.on_any(
            "start-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "Data was uploaded, or a commit was pushed, and nothing was started for it: the start was refused, or could not be made for "
            "a day. A message and the starter's log say why; the letter names the object or the execution.",
            evidence=AlarmEvidence(function=starter, letters=letters),
        )

    def _watch(self, queue: Queue, letters: DeadLetters, git: GitHosts, alarms: Alarms) -> None:
        watch = self._function(
            "BranchWatch",
            "branch_watch",
            "Asks for the heads of branches, and has new commits built",
            WatchEnvironment(
                deployment=self._common.deployment,
                table=self._foundation.table.table_name,
                build_machine=self._rights.build_machine,
                messages=queue.queue_url,
                git_hosts=dict(git.secrets),
                check_s=self._common.timing.start_check_s,
            ),
            WATCH_TIMEOUT,
            *self._rights.start_builds(queue.queue_arn),
            *git.read,
        )
        watch.configure_async_invoke(retry_attempts=0, max_event_age=WATCH_TIMEOUT)
        schedules = Schedules(
            self, "Schedule", function=watch, letters=letters, description="The schedule of the watch of branches"
        )
        schedules.add("Tick", EVERY_TICK, description="Asks for the heads of branches", given={})
        alarms.on_any(
            "watch-errors",
            watch.metric_errors(statistic="Sum"),
            "For half an hour the head of a branch could not be read, or its build could not be started. The watch's log says which and "
            "why; a commit is built as soon as its host answers.",
            steps=STEPS,
            evidence=AlarmEvidence(function=watch),
        )

    def _function(
        self, name: str, package: str, description: str, environment: Environment, timeout: cdk.Duration, *rights: Right
    ) -> Function:
        return Function(
            self,
            name,
            package=package,
            description=description,
            environment=environment,
            layer=self._layer,
            timeout=timeout,
            memory_mb=WATCH_MB,
            log_retention_days=self._common.log_retention_days,
            rights=rights,
            files={STARTS_FILE: encode(self._rights.starts)},
        )
