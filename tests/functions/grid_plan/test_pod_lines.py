"""Lines on Kubernetes: what Plan makes of them, and what it refuses that SageMaker would take."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import names, tags
from contract.environments import LONGEST_TRAINING_H, LineCluster
from contract.grid import Backend, Line, mpi_job_name
from contract.mpi_job import GPU, GRACE_S, INSTANCE_TYPE, SAVED_S, SAY, seal_job
from contract.mpi_job_facts import is_marked_pod
from contract.pod_network import close_job
from grid_plan.pod_lines import MOST_HOURS, MOST_VOLUME_GB
from localaws.services.kubernetes_model import build_pods
from localaws.services.kubernetes_schema import list_policy_problems, list_problems
from localaws.testing.waiting import HANG_S
from stacks.parts.pod_cluster import VERSION
from tests.archives import tarred
from tests.functions.grid_plan.account import DIGEST, ENVIRONMENT, Account
from tests.functions.grid_plan.backends import ANY_TYPE, LINE, cluster_account, planned, refused
from tools.refusals.grids.yard import ACCOUNT, BUCKET, HOME, bytes_bucket, execution


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """The account with a cluster, and types of EC2 in the home region."""
    with cluster_account(monkeypatch) as made:
        yield made


def pod_of(line: Line, role: str = "Launcher") -> dict[str, Any]:
    found: dict[str, Any] = line.request["job"]["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return found


def training_of(line: Line, role: str = "Launcher") -> dict[str, Any]:
    (found,) = pod_of(line, role)["containers"]
    return dict(found)


def test_a_line_becomes_an_mpi_job_that_a_cluster_takes(there: Account) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2, "distribution": "mpi"})
    run = execution()
    assert (line.backend, line.region) == (Backend.KUBERNETES, HOME)
    assert line.training == mpi_job_name(run["arn"], run["started_at"], 0)
    assert list_problems(line.request["job"]) == []
    assert is_marked_pod(line, there.grid())
    assert line.request["job"]["metadata"]["annotations"]["trainyard/execution"] == run["arn"]
    assert line.request["function"] == names.cluster_function("yard")


@pytest.mark.parametrize("changes", [{"distribution": "mpi"}, {"distribution": "torchrun"}, {}])
def test_what_a_child_sends_of_a_line_and_the_pods_of_it_are_what_kubernetes_knows(
    there: Account, changes: dict[str, str]
) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    (line,) = planned(there, LINE | {"instance_count": 2} | changes)
    job = seal_job(line.request["job"], "0" * 64)
    policy = close_job(job, "00000000-0000-4000-8000-000000000001")
    assert (list_problems(job), list_policy_problems(policy)) == ([], [])
    pods = list(build_pods(job))
    assert len(pods) == 2
    for one in [*pods, policy]:
        kubernetes_validate.validate(one, VERSION, strict=True)


def test_a_job_is_tried_once_until_its_time_is_up_with_a_launcher_that_is_a_node_and_leaves_no_pod(
    there: Account,
) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2, "distribution": "mpi", "max_hours": 3})
    spec = dict(line.request["job"]["spec"])
    replicas = spec.pop("mpiReplicaSpecs")
    assert spec == {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": True,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiImplementation": "OpenMPI",
        "runPolicy": {
            "cleanPodPolicy": "All",
            "activeDeadlineSeconds": 3 * 3600,
            "backoffLimit": 0,
            "suspend": False,
        },
    }
    assert {role: (one["replicas"], one["restartPolicy"]) for role, one in replicas.items()} == {
        "Launcher": (1, "Never"),
        "Worker": (1, "Never"),
    }


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_a_pod_has_no_token_of_the_cluster_and_its_machine_is_not_replaced_by_a_better_one(
    there: Account, role: str
) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2})
    template = line.request["job"]["spec"]["mpiReplicaSpecs"][role]["template"]
    assert template["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    pod = template["spec"]
    assert pod["serviceAccountName"] == "training"
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


def test_the_image_is_named_by_its_digest(there: Account) -> None:
    (line,) = planned(there, LINE)
    assert training_of(line)["image"].endswith(f"/yard/images@{DIGEST}")


def test_a_pod_has_a_machine_of_the_lines_type_for_itself_with_all_its_gpus(there: Account) -> None:
    (line,) = planned(there, LINE)
    assert pod_of(line)["nodeSelector"] == {INSTANCE_TYPE: "g5.xlarge", "trainyard/deployment": "yard"}
    assert training_of(line)["resources"]["limits"] == {GPU: "1"}
    assert pod_of(line)["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


def test_the_price_is_that_of_ec2_and_of_machines_that_eks_manages(there: Account) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2, "max_hours": 3})
    assert line.hourly_usd == pytest.approx(2 * 1.0 * 1.12)
    assert there.grid().cost_at_most_usd == pytest.approx(6.72)


def test_mpirun_stands_before_the_command_and_sshd_waits_on_the_workers(there: Account) -> None:
    fields = {"instance_count": 3, "distribution": "mpi", "processes_per_host": 2, "mpi_options": "-x NCCL_DEBUG=INFO"}
    (line,) = planned(there, LINE | fields)
    words = training_of(line)["command"]
    assert words[:2] == ["/bin/sh", "-c"]
    assert words[4:7] == ["mpirun", "-np", "6"]
    assert words[-4:] == ["-x", "NCCL_DEBUG=INFO", "python", "t.py"]
    assert "/usr/sbin/sshd" in training_of(line, "Worker")["command"][-1]
    spec = line.request["job"]["spec"]
    assert (spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (2, 2)


def test_rank_0_of_a_line_listens_on_the_port_of_the_settings(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LineCluster(name="lab", most_nodes=4, port=23456)
    for name, value in replace(ENVIRONMENT, limits=ANY_TYPE, kubernetes=cluster).write().items():
        monkeypatch.setenv(name, value)
    (line,) = planned(there, LINE | {"instance_count": 2, "distribution": "torchrun", "entrypoint": ["t.py"]})
    assert {one["name"]: one.get("value") for one in training_of(line)["env"]}["MASTER_PORT"] == "23456"
    words = training_of(line)["command"]
    assert words[words.index("--master-port") + 1] == "23456"


def test_torchrun_starts_on_every_pod_with_its_own_rank(there: Account) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2, "distribution": "torchrun", "entrypoint": ["t.py"]})
    for role in ("Launcher", "Worker"):
        words = training_of(line, role)["command"]
        place = words.index("torchrun")
        assert words[place : place + 5] == ["torchrun", "--nnodes", "2", "--node-rank", "$(NODE_RANK)"]


def test_a_program_gets_the_hyperparameters_as_arguments_as_in_sagemaker(there: Account) -> None:
    line = {"backend": "kubernetes", "program": "train.py", "hyperparameters": {"lr": 0.1, "e": 3}}
    (found,) = planned(there, line)
    assert training_of(found)["command"][-6:] == ["python", "train.py", "-e", "3", "--lr", "0.1"]
    assert training_of(found)["workingDir"] == "/opt/ml/code"


@pytest.mark.parametrize("text", ["$(HOME)", "a$$b", "^loss=(.*)$$", "$$(NODE_RANK)", "$", "$$$$"])
def test_words_that_kubernetes_would_expand_arrive_unchanged(there: Account, text: str) -> None:
    (line,) = planned(there, LINE | {"arguments": [text], "environment": {"A": text}})
    (value,) = (one["value"] for one in training_of(line)["env"] if one["name"] == "A")
    for sent in (training_of(line)["command"][-1], value):
        assert re.sub(r"\$\$|\$\([^)]*\)", lambda one: "$" if one[0] == "$$" else "expanded", sent) == text


@pytest.mark.parametrize("distribution", ["torchrun", "mpi"])
def test_a_launcher_of_pods_starts_no_other_one(there: Account, distribution: str) -> None:
    (problem,) = refused(there, LINE | {"distribution": distribution, "entrypoint": ["accelerate", "launch", "t.py"]})
    left = '["t.py", ...]' if distribution == "torchrun" else '["python", "t.py", ...]'
    assert problem == (
        f"distribution: {distribution} starts the entrypoint on its own, and that runs accelerate launch, which starts processes too; "
        f'allowed: none, or "entrypoint": {left}'
    )


def test_pods_whose_own_launcher_leaves_each_alone_are_refused_with_the_line_that_joins_them(there: Account) -> None:
    alone = LINE | {"instance_count": 2, "entrypoint": ["python", "-m", "torch.distributed.run"], "arguments": ["t.py"]}
    (problem,) = refused(there, alone)
    assert problem == (
        "entrypoint: python -m torch.distributed.run would not join the 2 machines into one training: it names no number of nodes "
        '(--nnodes); allowed: "distribution": "torchrun" with "entrypoint": ["t.py", ...], or bash -c with torchrun --nnodes $NUM_NODES '
        "--node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT ..."
    )
    told = "torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR t.py"
    one = alone | {"instance_count": 1}
    assert len(planned(there, one, alone | {"entrypoint": ["sh", "-c", told], "arguments": ["x"]})) == 2


def test_only_mpirun_waits_for_its_workers(there: Account) -> None:
    two = LINE | {"instance_count": 2}
    lines = planned(there, *(two | {"distribution": one} for one in ("mpi", "torchrun", "none")))
    policies = [one.request["job"]["spec"]["launcherCreationPolicy"] for one in lines]
    assert policies == ["WaitForWorkersReady", "AtStartup", "AtStartup"]


def test_only_the_launchers_pod_has_time_to_save(there: Account) -> None:
    (line,) = planned(there, LINE | {"instance_count": 2})
    assert pod_of(line)["terminationGracePeriodSeconds"] >= GRACE_S + SAVED_S
    assert pod_of(line, "Worker")["terminationGracePeriodSeconds"] == GRACE_S


def say(folder: Path, script: str) -> subprocess.Popen[str]:
    """Runs a command as the launcher's pod does, with moments in the place of minutes."""
    said = SAY.replace("/opt/ml/output/said", str(folder / "said")).replace(f"later {GRACE_S}", "later 0.2")
    words = ["/bin/sh", "-c", said.replace("later 5", "later 0.2"), "training", "/bin/sh", "-c", script]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_a_command_that_does_not_hear_sigterm_is_killed_so_that_the_rest_of_the_grace_is_the_keepers(
    tmp_path: Path,
) -> None:
    with say(tmp_path, "trap '' TERM; echo ready; sleep 20") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "ready\n"
        command.terminate()
        assert command.wait(HANG_S) == 128 + signal.SIGKILL


