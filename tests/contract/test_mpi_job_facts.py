"""What an MPIJob and its pods mean: when a job is over, why it cannot go on, and what is believed of its notes."""

from __future__ import annotations

import hmac
import json
from typing import Any

import pytest

from cluster_api.policy import shrink_pod
from contract.grid import LineOutcome
from contract.mpi_job import SAVED_S, read_seal
from contract.mpi_job_facts import (
    LAUNCHED_S,
    PLACED_S,
    PULLED_S,
    PodEvidence,
    describe_mpi_job,
    describe_pods,
    find_obstacle,
    find_stranger,
    is_live,
)
from contract.pod_files import MOST_METRICS, PROOF, PodResult, describe_result, read_result
from localaws.services.kubernetes_model import write_time
from tests.fakes.grid_yard import HOME, NOW, grid_of, pod_line_of

LINE = pod_line_of(0)


def job(*conditions: tuple[str, str], suspended: str = "", age_s: float = 100.0) -> dict[str, Any]:
    """The line's MPIJob with conditions (type and reason) of now; `suspended` is why Trainyard ended it."""
    made: dict[str, Any] = {
        **LINE.request["job"],
        "metadata": {**LINE.request["job"]["metadata"], "creationTimestamp": write_time(NOW - age_s)},
    }
    said = [
        {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": write_time(NOW)}
        for kind, reason in conditions
    ]
    is_over = any(kind in {"Succeeded", "Failed"} and reason != "MPIJobEvicted" for kind, reason in conditions)
    made["status"] = {"conditions": said} | ({"completionTime": write_time(NOW)} if is_over else {})
    if suspended:
        made["spec"] = {**made["spec"], "runPolicy": {**made["spec"]["runPolicy"], "suspend": True}}
        made["metadata"]["annotations"] = {**made["metadata"]["annotations"], "trainyard/ended-for": suspended}
    return made


def pod(phase: str, role: str = "launcher", **status: Any) -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-role": role}
    spec = {} if phase == "Pending" else {"nodeName": "machine"}
    return {"metadata": {"name": f"p-{role}", "labels": labels}, "spec": spec, "status": {"phase": phase, **status}}


def ended(message: str, code: int = 1, name: str = "training") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "message": message}}
    return {"containerStatuses": [{"name": name, "state": state}]}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "t", "state": state}]}


def describe(evidence: PodEvidence, now: float = NOW) -> Any:
    found = describe_mpi_job(LINE, evidence, now=now)
    assert found is not None
    return found


def test_a_job_that_never_was_is_none() -> None:
    assert describe_mpi_job(LINE, PodEvidence(job=None), now=NOW) is None


def test_a_job_that_is_gone_after_it_was_made_was_stopped() -> None:
    assert describe(PodEvidence(job=None, was_made=True)).outcome is LineOutcome.STOPPED


def test_a_success_waits_for_what_its_keeper_saves_and_no_longer_than_half_an_hour() -> None:
    evidence = PodEvidence(job=job(("Succeeded", "")))
    assert not describe(evidence, NOW + SAVED_S - 1).ended
    assert describe(evidence, NOW + SAVED_S + 1).outcome is LineOutcome.FAILED


def test_a_success_is_one_when_its_keeper_has_saved() -> None:
    result = PodResult(ended_at=NOW, model=True, metrics={"loss": 0.5})
    found = describe(PodEvidence(job=job(("Succeeded", "")), result=result))
    assert (found.outcome, found.metrics, found.artifact) == (
        LineOutcome.COMPLETED,
        {"loss": 0.5},
        LINE.request["model"],
    )


def test_a_training_that_diverged_is_a_success_without_a_value_that_says_why() -> None:
    why = {"loss": "its last value is nan"}
    note = describe_result(PodResult(ended_at=NOW, model=True, metric_problems=why), "seal")
    found = describe(PodEvidence(job=job(("Succeeded", "")), result=read_result(json.dumps(note).encode(), "seal")))
    assert (found.outcome, found.metrics, found.metric_problems) == (LineOutcome.COMPLETED, {}, why)


