"""The addresses of the console: whatever the names are, they lead to one page of one region, and fit beside a cause."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from contract import names
from contract.links import SHOWN_REGIONS, Console, cut_links, of_artifacts, of_job
from tests.builders import JOB, LINKS_AT_MOST
from tests.fakes.causes import write_cause

FRANKFURT = Console("aws", "eu-central-1")


def test_an_execution_is_the_page_of_its_arn() -> None:
    arn = "arn:aws:states:eu-central-1:123456789012:execution:yard-train:job-1.2"
    assert FRANKFURT.execution(arn) == (
        "https://eu-central-1.console.aws.amazon.com/states/home?region=eu-central-1#/v2/executions/details/" + arn
    )


def test_a_machine_is_a_page_of_its_partitions_console() -> None:
    arn = "arn:aws-cn:states:cn-north-1:123456789012:stateMachine:yard-train"
    assert Console("aws-cn", "cn-north-1").machine(arn) == (
        f"https://cn-north-1.console.amazonaws.cn/states/home?region=cn-north-1#/statemachines/view/{arn}"
    )


def test_a_log_group_is_escaped_twice_as_the_console_writes_it() -> None:
    assert FRANKFURT.streams("/trainyard/yard/nodes", "job-1/") == (
        "https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1#logsV2:log-groups/log-group/"
        "$252Ftrainyard$252Fyard$252Fnodes$3FlogStreamNameFilter$3Djob-1$252F"
    )


def test_a_folder_and_an_object_are_pages_of_their_bucket() -> None:
    assert FRANKFURT.folder("yard-home", "jobs/a b/") == (
        "https://eu-central-1.console.aws.amazon.com/s3/buckets/yard-home?region=eu-central-1&prefix=jobs%2Fa%20b%2F"
    )
    assert FRANKFURT.object("yard-home", "jobs/j/report.json").startswith(
        "https://eu-central-1.console.aws.amazon.com/s3/object/yard-home?region=eu-central-1&prefix=jobs%2Fj%2F"
    )


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws-cn", "cn-north-1", "cn-north-1.console.amazonaws.cn"),
        ("aws-us-gov", "us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
        ("aws-of-tomorrow", "xx-north-1", "xx-north-1.console.aws.amazon.com"),
    ],
)
def test_another_partition_has_a_console_of_its_own(partition: str, region: str, host: str) -> None:
    assert urlsplit(Console(partition, region).object("b", "k")).netloc == host


def test_a_jobs_links_lead_home() -> None:
    job = replace(JOB, id="job-1.2")
    links = of_job(job)
    assert links.keys() == {"page", "execution", "log", "report"}
    assert parse_qs(urlsplit(links["report"]).query)["prefix"] == ["jobs/job-1.2/report.json"]
    assert parse_qs(urlsplit(links["page"]).query)["prefix"] == ["jobs/job-1.2/report.html"]
    fragment = unquote(unquote(urlsplit(links["log"]).fragment.replace("$", "%")))
    assert fragment == f"logsV2:log-groups/log-group/{job.log_group}?logStreamNameFilter=job-1.2/"


def test_no_link_guesses_where_the_artifacts_will_be() -> None:
    """Only a launch knows."""
    assert not [one for name, one in of_job(JOB).items() if "artifacts" in name + one]


def test_the_artifacts_of_a_launch_are_in_its_region_and_not_in_the_ladders_first() -> None:
    abroad = replace(JOB.places[JOB.ladder[0].region], region="us-east-2", bucket="yard-bytes-us-east-2")
    job = replace(JOB, id="job-1.2", places={**JOB.places, "us-east-2": abroad})
    link = of_artifacts(job, "us-east-2")
    assert urlsplit(link).netloc.startswith("us-east-2.")
    assert "/buckets/yard-bytes-us-east-2?region=us-east-2&" in link
    assert parse_qs(urlsplit(link).query)["prefix"] == ["jobs/job-1.2/artifacts/"]


def test_links_of_the_longest_names_have_the_length_that_is_promised() -> None:
    deployment, region, name = "d" * 20, "ap-northeast-1", "n" * 80
    place = replace(JOB.places[JOB.ladder[0].region], region=region, bucket="b" * 63)
    job = replace(
        JOB,
        id=name,
        execution=f"arn:aws-us-gov:states:{region}:123456789012:execution:{names.machine(deployment)}:{name}",
        home_region=region,
        home_bucket="h" * 63,
        log_group=names.log_group(deployment),
        ladder=(replace(JOB.ladder[0], region=region),),
        places={region: place},
    )
    artifacts = [f"\nArtifacts in {region}: {of_artifacts(job, region)}"] * SHOWN_REGIONS
    words = sum(len(f"\n{what}: ") for what in ("", "Page", "Execution", "Log", "Report"))
    assert sum(map(len, [*of_job(job).values(), *artifacts])) + words < LINKS_AT_MOST


def test_a_job_that_may_wait_for_capacity_says_where_to_see_what_it_waits_for() -> None:
    links = of_job(replace(JOB, max_wait_hours=1.0))
    assert parse_qs(urlsplit(links["waiting"]).query)["prefix"] == ["jobs/job-1/waiting.json"]


@pytest.mark.parametrize(
    "cause", ["", "code 3", "code 3\n\nPage: of a book", "Page: https://x", "a\n\nLog: https://x\nend"]
)
def test_only_links_below_a_cause_are_cut(cause: str) -> None:
    assert cut_links(write_cause(JOB, cause)) == cause
    assert cut_links(cause) == cause


def test_the_links_of_an_older_version_are_cut_too() -> None:
    assert cut_links("code 3\n\nExecution: https://x\nLog: https://y") == "code 3"