def test_after_a_signal_no_command_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    early = tmp_path / "bin" / "mkfifo"
    early.write_text(f'#!/bin/sh\nkill -TERM $PPID; exec {shutil.which("mkfifo")} "$@"\n')
    early.chmod(0o755)
    monkeypatch.setenv("PATH", f"{early.parent}:{os.environ['PATH']}")
    with say(tmp_path, f"touch {tmp_path}/started") as command:
        assert command.wait(HANG_S) == 128 + signal.SIGTERM
    assert not (tmp_path / "started").exists()


def test_what_a_command_leaves_behind_does_not_hold_the_pod_up(tmp_path: Path) -> None:
    go, said = tmp_path / "go", tmp_path / "said"
    leaves = f"(while [ ! -e {go} ]; do sleep 0.1; done) &"
    script = f"{leaves} echo loss=1; until grep -qs loss {said}; do sleep 0.1; done; exit 3"
    try:
        with say(tmp_path, script) as command:
            assert command.wait(HANG_S) == 3
    finally:
        go.touch()
    assert said.read_text() == "loss=1\n"


def test_code_is_unpacked_on_every_pod(there: Account) -> None:
    there.s3.write(BUCKET, "uploads/code.tar.gz", tarred(("t.py", b"print(1)")))
    (line,) = planned(
        there, LINE | {"code": f"s3://{BUCKET}/uploads/code.tar.gz", "instance_count": 2, "distribution": "mpi"}
    )
    for role in ("Launcher", "Worker"):
        assert "/opt/ml/code" in training_of(line, role)["command"]