def test_a_keeper_that_could_not_save_makes_no_success() -> None:
    result = PodResult(ended_at=NOW, problem="AccessDenied")
    found = describe(PodEvidence(job=job(("Succeeded", "")), result=result))
    assert (found.outcome, "AccessDenied" in found.reason) == (LineOutcome.FAILED, True)


def test_a_job_past_its_deadline_was_stopped() -> None:
    found = describe(PodEvidence(job=job(("Failed", "DeadlineExceeded")), pods=[pod("Failed")]))
    assert (found.outcome, found.status) == (LineOutcome.STOPPED, "Stopped")


KILLED = pod("Failed", **ended("", 137))


@pytest.mark.parametrize(
    ("pods", "own"),
    [
        ([KILLED], True),
        ([pod("Failed", **ended("CUDA out of memory")), pod("Succeeded", "worker")], True),
        ([pod("Failed", **ended("no such bucket", name="bringer"))], False),
        ([pod("Failed", **ended("mpirun: not found", 127))], False),
        ([KILLED, pod("Failed", "worker", reason="Evicted", message="The node was low on resource: memory")], False),
        ([pod("Failed", reason="NodeShutdown", **ended("", 137))], False),
        ([], False),
    ],
)
def test_a_job_failed_by_itself_where_its_training_did_and_no_machine_ended_a_pod(pods: Any, own: bool) -> None:
    found = describe(PodEvidence(job=job(("Failed", "")), pods=pods), NOW + SAVED_S)
    assert (found.outcome, found.own_failure) == (LineOutcome.FAILED, own)


@pytest.mark.parametrize(
    ("pods", "own"),
    [
        ([pod("Failed", "worker", **ended("", 137))], True),
        ([pod("Failed", "worker", reason="Evicted", **ended("", 137))], False),
        ([pod("Failed", "worker", **ended("sshd: not found", 127))], False),
        ([pod("Pending", **waiting("InvalidImageName"))], False),
    ],
)
def test_a_job_that_we_ended_failed_by_itself_where_the_training_of_a_worker_did(pods: Any, own: bool) -> None:
    why = find_obstacle(PodEvidence(job=job(), pods=pods), NOW)
    assert describe(PodEvidence(job=job(suspended=why))).own_failure is own


def test_a_stop_by_us_or_a_person_is_no_failure_of_the_training_and_its_time_is() -> None:
    assert describe(PodEvidence(job=None, was_made=True)).own_failure is not True
    assert describe(PodEvidence(job=job(suspended="Stopped: by us"))).own_failure is False
    late = PodEvidence(job=job(("Failed", "DeadlineExceeded")), pods=[pod("Failed")])
    assert describe(late).own_failure is True


def test_a_failed_job_waits_for_pods_that_still_cost() -> None:
    evidence = PodEvidence(job=job(("Failed", "")), pods=[pod("Failed"), pod("Running", "worker")])
    assert not describe(evidence).ended


@pytest.mark.parametrize(
    ("why", "outcome"), [("Stopped: by us", LineOutcome.STOPPED), ("Failed: a worker", LineOutcome.FAILED)]
)
def test_a_job_that_we_ended_is_over_when_no_pod_is_left(why: str, outcome: LineOutcome) -> None:
    assert describe(PodEvidence(job=job(suspended=why), pods=[pod("Running")])).status == "Stopping"
    assert describe(PodEvidence(job=job(suspended=why))).outcome is outcome


def test_a_job_that_is_marked_as_ended_and_resumed_by_a_person_runs() -> None:
    made = job(suspended="Stopped: by us")
    made["spec"]["runPolicy"]["suspend"] = False
    assert describe(PodEvidence(job=made)).status == "InProgress"


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("Failed", "worker", **ended("sshd: not found", 127))], "the image has no sshd"),
        ([pod("Pending", **waiting("InvalidImageName"))], "InvalidImageName"),
        ([pod("Pending", **waiting("CreateContainerConfigError"))], "CreateContainerConfigError"),
    ],
)
def test_what_does_not_pass_by_itself_ends_the_job(pods: list[dict[str, Any]], words: str) -> None:
    assert words in find_obstacle(PodEvidence(job=job(), pods=pods), NOW)


