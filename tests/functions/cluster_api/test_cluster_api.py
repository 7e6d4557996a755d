"""The function that speaks with the cluster, and those that ask it: what collects a grid, the reaper, and the drain of a destroy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError

from aws.grids import GridStore
from aws.mpi_jobs import ClusterAway, MpiJobs
from cluster_api.handler import handler
from cluster_api.policy import MOST_LABELLED, MOST_LISTED, count_idle, list_ended, order_jobs
from contract.cluster_calls import ClusterApiEnvironment, PodJob, PodVerb
from contract.environments import DrainEnvironment
from contract.grid import GridPrefix, LineOutcome
from contract.kubernetes_api import ClusterGone
from contract.mpi_job import seal_job
from contract.mpi_job_facts import is_live
from contract.mpi_job_labels import DAY_S, ENDED, KEPT_DAYS
from contract.names import cluster_function
from contract.timing import Timing
from contract.timings import DrainTiming
from drain.grids import Grids
from drain.policy import NotDrained
from grids.looking import GridLook
from reaper.pods_left import PodsLeft
from tests.fakes.aws import Aws
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Kind
from tests.fakes.functions import PROFILE
from tests.fakes.grid_yard import BUCKET, BYTES, DEPLOYMENT, HOME, NOW, GridYard, grid_of, pod_line_of
from tests.fakes.kubernetes import NAME, read_tokens, sign
from tests.fakes.pod_jobs import PodJobs, PodLife
from tests.fakes.s3 import Bucket
from tests.fakes.state import TABLE

FUNCTION = cluster_function(DEPLOYMENT)
SPACE = f"{DEPLOYMENT}-lines"
ENVIRONMENT = ClusterApiEnvironment(deployment=DEPLOYMENT, home_region=HOME, cluster=NAME)
DRAIN = DrainEnvironment(
    deployment=DEPLOYMENT,
    bucket=BUCKET,
    table=TABLE,
    instance_profile=PROFILE,
    regions=(),
    machine=MACHINE,
    grid_machine=GRID_MACHINE,
    search_machine=SEARCH_MACHINE,
    keep_data=True,
    timing=Timing().of(DrainTiming),
    cluster_function=FUNCTION,
)


class Yard(GridYard):
    """A grid of two lines on Kubernetes, and the function behind its name."""

    def make(self, index: int = 0, **marks: str) -> dict[str, Any]:
        """As the line's child makes its MPIJob; `marks` over its annotations."""
        job: dict[str, Any] = seal_job(self.lines[index].request["job"], "seal")
        job["metadata"]["annotations"] |= {f"trainyard/{key}": value for key, value in marks.items()}
        status, made = self.aws.cluster.answer("POST", f"/apis/kubeflow.org/v2beta1/namespaces/{SPACE}/mpijobs", job)
        assert status == 201
        return made

    def pass_time(self, seconds: float) -> None:
        self.aws.clock.run(seconds)


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    for name, value in ENVIRONMENT.write().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("time.time", lambda: aws.clock.now)
    aws = Aws(now=NOW)
    for name in (BUCKET, BYTES):
        aws.s3.buckets[name] = Bucket(region=HOME)
    made = Yard(aws, grid_of(2, (HOME,)), [pod_line_of(0), pod_line_of(1)])
    PodJobs(aws, lambda _: PodLife())
    made.write()

    def invoke(event: dict[str, Any]) -> dict[str, Any]:
        try:
            said, failed = handler(event, None), {}
        except Exception as problem:
            said, failed = {"errorMessage": str(problem)}, {"FunctionError": "Unhandled"}
        return {"StatusCode": 200, "Payload": json.dumps(said).encode(), **failed}

    aws.at_once[FUNCTION] = invoke
    with aws.connected():
        yield made


def see(yard: Yard, **given: Any) -> GridLook:
    return GridLook(store=GridStore(BUCKET), grid=yard.grid, **given)