def test_one_node_has_no_worker(there: Account) -> None:
    (line,) = planned(there, LINE | {"distribution": "mpi"})
    assert line.request["job"]["spec"]["mpiReplicaSpecs"].keys() == {"Launcher"}


def test_an_image_without_a_command_runs_its_own_entry_point_as_sagemaker_would(there: Account) -> None:
    (line,) = planned(there, {"backend": "kubernetes"})
    assert "command" not in training_of(line)
    assert training_of(line)["args"] == ["train"]


def test_models_and_checkpoints_go_under_the_lines_own_prefix(there: Account) -> None:
    (line,) = planned(there, LINE)
    folder = f"s3://{bytes_bucket(HOME)}/grids/sweep-7/00000000/"
    assert line.request["notes"] == f"{folder}pods/"
    assert line.request["model"] == f"{folder}{line.training}/output/model.tar.gz"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"market": "spot"}, "market: spot means nothing with the backend kubernetes; allowed: on-demand"),
        ({"region": "us-east-1"}, f"region: us-east-1 has no cluster of Kubernetes; allowed: auto, or {HOME}"),
        (
            {"instance_count": 5},
            "instance_count: 5 is more than the nodes of the cluster; allowed: up to 4 (kubernetes.max_nodes",
        ),
        ({"kms_key": "alias/a"}, "kms_key: means nothing with the backend kubernetes; allowed: nothing"),
        ({"metrics": {"loss": "loss=("}}, "metrics.loss: loss=( is no regular expression: missing )"),
        ({"network_isolation": True}, "network_isolation: means nothing with the backend kubernetes; allowed: false"),
        ({"encrypt_traffic": True}, "encrypt_traffic: means nothing with the backend kubernetes; allowed: false"),
        (
            {"mode": "FastFile"},
            "mode: FastFile means nothing with the backend kubernetes, whose pods bring files; allowed: File",
        ),
        ({"instance_type": "ml.g5g.xlarge"}, "instance_type: ml.g5g.xlarge"),
        ({"instance_type": "ml.g5.48xlarge"}, f"instance_type: ml.g5.48xlarge is no type of EC2 in {HOME}"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_by_its_field(there: Account, fields: dict[str, Any], words: str) -> None:
    assert any(one.startswith(words) for one in refused(there, LINE | fields))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("roles", "roles: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out"),
        ("workbench", "workbench: means nothing in a line of a grid; allowed: nothing; a person starts each workbench"),
    ],
)
@pytest.mark.parametrize("backend", ["kubernetes", "sagemaker"])
def test_what_a_job_on_our_clusters_alone_has_is_refused_with_where_it_belongs(
    there: Account, backend: str, field: str, words: str
) -> None:
    given = {"roles": [{"name": "a", "nodes": 1, "command": ["x"]}], "workbench": {"idle_minutes": 60}}
    assert refused(there, LINE | {"backend": backend, field: given[field]}) == [words]


