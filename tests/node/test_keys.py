"""Credentials of a job that near their end, expire and are renewed: what needs them waits, the training goes on, nothing is lost."""

from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from agent import credentials as job_credentials
from agent import saver as savers
from agent.aws import Aws
from agent.credentials import AGAIN_S, EARLY_S, CredentialsExpired, JobCredentials
from agent.engine.engine import Engine
from agent.engine.places import Memory
from agent.snapshot import list_files
from agent.store import Missing
from contract import tags
from contract.sessions import SessionCredentials
from localaws.testing.waiting import until
from tests.builders import NOW
from tests.node.fakes import refusal
from tests.node.finished import Finished
from tests.node.world import KEYS, REGION, Site

OLD, NEW = replace(KEYS, access_key="ASIAOLD"), replace(KEYS, access_key="ASIANEW")


class Table:
    """What a node reads its keys from: `keys`, or an error where there are none. Time passes as `at` says."""

    def __init__(self, *, left_s: float) -> None:
        self.at, self.reads, self.said = NOW, 0, list[str]()
        self.keys: SessionCredentials | None = None
        self.job = JobCredentials(
            replace(OLD, expires=NOW + left_s), self.read, now=lambda: self.at, monotonic=lambda: self.at
        )
        self.job.tell = self.said.append

    def read(self) -> SessionCredentials:
        self.reads += 1
        if self.keys is None:
            raise OSError("the table does not answer")
        return self.keys

    def renew(self, lasts_s: float = 3600.0) -> None:
        self.keys = replace(NEW, expires=self.at + lasts_s)

    @property
    def used(self) -> str:
        return self.job.current().access_key


def test_fresh_keys_are_used_and_nobody_reads_the_table() -> None:
    table = Table(left_s=EARLY_S + 1)
    assert (table.used, table.reads) == ("ASIAOLD", 0)


def test_keys_near_their_end_are_read_again() -> None:
    table = Table(left_s=EARLY_S - 1)
    table.renew()
    assert (table.used, table.reads) == ("ASIANEW", 1)


@pytest.mark.parametrize("left_s", [EARLY_S - 1, 60.0, 0.5])
def test_keys_that_cannot_be_renewed_are_used_to_their_last_moment(left_s: float) -> None:
    """The attendant, STS or the table may be away."""
    table = Table(left_s=left_s)
    assert table.used == "ASIAOLD"
    assert table.said == []


def test_however_many_calls_need_keys_the_table_is_read_seldom() -> None:
    table = Table(left_s=60.0)
    for _ in range(100):
        assert table.used == "ASIAOLD"
    assert table.reads == 1
    table.at += AGAIN_S
    assert table.used == "ASIAOLD"
    assert table.reads == 2


def test_expired_keys_are_said_to_be_so_once_and_new_ones_are_used_at_the_next_look() -> None:
    table = Table(left_s=0.0)
    for _ in range(3):
        with pytest.raises(CredentialsExpired, match="the table does not answer"):
            table.job.current()
    assert len(table.said) == 1
    assert "the credentials of the job have expired" in table.said[0]
    table.at += 7200
    table.renew()
    assert table.used == "ASIANEW"
    assert table.said[1:] == [""]


def test_older_keys_in_the_table_replace_no_newer_ones() -> None:
    table = Table(left_s=60.0)
    table.renew(lasts_s=30.0)
    assert table.used == "ASIAOLD"


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "RequestExpired"])
def test_keys_that_aws_calls_expired_are_not_used_again_whatever_the_clock_says(code: str) -> None:
    table = Table(left_s=3000.0)
    table.keys = replace(OLD, expires=NOW + 3000.0)
    assert table.job.heard(code)
    with pytest.raises(CredentialsExpired):
        table.job.current()
    table.at += AGAIN_S
    table.renew()
    assert table.used == "ASIANEW"


def test_new_keys_are_not_given_up_for_the_late_answer_to_a_call_with_old_ones() -> None:
    table = Table(left_s=60.0)
    assert table.used == "ASIAOLD"
    table.at += AGAIN_S
    table.renew()
    other = threading.Thread(target=table.job.current)
    other.start()
    other.join()
    assert table.job.heard("ExpiredToken")
    table.keys = None
    assert table.used == "ASIANEW"


@pytest.mark.parametrize("code", ["AccessDenied", "403", "404", "NoSuchKey", "SlowDown", "400", "InvalidAccessKeyId"])
def test_other_refusals_say_nothing_of_the_keys(code: str) -> None:
    table = Table(left_s=3000.0)
    assert not table.job.heard(code)
    assert table.used == "ASIAOLD"