def test_a_token_is_for_this_cluster_alone_and_for_no_longer_than_eks_takes(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(monkeypatch, "aws.kubernetes")
    handler({"verb": PodVerb.LIST.value}, None)
    assert set(read_tokens(yard.aws.calls)) == {("GetCallerIdentity", "host;x-k8s-aws-id", 60)}


# What collects a grid


def test_a_line_whose_child_is_gone_is_recorded_as_a_child_would(yard: Yard) -> None:
    yard.make(0)
    assert len(see(yard).read_state().running) == 1
    yard.pass_time(400)
    state = see(yard).read_state()
    assert (state.written, state.absent, state.unknown) == (1, [1], [])
    assert (yard.recorded(0).outcome, yard.recorded(0).metrics) == (LineOutcome.COMPLETED, {"loss": 0.5})


def test_the_end_of_a_grid_ends_its_jobs_and_gives_every_line_a_record(yard: Yard) -> None:
    yard.make(0)
    yard.pass_time(60)
    see(yard, end=True, fenced="the grid was stopped").read_state()
    yard.pass_time(60)
    state = see(yard, end=True, fenced="the grid was stopped").read_state()
    assert (state.running, state.absent) == ([], [])
    assert [yard.recorded(one).outcome for one in (0, 1)] == [LineOutcome.STOPPED] * 2


def test_a_line_whose_job_was_made_and_is_gone_was_stopped(yard: Yard) -> None:
    yard.aws.s3.write(BUCKET, GridPrefix(yard.grid.id).submitted(0), b"{}")
    state = see(yard).read_state()
    assert (state.absent, yard.recorded(0).outcome) == ([1], LineOutcome.STOPPED)


def test_the_end_of_a_grid_leaves_a_protected_job_as_it_leaves_a_protected_training(yard: Yard) -> None:
    yard.make(0, protected="mine")
    yard.pass_time(60)
    see(yard, end=True, fenced="the grid was stopped").read_state()
    assert yard.calls("PatchJob") == 0


def test_a_job_of_another_grid_is_recorded_as_a_strangers_and_left_alone(yard: Yard) -> None:
    yard.make(0, execution="another")
    see(yard, end=True).read_state()
    assert yard.recorded(0).outcome is LineOutcome.REFUSED
    assert yard.calls("PatchJob") == 0


def test_a_worker_that_failed_is_found_without_its_child_too(yard: Yard) -> None:
    PodJobs(yard.aws, lambda _: PodLife(worker_fails="exec: /usr/sbin/sshd: not found"))
    yard.make(0)
    yard.pass_time(60)
    see(yard).read_state()
    assert yard.recorded(0).outcome is LineOutcome.FAILED
    assert "has no sshd" in yard.recorded(0).reason


def test_a_cluster_that_does_not_answer_is_no_end(yard: Yard) -> None:
    yard.make(0)
    yard.aws.at_once[FUNCTION] = lambda _: {
        "StatusCode": 200,
        "FunctionError": "Unhandled",
        "Payload": b'{"errorMessage": "timed out"}',
    }
    state = see(yard, fenced="the grid was stopped").read_state()
    assert (state.written, len(state.unknown)) == (0, 2)
    assert "The cluster does not answer" in state.unknown[0]
    assert issubclass(ClusterAway, BotoCoreError)


# The reaper


def test_the_reaper_sees_what_runs_with_its_grid_and_its_age(yard: Yard) -> None:
    made = yard.make(0)
    yard.make(1, protected="mine")
    (page,) = PodsLeft(DEPLOYMENT, HOME, FUNCTION).pages()
    first, second = page.things
    assert (first.id, first.job, first.execution) == (made["metadata"]["name"], "sweep", yard.grid.execution)
    assert (first.born_at, first.deployment, first.protected, second.protected) == (NOW, DEPLOYMENT, False, True)


def test_the_reaper_ends_a_job_and_then_sees_it_no_more(yard: Yard) -> None:
    name = yard.make(0)["metadata"]["name"]
    kind = PodsLeft(DEPLOYMENT, HOME, FUNCTION)
    assert [one.id for one in kind.again([name, "gone"]).things] == [name]
    assert kind.end([name, "gone"]) == {}
    assert kind.again([name]).things == ()
    job = yard.pod_job(0)
    assert job is not None
    assert "the reaper ended it" in json.dumps(job["metadata"]["annotations"])


def test_a_job_of_another_deployment_is_not_listed(yard: Yard) -> None:
    yard.make(0)
    job = yard.pod_job(0)
    assert job is not None
    job["metadata"]["labels"]["trainyard/deployment"] = "other"
    assert MpiJobs(FUNCTION).listed() == []


# The drain


def test_a_destroy_deletes_every_job_and_comes_again_until_none_is_there(yard: Yard) -> None:
    yard.make(0)
    grids = Grids(env=DRAIN, since=NOW, there=False, regions=[])
    assert grids._end_pods() == [f"- MPIJob {yard.lines[0].training} was there a moment ago"]
    assert yard.aws.cluster.jobs == {}
    assert grids._end_pods() == []


def test_a_destroy_stops_at_a_job_that_a_person_protects(yard: Yard) -> None:
    yard.make(0, protected="mine")
    with pytest.raises(NotDrained):
        Grids(env=DRAIN, since=NOW, there=False, regions=[])._end_pods()
    assert yard.pod_job(0) is not None


def test_a_destroy_without_a_cluster_asks_nothing(yard: Yard) -> None:
    env = replace(DRAIN, cluster_function="")
    assert Grids(env=env, since=NOW, there=False, regions=[])._end_pods() == []
    del yard.aws.at_once[FUNCTION]
    assert Grids(env=DRAIN, since=NOW, there=False, regions=[])._end_pods() == [], "its stack is gone already"


# A cluster that is gone


def test_jobs_of_a_cluster_that_is_gone_are_gone_and_a_destroy_goes_on(yard: Yard) -> None:
    yard.make(0)
    yard.aws.cluster.is_gone = True
    jobs = MpiJobs(FUNCTION)
    assert (jobs.listed(), jobs.listed(only_open=True), jobs.find("a")) == ([], [], (None, []))
    jobs.end("a", "Stopped: its grid is over")
    jobs.delete("a")
    assert Grids(env=DRAIN, since=NOW, there=False, regions=[])._end_pods() == []


def test_lines_of_a_cluster_that_is_gone_are_stopped_where_they_were_made(yard: Yard) -> None:
    yard.aws.s3.write(BUCKET, GridPrefix(yard.grid.id).submitted(0), b"{}")
    yard.aws.cluster.is_gone = True
    state = see(yard).read_state()
    assert (state.absent, yard.recorded(0).outcome) == ([1], LineOutcome.STOPPED)


def test_a_watch_over_a_cluster_that_is_gone_fails_for_its_alarm(yard: Yard) -> None:
    yard.aws.cluster.is_gone = True
    with pytest.raises(ClusterGone, match=r"kubernetes\.cluster: lab is no cluster in"):
        handler({"verb": PodVerb.WATCH.value}, None)


@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.THROTTLED, Kind.UNREACHABLE, Kind.ERROR])
def test_a_cluster_of_which_eks_says_nothing_is_not_gone(yard: Yard, fault: Kind) -> None:
    yard.aws.faults.add(fault, "eks:DescribeCluster", times=9)
    with pytest.raises(ClusterAway):
        MpiJobs(FUNCTION).listed()