@pytest.mark.parametrize(
    "pods",
    [
        [pod("Running"), pod("Running", "worker")],
        [pod("Failed")],  # the launcher's end is the operator's to judge
        [pod("Pending")],
        [pod("Succeeded", "worker")],
        [pod("Pending", **waiting("ContainerCreating"))],
        [pod("Pending", **waiting("ImagePullBackOff"))],  # since when, nothing says
        [],
    ],
)
def test_what_may_pass_ends_nothing(pods: list[dict[str, Any]]) -> None:
    assert find_obstacle(PodEvidence(job=job(), pods=pods), NOW) == ""


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
@pytest.mark.parametrize(
    ("placed_s", "brought_s", "words"),
    [
        (5, None, ""),
        (PULLED_S - 1, None, ""),
        (PULLED_S + 1, None, "p-launcher, container t, cannot start: "),
        (PULLED_S + 1, 5, ""),
        (PLACED_S, PULLED_S + 1, "p-launcher, container t, cannot start: "),
    ],
)
def test_an_image_that_cannot_be_pulled_is_tried_for_some_minutes_from_when_it_could_be(
    reason: str, placed_s: float, brought_s: float | None, words: str
) -> None:
    """A registry that throttles says so for a while, and the machine is paid for."""
    times = {"PodScheduled": placed_s} | ({} if brought_s is None else {"Initialized": brought_s})
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": write_time(NOW - age)} for kind, age in times.items()
    ]
    made = pod("Pending", **waiting(reason, "toomanyrequests: Rate exceeded"), conditions=conditions)
    for seen in (made, shrink_pod(made)):
        found = find_obstacle(PodEvidence(job=job(age_s=PLACED_S - 1), pods=[seen]), NOW)
        assert found == (f"Failed: {words}{reason} toomanyrequests: Rate exceeded" if words else "")


def test_machines_are_waited_for_an_hour() -> None:
    waiting = PodEvidence(job=job(age_s=PLACED_S + 1), pods=[pod("Pending", "worker")])
    assert "no machine for p-worker" in find_obstacle(waiting, NOW)
    placed = PodEvidence(job=job(age_s=PLACED_S + 1), pods=[pod("Running"), pod("Running", "worker")])
    assert find_obstacle(placed, NOW) == ""


EVICTED = ("Failed", "MPIJobEvicted")


def test_a_job_whose_worker_was_evicted_lives_and_is_ended_by_us() -> None:
    made = job(("Running", ""), EVICTED)
    evicted = pod("Failed", "worker", reason="Evicted", message="The node was low on resource: memory")
    assert is_live(made)
    assert "low on resource: memory" in find_obstacle(PodEvidence(job=made, pods=[evicted, pod("Running")]), NOW)
    assert find_obstacle(PodEvidence(job=made, pods=[pod("Running")]), NOW) == "Failed: MPIJobEvicted"
    assert describe(PodEvidence(job=made, pods=[pod("Running")]), NOW + 10 * SAVED_S).outcome is None


def test_a_job_whose_worker_was_evicted_is_over_once_its_pods_are_gone() -> None:
    made = job(("Running", ""), EVICTED, suspended="Failed: evicted")
    assert not describe(PodEvidence(job=made, pods=[pod("Running")])).ended
    assert describe(PodEvidence(job=made)).outcome is LineOutcome.FAILED


def test_a_worker_that_the_operator_made_again_ends_the_job_that_does_not_know_it() -> None:
    again = pod("Running", "worker")
    again["metadata"]["creationTimestamp"] = write_time(NOW + 1)
    assert "p-worker was lost" in find_obstacle(
        PodEvidence(job=job(("Running", "")), pods=[pod("Running"), again]), NOW
    )
    assert find_obstacle(PodEvidence(job=job(), pods=[pod("Running"), again]), NOW) == ""


OLD = PLACED_S + 1


def test_a_job_of_which_only_a_part_finds_room_is_given_up_after_an_hour() -> None:
    partly = [pod("Running")]
    assert "the cluster has 1 pods of 2" in find_obstacle(PodEvidence(job=job(age_s=OLD), pods=partly), NOW)
    assert find_obstacle(PodEvidence(job=job(age_s=PLACED_S - 1), pods=partly), NOW) == ""
    assert find_obstacle(PodEvidence(job=job(("Running", ""), age_s=OLD), pods=partly), NOW) == ""