def test_a_head_without_a_reason_is_the_keys_doing_where_they_are_about_to_expire() -> None:
    assert Table(left_s=1.0).job.heard("400")
    assert not Table(left_s=3000.0).job.heard("400")


# What boto3 makes of it


class Body(io.BytesIO):
    """As urllib3 gives it."""

    def stream(self) -> list[bytes]:
        return [self.read()]


def answering(aws: Aws, status: int, body: bytes) -> Any:
    client = aws.client("s3", REGION)

    def answer(request: Any, **_: object) -> AWSResponse:
        return AWSResponse(request.url, status, {}, Body(body))  # type: ignore[arg-type]

    client.meta.events.register("before-send.s3", answer)
    return aws.store(REGION, "bucket")


def of(keys: JobCredentials) -> Aws:
    aws = Aws()
    aws.use(keys)
    return aws


def test_an_answer_that_keys_have_expired_is_no_missing_object_and_no_missing_right() -> None:
    body = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    store = answering(of(JobCredentials(KEYS, lambda: KEYS, now=time.time)), 400, body)
    for ask in (lambda: store.get("k"), lambda: store.put("k", b""), lambda: list(store.keys("k"))):
        with pytest.raises(CredentialsExpired):
            ask()


def test_a_missing_object_stays_missing() -> None:
    store = answering(
        of(JobCredentials(KEYS, lambda: KEYS, now=time.time)), 404, b"<Error><Code>NoSuchKey</Code></Error>"
    )
    with pytest.raises(Missing):
        store.get("k")


def sent(engine: Engine, folder: Path) -> object:
    return engine.send(
        folder, list(list_files(folder, print).values()), Memory(), pack_key=None, file_key=lambda _name, path: path
    )


def test_no_request_is_sent_with_expired_keys(tmp_path: Any) -> None:
    store = answering(of(Table(left_s=0.0).job), 200, b"never")
    (tmp_path / "file").write_bytes(b"x")
    for ask in (
        lambda: store.get("k"),
        lambda: store.put("k", b""),
        lambda: sent(Engine(store), tmp_path),
        lambda: store.fetch("k", tmp_path / "new"),
    ):
        with pytest.raises(CredentialsExpired):
            ask()


def test_new_keys_are_used_by_the_clients_that_there_are() -> None:
    table = Table(left_s=60.0)
    client = of(table.job).client("s3", REGION)

    def key() -> str:
        return str(client._request_signer._credentials.get_frozen_credentials().access_key)

    assert key() == "ASIAOLD"
    table.at += AGAIN_S
    table.renew()
    assert key() == "ASIANEW"


# A node whose keys expire


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_credentials, "AGAIN_S", 0.05)
    monkeypatch.setattr(savers, "AGAIN_S", 0.05)


class Outage:
    """Makes all that the node reaches with the job's credentials refuse them until `over` is called."""

    def __init__(self, site: Site, *, begun: bool) -> None:
        self.site, self.on = site, begun
        site.aws.s3.fault = site.aws.logs.fault = self.fault
        self.refused = list[str]()

    def fault(self, call: str, key: str) -> Exception | None:
        if self.on and not self.site.aws.job_credentials._are_expired:
            self.site.aws.job_credentials._are_expired = True
            self.site.aws.job_credentials.tell("the credentials of the job have expired: nobody renews them")
        self.refused += [f"{call} {key}"] if self.on else []
        return CredentialsExpired("the credentials of the job have expired") if self.on else None

    def over(self) -> None:
        self.on = False
        self.site.aws.job_credentials.tell("")


def meanwhile(happen: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=happen)
    thread.start()
    return thread


LONG = """
import itertools, os, pathlib, time
folder = pathlib.Path(os.environ["CHECKPOINT_DIR"])
for step in itertools.count():
    new = folder / "model.tmp"
    new.write_text(str(step))
    new.rename(folder / "model.pt")
    print("step", step)
    time.sleep(0.05)
    if (folder.parent / "enough").exists():
        break
pathlib.Path(os.environ["ARTIFACTS_DIR"], "result.txt").write_text("done")
"""


