"""Values that every stack of the home region receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_sns as sns

from contract.codec import encode
from contract.job_settings import SETTINGS_FILE, JobSettings
from contract.request_rules import RequestRules
from contract.timing import Timing
from stacks.parts import interfaces
from stacks.parts.alarms import Alarms
from stacks.parts.rights import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Values of the settings that the stacks of the home region share."""

    rights: Rights
    """Rights of the deployment; their regions are those in which jobs run."""
    regions: tuple[str, ...]
    """All regions of the settings, home first; some may serve only the grid."""
    timing: Timing
    log_retention_days: int
    reserved_concurrency: int
    """Invocations at once that are reserved for each function that ends machines; 0 for none."""
    runbook_url: str
    """Where people read the runbook; empty for the file."""
    rules: RequestRules
    """For functions that read requests."""
    jobs: JobSettings = field(default_factory=JobSettings)
    """For functions that judge jobs."""

    @property
    def deployment(self) -> str:
        return self.rights.deployment

    @property
    def tags(self) -> Mapping[str, str]:
        """The settings' own tags, for what functions launch; stack resources have them already."""
        return self.rules.tags

    @property
    def rule_files(self) -> dict[str, bytes]:
        """Returns the file of the rules for the archives of functions that read requests; none where there is nothing to say."""
        return {self.rules.file: encode(self.rules)} if self.rules.file else {}

    def add_alarms(self, stack: cdk.Stack, topic: sns.Topic) -> Alarms:
        """Adds what makes the stack's alarms, which tell the topic."""
        return Alarms(
            stack, "Alarms", deployment=self.deployment, topic=interfaces.topic(topic), runbook=self.runbook_url
        )

    @property
    def job_files(self) -> dict[str, bytes]:
        """Returns what the archives of functions need that judge the jobs of lines before Admit does."""
        return {**self.rule_files, SETTINGS_FILE: encode(self.jobs)}

    @property
    def env(self) -> cdk.Environment:
        return cdk.Environment(region=self.rights.home_region)