@pytest.mark.parametrize(
    ("phase", "ready_s", "words"),
    [("Pending", None, ""), ("Running", 60, ""), ("Running", LAUNCHED_S + 1, "the cluster has 1 pods of 2")],
)
def test_a_launcher_is_missing_only_when_its_workers_have_long_been_ready(
    phase: str, ready_s: float | None, words: str
) -> None:
    worker = pod(phase, "worker")
    worker["spec"] = {"nodeName": "machine"}
    if ready_s is not None:
        at = write_time(NOW - ready_s)
        worker["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": at}]
    found = find_obstacle(PodEvidence(job=job(age_s=OLD), pods=[worker]), NOW)
    assert words in found if words else found == ""


def test_a_job_that_is_over_or_ended_has_no_obstacle() -> None:
    broken = [pod("Failed", "worker")]
    for made in (job(("Failed", "")), job(("Succeeded", "")), job(suspended="Stopped: by us")):
        assert find_obstacle(PodEvidence(job=made, pods=broken), NOW) == ""


def test_a_program_that_only_the_words_of_a_training_name_is_not_missing() -> None:
    said = describe_pods([pod("Failed", **ended("mpirun has exited due to process rank 0"))])
    assert "the image has no" not in said
    assert "mpirun has exited" in said


def test_a_training_that_failed_speaks_before_the_keeper_that_was_killed() -> None:
    killed = {"name": "keeper", "state": {"terminated": {"exitCode": 137}}}
    failed = pod("Failed", **ended("ValueError: no such column"), initContainerStatuses=[killed])
    assert describe_pods([failed]).endswith("container training, exit code 1: ValueError: no such column")


def test_a_job_without_our_annotations_is_a_strangers() -> None:
    made = job()
    made["metadata"]["annotations"] = {"trainyard/deployment": "other"}
    assert find_stranger(LINE, grid_of(1, (HOME,)), made) == "annotations: trainyard:deployment=other"


@pytest.mark.parametrize("body", [None, b"", b"[1]", b"{}", b'{"ended_at": "x"}', b'{"ended_at": true}', b"\xff"])
def test_a_note_that_is_none_is_none(body: bytes | None) -> None:
    assert read_result(body, "seal") is None


@pytest.mark.parametrize("seal", ["", "another"])
def test_a_note_without_the_keepers_own_seal_is_not_believed(seal: str) -> None:
    note = describe_result(PodResult(ended_at=1.0, model=True, metrics={"loss": 0.5}), "seal")
    assert read_result(json.dumps(note).encode(), "seal") is not None
    assert read_result(json.dumps(note).encode(), seal) is None
    changes: list[dict[str, Any]] = [{"metrics": {"loss": 0.0}}, {PROOF: None}, {PROOF: "\ud800"}, {"more": 1}]
    for change in changes:
        assert read_result(json.dumps(note | change).encode(), "seal") is None


def test_a_job_by_hand_has_no_seal_and_its_note_is_not_believed() -> None:
    note = describe_result(PodResult(ended_at=1.0), read_seal(LINE.request["job"]))
    assert read_result(json.dumps(note).encode(), read_seal(LINE.request["job"])) is None


def test_of_a_note_that_code_may_have_written_only_numbers_are_believed() -> None:
    many = ",".join(f'"m{number}": {number}' for number in range(2 * MOST_METRICS))
    body = f'{{"ended_at": 1, "model": "yes", "metrics": {{"a": "1", "b": NaN, "c": 1e999, "d": true, {many}}}, "problem": 5}}'
    document = json.loads(body)
    document[PROOF] = hmac.new(b"seal", json.dumps(document, sort_keys=True).encode(), "sha256").hexdigest()
    found = read_result(json.dumps(document).encode(), "seal")
    assert found is not None
    assert (found.model, found.problem) == (False, "5")
    assert len(found.metrics) == MOST_METRICS
    assert not {"a", "b", "c", "d"} & found.metrics.keys()