# The watch


def test_a_machine_that_no_job_needs_is_counted(yard: Yard) -> None:
    labels = {"trainyard/deployment": DEPLOYMENT}
    for number in range(3):
        yard.aws.cluster.nodes.append({"metadata": {"name": f"m{number}", "labels": labels}})
    yard.aws.cluster.nodes.append({"metadata": {"name": "the operator's", "labels": {}}})
    assert handler({"verb": PodVerb.WATCH.value}, None) == {"idle": 3}
    yard.make(0)
    assert handler({"verb": PodVerb.WATCH.value}, None) == {"idle": 1}


def watch(yard: Yard, days: float = 0) -> list[str]:
    """Runs the watch some days from now; the jobs that are there after it."""
    yard.aws.clock.now = NOW + days * DAY_S
    handler({"verb": PodVerb.WATCH.value}, None)
    return [name for _, name in yard.aws.cluster.jobs]


def test_the_watch_deletes_what_ended_long_ago_and_nothing_that_runs(yard: Yard) -> None:
    PodJobs(yard.aws, lambda _: PodLife(ends_s=1e12))
    first, second = (yard.make(index)["metadata"]["name"] for index in (0, 1))
    for index, conditions in enumerate(([{"type": "Succeeded", "status": "True"}], [])):
        job = yard.pod_job(index)
        assert job is not None
        job["status"] = {"conditions": conditions}
    assert [watch(yard, days) for days in (0, KEPT_DAYS)] == [[first, second]] * 2
    assert watch(yard, KEPT_DAYS + 1) == [second]
    assert watch(yard, 10 * KEPT_DAYS) == [second]
    assert [is_live(one) for one in yard.aws.cluster.jobs.values()] == [True]