def test_the_disk_of_a_pod_is_reserved(there: Account) -> None:
    (line,) = planned(there, LINE | {"volume_gb": 50, "instance_type": "ml.m5.large"})
    assert training_of(line)["resources"] == {"requests": {"ephemeral-storage": "50Gi"}}
    assert list_problems(line.request["job"]) == []


MOST = LINE | {"volume_gb": MOST_VOLUME_GB, "max_hours": MOST_HOURS}


def run_in(patch: pytest.MonkeyPatch, cluster: str) -> None:
    """The deployment's lines run there, and those of SageMaker may take 28 days."""
    limits = replace(ENVIRONMENT.limits, max_hours=LONGEST_TRAINING_H)
    found = replace(ENVIRONMENT, kubernetes=LineCluster(name=cluster, most_nodes=4), limits=limits)
    for name, value in found.write().items():
        patch.setenv(name, value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (
            "volume_gb",
            61,
            "volume_gb: 61 is more than the machines of the deployment's own cluster have; allowed: up to 60",
        ),
        (
            "max_hours",
            478.5,
            "max_hours: 478.5 is more than the machines of the deployment's own cluster last; allowed: up to 478",
        ),
        (
            "max_hours",
            672,
            "max_hours: 672 is more than the machines of the deployment's own cluster last; allowed: up to 478",
        ),
    ],
)
def test_what_no_machine_of_the_own_cluster_has_is_refused(
    there: Account, monkeypatch: pytest.MonkeyPatch, field: str, value: float, words: str
) -> None:
    run_in(monkeypatch, names.eks_cluster(ENVIRONMENT.deployment))
    assert refused(there, MOST | {field: value}) == [words]


