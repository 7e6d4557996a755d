"""Rights of the functions that start campaigns and builds: they start what the settings name, and end nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aws_cdk as cdk

from contract import names
from contract.campaigns import MACHINES, Campaign, Started, Starts
from stacks.parts.item_rights import read_admission
from stacks.parts.right import Right
from stacks.parts.rights import OF_THIS_ACCOUNT, Rights, arn_of, bucket_arn, objects_arn

EXECUTIONS = "Executions come and go; their names begin with that of the campaign or the watch."
UPLOADED = "The objects that start a campaign have keys of this form."


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRights:
    """Statements for one deployment's campaigns and watches."""

    rights: Rights
    starts: Starts

    def start_campaigns(self, topic: str, key: str, letters: str) -> list[Right]:
        """Starts what campaigns say, sees how it goes on, and tells people."""
        executions = [self._executions(one, name) for name, one in self.starts.campaigns.items()] + self._builds()
        machines = sorted({self.machine(Started.of_input(one.given)) for one in self.starts.campaigns.values()})
        return [
            *([Right("StartCampaigns", ["states:StartExecution"], machines)] if machines else []),
            Right("SeeWhatWasStarted", ["states:DescribeExecution"], executions, EXECUTIONS),
            *self._see_uploads(),
            read_admission(self.rights),
            *self.rights.publish(topic, key),
            self.rights.leave_letters(letters),
        ]

    def start_builds(self, queue: str) -> list[Right]:
        """Starts builds of new commits, and asks the starter to see how they end."""
        return [
            Right("StartBuilds", ["states:StartExecution"], [self.build_machine]),
            Right("SeeWhatWasStarted", ["states:DescribeExecution"], self._builds(), EXECUTIONS),
            read_admission(self.rights),
            Right("AskTheStarter", ["sqs:SendMessage"], [queue]),
        ]

    def machine(self, what: Started) -> str:
        """Returns the ARN of the machine that a campaign starts."""
        return self._arn(f"stateMachine:{what.machine(self.rights.deployment)}")

    @property
    def machines(self) -> Mapping[str, str]:
        """What campaigns start to the ARN of its machine."""
        return {what.value: self.machine(what) for what in MACHINES}

    @property
    def campaigns(self) -> Mapping[str, Campaign]:
        """The campaigns, each with the name of its bucket."""
        return self.starts.at(self.rights.home_bucket).campaigns

    @property
    def build_machine(self) -> str:
        return self._arn(f"stateMachine:{self._build}")

    def _builds(self) -> list[str]:
        """Returns patterns of the executions that build commits."""
        return [self._arn(f"execution:{self._build}:{name}-*") for name in self.starts.watches]

    def _executions(self, campaign: Campaign, name: str) -> str:
        machine = Started.of_input(campaign.given).machine(self.rights.deployment)
        return self._arn(f"execution:{machine}:{name}-*")

    def _see_uploads(self) -> list[Right]:
        """Heads the objects alone; with the right to list, S3 says of an object that it is gone."""
        if not self.starts.campaigns:
            return []
        found = self.campaigns.values()
        objects = sorted({objects_arn(one.bucket, f"{one.prefix}*{one.suffix}") for one in found})
        buckets = sorted({bucket_arn(one.bucket) for one in found})
        return [
            Right("SeeUploads", ["s3:GetObject"], objects, UPLOADED, OF_THIS_ACCOUNT),
            Right("ListBuckets", ["s3:ListBucket"], buckets, conditions=OF_THIS_ACCOUNT),
        ]

    @property
    def _build(self) -> str:
        return names.build_machine(self.rights.deployment)

    def _arn(self, resource: str) -> str:
        return arn_of("states", self.rights.home_region, cdk.Aws.ACCOUNT_ID, resource)