def test_a_training_goes_on_without_keys_and_all_that_waited_arrives_with_the_new_ones(site: Site) -> None:
    site.offer(LONG, checkpoint_minutes=0.001)
    outage = Outage(site, begun=False)

    def happen() -> None:
        until(lambda: site.aws.s3.sent("commits/checkpoints"))
        outage.on = True
        before = len(site.sent())
        until(lambda: len(site.sent()) > before + 3)  # reports go on, by the instance's own credentials
        until(lambda: any("credentials of the job have expired" in one.note for one in site.sent()[before:]))
        assert {one.phase.value for one in site.sent()[before:]} == {"training"}
        (site.root / "var/lib/trainyard/enough").touch()
        until(lambda: site.report().phase.value == "saving")
        refused = len(outage.refused)
        until(lambda: len(outage.refused) > refused + 3)
        outage.over()

    beside = meanwhile(happen)
    ending = site.run()
    beside.join()
    assert (ending.code, ending.error) == (0, "")
    assert site.aws.s3.sent("artifacts/rank-0000/result.txt")
    lines = [line for line in site.lines if line.startswith("step ")]
    assert lines == [f"step {number}" for number in range(len(lines))]
    assert any("the job has new credentials" in line for line in site.lines)


@pytest.mark.parametrize("what", ["get jobs/job-1/job.json", "download jobs/job-1/code"])
def test_a_node_whose_keys_expire_before_its_start_waits_for_new_ones(site: Site, what: str) -> None:
    site.offer("print('trained')")
    tries = itertools.count()

    def twice(call: str, key: str) -> Exception | None:
        return CredentialsExpired("expired") if f"{call} {key}".startswith(what) and next(tries) < 2 else None

    site.aws.s3.fault = twice
    assert site.run().error == ""
    assert next(tries) > 2


def test_a_secret_that_is_asked_for_with_expired_keys_does_not_fail_the_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/token"
    site.offer("import os; assert os.environ['TOKEN'] == 'x'", secrets={"TOKEN": arn})
    site.aws.secrets[arn] = "x"
    answers = iter([CredentialsExpired("expired"), CredentialsExpired("expired"), None])
    ask = site.aws.secret

    def secret(region: str, name: str) -> str:
        if problem := next(answers):
            raise problem
        return ask(region, name)

    monkeypatch.setattr(site.aws, "secret", secret)
    assert site.run().error == ""


def test_keys_that_expired_before_the_node_came_are_as_good_as_none(site: Site) -> None:
    site.offer("")
    site.gets_keys = False
    site.give_credentials(replace(OLD, expires=time.time() - 1))
    threading.Timer(0.3, lambda: site.give_credentials(NEW)).start()
    assert site.run().error == ""
    assert site.aws.used == [NEW]


def test_a_node_waits_for_its_first_keys_until_its_deadline_and_moves_its_power_off_to_it(site: Site) -> None:
    site.offer("print('trained')")
    arm = site.root / "opt/trainyard/arm-power-off"
    arm.parent.mkdir(parents=True)
    arm.write_text(f'#!/bin/sh\necho "$1" >> {site.root}/armed\n')
    arm.chmod(0o755)
    site.gets_keys, clock = False, [time.time()]
    site.now = lambda: clock[0]

    def happen() -> None:
        until((site.root / "armed").exists)
        clock[0] += 3000.0  # well beyond the boot allowance
        looks = len(site.aws.table.list_calls("get"))
        until(lambda: len(site.aws.table.list_calls("get")) > looks + 1 or site.sent())
        site.give_credentials(NEW)

    beside = meanwhile(happen)
    assert site.run().error == ""
    beside.join()
    deadline = float(site.imds.values[f"tags/instance/{tags.DEADLINE}"])
    assert (site.root / "armed").read_text().splitlines()[0] == f"{deadline + 300:.0f}"


def test_a_table_that_does_not_answer_while_a_node_waits_for_keys_does_not_end_it(site: Site) -> None:
    site.offer("")
    tries = itertools.count()
    site.aws.table.fault = lambda call, sort: (
        refusal("ProvisionedThroughputExceededException")
        if (call, sort) == ("get", "keys") and next(tries) < 2
        else None
    )
    assert site.run().error == ""
    assert next(tries) > 2


def test_the_last_commits_wait_for_keys_as_long_as_it_takes() -> None:
    expired = CredentialsExpired("expired")
    node = Finished((expired,) * 1000 + (None,), (None,))
    assert node.finish().text == ""
    assert node.checkpoints.tries == 1001


def test_what_is_refused_for_another_reason_is_not_tried_for_ever() -> None:
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
    node = Finished((CredentialsExpired("expired"), refused), (None,))
    assert "no" in node.finish().text
    assert node.checkpoints.tries == 2
