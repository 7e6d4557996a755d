"""A line on Kubernetes: one MPIJob, found again whatever befalls its child, and recorded when it has no pods."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from contract.grid import Backend, ExitCode, LineOutcome
from contract.kubernetes_api import ClusterProblem
from contract.mpi_job import ENDED_FOR, SAVED_S
from contract.mpi_job_facts import PLACED_S
from contract.pod_files import MOST_NOTE, RESULT, PodResult, describe_result
from grid_child.identity import identify
from grid_child.kubernetes import KubernetesLine, answer_of
from grid_child.plan import read_work
from grid_child.policy import SubmitAnswer
from grid_child.retry import Retry
from grid_child.store import Home
from grid_child.trouble import Unfit
from grid_child.waits import Waits
from tests.fakes.aws import Aws
from tests.fakes.clock import Killed
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.grid_yard import BUCKET, BYTES, HOME, NOW, PREFIX, GridYard, grid_of, pod_line_of, sigterm
from tests.fakes.kubernetes import read_tokens, sign
from tests.fakes.pod_jobs import FAILS, PodJobs, PodLife
from tests.fakes.s3 import Bucket

CREATE, READ, END = "kubernetes:PostJob", "kubernetes:GetJob", "kubernetes:PatchJob"
CLOSE = "kubernetes:PostObject"
FORBIDDEN = 'resourcequotas "machines" is forbidden: User "yard" cannot get resource "resourcequotas" in API group "" in the namespace'
"""Words of a cluster to which nobody has applied the manifests."""


@contextmanager
def planned_pods(life: PodLife | None = None, lines: int = 1, **changes: Any) -> Iterator[tuple[GridYard, PodJobs]]:
    aws = Aws(now=NOW)
    for name in (BUCKET, BYTES):
        aws.s3.buckets[name] = Bucket(region=HOME)
    made = [pod_line_of(index, index) for index in range(lines)]
    for name, value in changes.items():
        made = [replace(one, request=one.request | {name: value}) for one in made]
    yard = GridYard(aws, grid_of(lines, (HOME,)), made)
    jobs = PodJobs(aws, lambda _: life or PodLife())
    yard.write()
    with aws.connected():
        yield yard, jobs


@pytest.fixture
def there() -> Iterator[tuple[GridYard, PodJobs]]:
    with planned_pods() as found:
        yield found


def test_a_record_says_what_the_job_did_where_and_at_which_cost(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert (record.outcome, record.reason, record.backend) == (LineOutcome.COMPLETED, "", Backend.KUBERNETES)
    assert (record.metrics, record.billable_seconds, record.region) == ({"loss": 0.5}, 120.0, HOME)
    assert record.cost_usd == pytest.approx(120 * 2.0 / 3600, rel=1e-4)
    assert record.artifact == f"s3://{BYTES}/{PREFIX.bytes(0)}{record.training}/output/model.tar.gz"
    assert jobs.made == [record.training]


def test_a_job_that_fails_says_in_its_pods_words_why() -> None:
    with planned_pods(FAILS) as (yard, _):
        assert yard.run() == ExitCode.DONE
        record = yard.recorded()
    assert record.outcome is LineOutcome.FAILED
    assert "ValueError: no such column" in record.reason
    assert "kubectl -n yard-lines get pods" in record.reason


def test_an_image_without_mpirun_is_named() -> None:
    with planned_pods(PodLife(fails="/bin/sh: 1: mpirun: not found")) as (yard, _):
        yard.run()
        assert yard.recorded().reason.startswith("the image has no mpirun, which its line needs; ")


def test_a_token_is_for_this_cluster_alone_and_for_no_longer_than_eks_takes(
    there: tuple[GridYard, PodJobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    yard, _ = there
    sign(monkeypatch, "grid_child.kubernetes")
    assert yard.run() == ExitCode.DONE
    assert set(read_tokens(yard.aws.calls)) == {("GetCallerIdentity", "host;x-k8s-aws-id", 60)}


def test_a_worker_without_sshd_ends_the_job_that_the_operator_would_wait_for() -> None:
    life = PodLife(worker_fails="/bin/sh: 1: exec: /usr/sbin/sshd: not found")
    with planned_pods(life) as (yard, _):
        assert yard.run() == ExitCode.DONE
        record, job = yard.recorded(), yard.pod_job()
    assert record.outcome is LineOutcome.FAILED
    assert record.reason.startswith("The image has no sshd, which its line needs; ")
    assert job is not None
    assert job["spec"]["runPolicy"]["suspend"]


def test_a_job_without_machines_for_an_hour_is_given_up() -> None:
    with planned_pods(PodLife(placed_s=1e9)) as (yard, _):
        assert yard.run() == ExitCode.DONE
        assert yard.recorded().outcome is LineOutcome.FAILED
        assert f"After {PLACED_S / 60:.0f} minutes the cluster has no pods" in yard.recorded().reason
        assert yard.recorded().cost_usd == 0.0


def test_a_model_that_nothing_saved_is_no_success() -> None:
    with planned_pods(PodLife(saves=False)) as (yard, _):
        yard.run()
        record = yard.recorded()
    assert record.outcome is LineOutcome.FAILED
    assert record.reason.startswith("The training succeeded, and its model was not saved")
    assert yard.aws.clock.now >= NOW + SAVED_S


def test_a_note_as_long_as_code_may_write_is_not_believed(there: tuple[GridYard, PodJobs]) -> None:
    yard, _ = there
    note = f"{PREFIX.pod_notes(0)}{RESULT}"

    def write() -> None:
        yard.aws.s3.write(BYTES, note, b"[" * (MOST_NOTE + 1))

    yard.at(160, write)
    yard.run()
    assert yard.recorded().metrics == {}


def test_a_refused_job_is_that_lines_record_in_the_clusters_words(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    yard.aws.cluster.refusals[yard.lines[0].training] = "spec.slotsPerWorker: Invalid value"
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.REFUSED
    assert "Kubernetes refused the request: 422: spec.slotsPerWorker: Invalid value" in yard.recorded().reason
    assert jobs.made == []


@pytest.mark.parametrize("fault", [Kind.LOST, Kind.ERROR, Kind.ERROR_AFTER, Kind.THROTTLED, Kind.UNREACHABLE])
def test_a_creation_whose_answer_says_nothing_makes_one_job(there: tuple[GridYard, PodJobs], fault: Kind) -> None:
    yard, jobs = there
    assert yard.run(mishaps=[Mishap(CREATE, fault=fault)]) == ExitCode.DONE
    assert jobs.made == [yard.recorded().training]


@pytest.mark.parametrize("death", [Death.BEFORE, Death.AFTER])
@pytest.mark.parametrize("call", [CREATE, READ, "s3:PutObject"])
def test_a_child_that_is_killed_is_followed_by_one_that_adopts_the_job(
    there: tuple[GridYard, PodJobs], death: Death, call: str
) -> None:
    yard, jobs = there
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(call, death=death)])
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert jobs.made == [yard.recorded().training]


def test_a_job_that_a_person_deletes_is_stopped_and_never_made_again(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    key = ("yard-lines", yard.lines[0].training)

    def delete() -> None:
        jobs.cluster.answer("DELETE", f"/apis/kubeflow.org/v2beta1/namespaces/{key[0]}/mpijobs/{key[1]}")

    yard.at(100, delete)
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.STOPPED
    assert "was deleted before its end" in yard.recorded().reason
    assert len(jobs.made) == 1


def test_a_job_that_a_person_deletes_before_it_has_pods_is_not_made_again() -> None:
    with planned_pods(PodLife(placed_s=1000)) as (yard, jobs):
        path = f"/apis/kubeflow.org/v2beta1/namespaces/yard-lines/mpijobs/{yard.lines[0].training}"

        def delete() -> None:
            jobs.cluster.answer("DELETE", path)

        yard.at(100, delete)
        assert yard.run() == ExitCode.DONE
        assert yard.recorded().outcome is LineOutcome.STOPPED
        assert len(jobs.made) == 1


def test_a_submission_that_could_not_be_noted_is_noted_by_the_next_child(there: tuple[GridYard, PodJobs]) -> None:
    yard, _ = there
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(CREATE, death=Death.AFTER)])
    assert PREFIX.submitted(0) not in yard.aws.s3.buckets[BUCKET].objects
    assert yard.run(attempt=2) == ExitCode.DONE
    assert PREFIX.submitted(0) in yard.aws.s3.buckets[BUCKET].objects


def test_pods_of_a_job_are_closed_to_those_of_others_and_the_policy_goes_with_the_job(
    there: tuple[GridYard, PodJobs],
) -> None:
    yard, jobs = there
    assert yard.run() == ExitCode.DONE
    name = yard.recorded().training
    (policy,) = jobs.cluster.policies.values()
    own = {"podSelector": {"matchLabels": {"training.kubeflow.org/job-name": name}}}
    assert (policy["metadata"]["name"], policy["spec"]["ingress"]) == (name, [{"from": [own]}])
    jobs.cluster.answer("DELETE", f"/apis/kubeflow.org/v2beta1/namespaces/yard-lines/mpijobs/{name}")
    assert jobs.cluster.policies == {}


@pytest.mark.parametrize("death", [Death.BEFORE, Death.AFTER])
def test_a_policy_that_its_child_could_not_make_is_made_by_the_next_one(
    there: tuple[GridYard, PodJobs], death: Death
) -> None:
    yard, jobs = there
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(CLOSE, death=death)])
    assert yard.run(attempt=2) == ExitCode.DONE
    assert list(jobs.cluster.policies) == [("yard-lines", yard.recorded().training)]


@pytest.mark.parametrize("fault", [Kind.LOST, Kind.ERROR, Kind.ERROR_AFTER, Kind.THROTTLED, Kind.UNREACHABLE])
def test_a_policy_whose_answer_says_nothing_is_made_once(there: tuple[GridYard, PodJobs], fault: Kind) -> None:
    yard, jobs = there
    assert yard.run(mishaps=[Mishap(CLOSE, fault=fault)]) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert len(jobs.cluster.policies) == len(jobs.made) == 1


def test_a_note_of_another_lines_code_decides_nothing() -> None:
    with planned_pods(PodLife(saves=False)) as (yard, _):
        forged = json.dumps(describe_result(PodResult(ended_at=NOW, model=True, metrics={"loss": 0.0}), "guessed"))

        def write() -> None:
            yard.aws.s3.write(BYTES, f"{PREFIX.pod_notes(0)}{RESULT}", forged.encode())

        yard.at(160, write)
        yard.run()
        assert (yard.recorded().outcome, yard.recorded().metrics) == (LineOutcome.FAILED, {})


def test_a_job_that_a_person_suspends_is_waited_for(there: tuple[GridYard, PodJobs]) -> None:
    yard, _ = there

    def suspend() -> None:
        job = yard.pod_job()
        assert job is not None
        job["spec"]["runPolicy"]["suspend"] = True

    yard.at(100, suspend)
    assert yard.run(waits=sigterm(yard, 400)) == ExitCode.AGAIN
    assert yard.record() is None


def test_a_job_of_another_grid_under_the_name_is_left_alone(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    other = pod_line_of(0).request["job"]
    other["metadata"]["annotations"]["trainyard/execution"] = "another"
    jobs.cluster.jobs["yard-lines", yard.lines[0].training] = other | {
        "metadata": {**other["metadata"], "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    }
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.REFUSED
    assert "the name of its training is taken by lab/yard-lines/" in yard.recorded().reason
    assert yard.calls("PatchJob") == 0


def test_the_end_of_the_grid_suspends_the_job_and_leaves_its_object(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    assert yard.run(mishaps=[Mishap(CREATE, meanwhile=yard.stop)]) == ExitCode.DONE
    record, job = yard.recorded(), yard.pod_job()
    assert job is not None
    assert job["metadata"]["annotations"][ENDED_FOR].startswith("Stopped: ")
    assert (record.outcome, jobs.running) == (LineOutcome.STOPPED, set())
    assert record.reason.startswith("The grid of this line has ended. ")


def test_a_job_that_is_ended_costs_what_it_ran(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: PodLife(ends_s=100_000)
    yard.at(1000, yard.stop)
    yard.run(waits=sigterm(yard, 1100))
    assert yard.run(attempt=2) == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.STOPPED
    assert (record.billable_seconds or 0) >= 900


def test_an_end_that_is_lost_is_repeated(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    mishaps = [Mishap(CREATE, meanwhile=yard.stop), Mishap(END, fault=Kind.ERROR, times=3)]
    assert yard.run(mishaps=mishaps) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.STOPPED
    assert jobs.running == set()


def test_sigterm_without_an_order_leaves_the_job_to_the_next_attempt(there: tuple[GridYard, PodJobs]) -> None:
    yard, jobs = there
    assert yard.run(waits=sigterm(yard, 70)) == ExitCode.AGAIN
    assert jobs.running
    assert yard.run(attempt=2) == ExitCode.DONE
    assert len(jobs.made) == 1


def test_a_line_waits_while_the_cluster_has_no_room() -> None:
    with planned_pods(lines=2, most_nodes=2) as (yard, jobs):
        jobs.cluster.answer(
            "POST", "/apis/kubeflow.org/v2beta1/namespaces/yard-lines/mpijobs", yard.lines[0].request["job"]
        )
        assert yard.run(1) == ExitCode.DONE
        first, second = jobs.spans
    assert second[1] >= first[2], "the second began when the first was over"


def test_a_line_for_which_there_is_never_room_names_the_setting() -> None:
    with planned_pods(most_nodes=1) as (yard, _):
        assert yard.run() == ExitCode.DONE
        assert yard.recorded().outcome is LineOutcome.REFUSED
        assert "raise kubernetes.max_nodes in cdk.json" in yard.recorded().reason
        assert "0 of 1 nodes of the cluster are taken, and line 0 needs 2" in yard.recorded().reason


def test_a_cluster_without_the_objects_of_its_manifest_refuses_the_line_at_once(
    there: tuple[GridYard, PodJobs],
) -> None:
    yard, jobs = there
    jobs.cluster.quota_problem = FORBIDDEN
    assert yard.run() == ExitCode.DONE
    assert (yard.recorded().outcome, jobs.made) == (LineOutcome.REFUSED, [])
    assert f"Kubernetes refused the request: 403: {FORBIDDEN}" in yard.recorded().reason
    assert "max_nodes" not in yard.recorded().reason
    assert yard.aws.clock.now - NOW < 60


@pytest.mark.parametrize(
    ("status", "words", "answer"),
    [
        (403, FORBIDDEN, SubmitAnswer.REFUSED),
        (403, 'mpijobs.kubeflow.org "j" is forbidden: exceeded quota: machines, requested: pods=2', SubmitAnswer.QUOTA),
        (403, 'mpijobs.kubeflow.org "j" is forbidden: status unknown for quota: machines', SubmitAnswer.QUOTA),
        (404, 'resourcequotas "machines" not found', SubmitAnswer.REFUSED),
        (401, "Unauthorized", SubmitAnswer.OPEN),
        (429, "exceeded quota", SubmitAnswer.THROTTLED),
        (0, "timed out", SubmitAnswer.OPEN),
    ],
)
def test_only_a_quota_that_is_used_up_is_waited_for_as_one(status: int, words: str, answer: SubmitAnswer) -> None:
    assert answer_of(ClusterProblem(status, words)) is answer


def test_a_child_without_the_right_to_see_the_cluster_says_so(
    there: tuple[GridYard, PodJobs], capsys: pytest.CaptureFixture[str]
) -> None:
    yard, _ = there
    assert yard.run(mishaps=[Mishap("eks:DescribeCluster", fault=Kind.DENIED)]) == ExitCode.FINAL
    assert "eks:DescribeCluster of lab is not allowed" in capsys.readouterr().err


def test_a_line_for_a_cluster_that_is_not_there_is_refused_with_the_setting_that_names_it() -> None:
    with planned_pods(cluster="gone") as (yard, jobs):
        assert yard.run() == ExitCode.DONE
        assert yard.recorded().outcome is LineOutcome.REFUSED
        words = (
            f"kubernetes.cluster: gone is no cluster in {HOME}; allowed: the name of a cluster in that region, or new"
        )
        assert words in yard.recorded().reason
        assert (jobs.made, yard.aws.clock.now - NOW < 60) == ([], True)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_cluster_that_goes_away_ends_its_lines_when_it_goes(
    there: tuple[GridYard, PodJobs], *, is_stopped: bool
) -> None:
    yard, jobs = there

    def remove() -> None:
        jobs.cluster.is_gone = True

    yard.at(100, remove)
    if is_stopped:
        yard.at(101, yard.stop)
    assert yard.run() == ExitCode.DONE
    assert (yard.recorded().outcome, len(jobs.made)) == (LineOutcome.STOPPED, 1)
    assert yard.aws.clock.now - NOW < 1000


def test_a_submission_that_a_cluster_that_goes_away_did_not_answer_is_refused(
    there: tuple[GridYard, PodJobs],
) -> None:
    yard, jobs = there

    def remove() -> None:
        jobs.cluster.is_gone = True

    assert yard.run(mishaps=[Mishap(CREATE, fault=Kind.UNREACHABLE, meanwhile=remove)]) == ExitCode.DONE
    assert (yard.recorded().outcome, jobs.made) == (LineOutcome.REFUSED, [])


def test_an_order_to_stop_is_carried_out_where_the_cluster_is_gone() -> None:
    with planned_pods(cluster="gone") as (yard, _):
        me, waits = identify(yard.variables()), Waits(yard.aws.clock)
        home = Home(BUCKET, HOME, Retry(waits, random.Random(0), base_s=1.0, most_s=1.0))
        line = KubernetesLine(read_work(me, home, random.Random(0)), home, waits.time, lambda: "seal")
        line.stop()
        assert line.find() is None


def test_a_cluster_that_does_not_answer_is_not_gone(there: tuple[GridYard, PodJobs]) -> None:
    yard, _ = there
    mishaps = [Mishap("eks:DescribeCluster", fault=Kind.UNREACHABLE, times=2), Mishap(READ, fault=Kind.LOST, times=5)]
    assert yard.run(mishaps=mishaps) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED


def test_a_plan_whose_job_names_another_line_is_not_carried_out(there: tuple[GridYard, PodJobs]) -> None:
    yard, _ = there
    yard.lines[0] = replace(yard.lines[0], request=yard.lines[0].request | {"job": pod_line_of(1).request["job"]})
    yard.write()
    me, waits = identify(yard.variables()), Waits(yard.aws.clock)
    retry = Retry(waits, random.Random(0), base_s=1.0, most_s=1.0)
    with pytest.raises(Unfit, match="does not say of which grid and line it is"):
        read_work(me, Home(BUCKET, HOME, retry), random.Random(0))