def test_what_the_machines_of_the_own_cluster_just_have_is_taken(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in(monkeypatch, names.eks_cluster(ENVIRONMENT.deployment))
    assert planned(there, MOST)


@pytest.fixture
def own(there: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The account where the deployment made the cluster."""
    cluster = LineCluster(name=names.eks_cluster(ENVIRONMENT.deployment), most_nodes=4)
    for name, value in replace(ENVIRONMENT, limits=ANY_TYPE, kubernetes=cluster).write().items():
        monkeypatch.setenv(name, value)
    return there


@pytest.mark.parametrize("kind", ["ml.p3.2xlarge", "ml.p3.16xlarge"])
def test_a_type_that_auto_mode_never_makes_is_refused_on_the_own_cluster(own: Account, kind: str) -> None:
    assert refused(own, LINE | {"instance_type": kind}) == [
        f"instance_type: {kind} is no type of which EKS's Auto Mode makes machines; allowed on the deployment's own cluster: none of "
        "the families g7, p2, p3"
    ]


@pytest.mark.parametrize("kind", ["ml.p3dn.24xlarge", "ml.g5.xlarge", "ml.m5.large"])
def test_a_type_that_auto_mode_makes_is_taken_on_the_own_cluster(own: Account, kind: str) -> None:
    (line,) = planned(own, LINE | {"instance_type": kind})
    assert pod_of(line)["nodeSelector"][INSTANCE_TYPE] == kind.removeprefix("ml.")


def test_another_clusters_owner_may_have_machines_that_auto_mode_never_makes(there: Account) -> None:
    (line,) = planned(there, LINE | {"instance_type": "ml.p3.2xlarge"})
    assert pod_of(line)["nodeSelector"][INSTANCE_TYPE] == "p3.2xlarge"


def test_machines_of_another_cluster_have_what_its_owner_gives_them(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in(monkeypatch, "lab")
    assert planned(there, MOST | {"volume_gb": MOST_VOLUME_GB + 1, "max_hours": LONGEST_TRAINING_H})


def test_a_launcher_without_a_command_is_refused(there: Account) -> None:
    (problem,) = refused(there, {"backend": "kubernetes", "distribution": "mpi"})
    assert problem.endswith("allowed: none, or program or entrypoint beside it")


def test_a_deployment_without_a_cluster_says_which_setting_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.write().items():
        monkeypatch.setenv(name, value)
    made = Account()
    with made.connected():
        (problem,) = refused(made, LINE)
    assert problem == (
        "backend: kubernetes needs a cluster, and the deployment has none; allowed: sagemaker or ec2, or kubernetes.cluster in cdk.json"
    )


def test_lines_of_other_backends_are_planned_as_before(there: Account) -> None:
    lines = planned(there, {"backend": "sagemaker"}, LINE)
    assert [one.backend for one in lines] == [Backend.SAGEMAKER, Backend.KUBERNETES]
    assert lines[0].request["AlgorithmSpecification"]["TrainingImage"].endswith("/yard/images:v1")
    assert ACCOUNT in lines[0].request["RoleArn"]


def test_a_tag_that_no_label_takes_is_an_annotation_alone(there: Account) -> None:
    (line,) = planned(there, LINE, owner="Ada Lovelace")
    metadata = line.request["job"]["metadata"]
    key = tags.OWNER.replace(":", "/")
    assert key in metadata["annotations"]
    assert key not in metadata["labels"]