def test_what_was_labelled_as_ended_and_goes_on_is_not_deleted(yard: Yard) -> None:
    name = yard.make(0)["metadata"]["name"]
    job = yard.pod_job(0)
    assert job is not None
    job["metadata"]["labels"][ENDED] = "18262"
    assert watch(yard) == [name]


def test_what_ended_is_listed_for_a_destroy_and_no_more_for_the_reaper(yard: Yard) -> None:
    first, second = (yard.make(index)["metadata"]["name"] for index in (0, 1))
    MpiJobs(FUNCTION).end(first, "Stopped: its grid is over")
    watch(yard)
    assert [one.name for one in MpiJobs(FUNCTION).listed(only_open=True)] == [second]
    assert {one.name for one in MpiJobs(FUNCTION).listed()} == {first, second}


def test_a_job_that_a_person_suspended_has_not_ended() -> None:
    job = pod_line_of(0).request["job"]
    job["spec"]["runPolicy"]["suspend"] = True
    assert list_ended([job]) == []


def test_a_pass_labels_no_more_than_it_has_time_for() -> None:
    job = pod_line_of(0).request["job"] | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    assert len(list_ended([job] * (MOST_LABELLED + 1))) == MOST_LABELLED


def test_fewer_machines_than_jobs_need_are_none_idle() -> None:
    assert count_idle([], [pod_line_of(0).request["job"]]) == 0


def test_what_lives_is_listed_before_what_has_ended_and_no_more_than_an_answer_holds() -> None:
    jobs = [PodJob(name=f"j{at}", created_at=NOW, is_live=at == MOST_LISTED) for at in range(MOST_LISTED + 1)]
    found = order_jobs(jobs)
    assert (len(found), found[0].name) == (MOST_LISTED, f"j{MOST_LISTED}")


def test_a_thousand_pods_fit_into_an_answer(yard: Yard) -> None:
    made = yard.make(0)
    yard.pass_time(60)
    (pod, *_) = yard.aws.cluster.pods_of(made)
    pod["metadata"]["managedFields"] = ["x" * 10_000]
    found = handler({"verb": "find", "name": made["metadata"]["name"]}, None)
    assert max(len(json.dumps(one)) for one in found["pods"]) < 2000
    assert {one["status"]["phase"] for one in found["pods"]} == {"Running"}


def test_a_word_that_the_function_does_not_know_changes_nothing(yard: Yard) -> None:
    yard.make(0)
    assert len(handler({"verb": "of-a-later-version"}, None)["jobs"]) == 1
    assert yard.calls("DeleteJob") == 0
