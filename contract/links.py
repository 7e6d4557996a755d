"""Addresses of the AWS console, where a person looks at a job: its page, its execution, its log, its artifacts, its report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from contract import keys, names
from contract.jobs import Job

CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""The console's address, by partition."""
SHOWN_REGIONS = 4
"""Regions whose artifacts a cause or a message names; the page names all."""
BELOW_CAUSE = ("page", "execution", "log", "report")
"""Links that the Train machine writes below the cause of a failed execution, a line each; those of artifacts follow."""
ARTIFACTS_IN = "Artifacts in"
"""Begins the line of a link to artifacts; the region follows."""
_BELOW = re.compile(
    rf"\n\n(?:(?:{'|'.join(one.capitalize() for one in BELOW_CAUSE)}|{ARTIFACTS_IN} [a-z0-9-]+): https://\S+(?:\n|\Z))+\Z"
)


@dataclass(frozen=True, slots=True)
class Console:
    """The console of one region."""

    partition: str
    region: str

    def _at(self, service: str) -> str:
        return f"https://{self.region}.{CONSOLES.get(self.partition, CONSOLES['aws'])}/{service}"

    def machine(self, arn: str) -> str:
        """A state machine, from which executions are started; `arn` may be one that only CloudFormation knows yet."""
        return f"{self._at('states')}/home?region={self.region}#/statemachines/view/{arn}"

    def execution(self, arn: str) -> str:
        return f"{self._at('states')}/home?region={self.region}#/v2/executions/details/{quote(arn, ':')}"

    def streams(self, group: str, prefix: str) -> str:
        """Address of a log group, limited to streams with this prefix. After its `#` the console wants names escaped twice, $ for %."""
        words = quote(quote(group, ""), "") + quote(f"?logStreamNameFilter={quote(prefix, '')}", "")
        escaped = words.replace("%", "$")
        return f"{self._at('cloudwatch')}/home?region={self.region}#logsV2:log-groups/log-group/{escaped}"

    def lines(self, group: str, pattern: str) -> str:
        """Address of the events of a log group that fit a filter pattern. `group` may be a name that only CloudFormation knows yet: it has
        nothing to escape."""
        escaped = quote(quote(pattern, ""), "").replace("%", "$")
        at = f"{self._at('cloudwatch')}/home?region={self.region}#logsV2:log-groups/log-group/{group}"
        return f"{at}/log-events$3FfilterPattern$3D{escaped}"

    @property
    def queries(self) -> str:
        """Logs Insights, which lists the saved queries."""
        return f"{self._at('cloudwatch')}/home?region={self.region}#logsV2:logs-insights"

    def dashboard(self, name: str) -> str:
        return f"{self._at('cloudwatch')}/home?region={self.region}#dashboards/dashboard/{name}"

    def folder(self, bucket: str, prefix: str) -> str:
        return f"{self._at('s3')}/buckets/{bucket}?region={self.region}&prefix={quote(prefix, '')}"

    def object(self, bucket: str, key: str) -> str:
        return f"{self._at('s3')}/object/{bucket}?region={self.region}&prefix={quote(key, '')}"


MORE = "More: "
"""Begins the end of an alarm's description, where its section of the runbook is."""


def of_runbook(page: str, section: str) -> str:
    """Where the runbook has a section: at the address of the settings, or in the file of the repository where they have none."""
    return f"{page}#{section.lower().replace(' ', '-')}" if page else f'docs/runbook.md, "{section}"'


def cut_links(cause: str) -> str:
    """Returns the cause of a failed execution without the links that the Train machine wrote below it."""
    return _BELOW.sub("", cause)


ARTIFACTS_LINKED = "Its artifacts are in S3: open them by the link below."
"""What a page says of a job that ended well. The page of a rehearsal has other words for it: it has no links."""


def of_artifacts(job: Job, region: str) -> str:
    """Where the artifacts are of an attempt that was launched in the region."""
    console = Console(job.execution.split(":")[1], region)
    return console.folder(job.places[region].bucket, keys.BytesPrefix(job.id).artifacts)


def of_page(execution: str, bucket: str, key: str) -> str:
    """Where the page is of an execution (ARN), in the home bucket."""
    return at_home(execution).object(bucket, key)


def at_home(execution: str) -> Console:
    """Returns the console of the region in which an execution (ARN) runs."""
    parts = execution.split(":")
    return Console(parts[1], parts[3])


def of_job(job: Job) -> dict[str, str]:
    """Where to look at a job. Where its artifacts are, its launches say (`of_artifacts`)."""
    home = Console(job.execution.split(":")[1], job.home_region)
    prefix = keys.JobPrefix(job.id)
    return {
        "page": of_page(job.execution, job.home_bucket, prefix.page),
        "execution": home.execution(job.execution),
        "log": home.streams(job.log_group, names.log_stream(job.id, 0, 0).partition("/")[0] + "/"),
        "report": home.object(job.home_bucket, prefix.result),
        **({"waiting": home.object(job.home_bucket, prefix.wait)} if job.max_wait_hours else {}),
    }
