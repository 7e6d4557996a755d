"""The cluster of an attempt, in the words of those who start processes on it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from contract.cluster import Cluster
from contract.codec import decode, encode
from contract.jobs import Job, Launcher
from tests.builders import JOB

THREE = Cluster(addresses=("10.0.0.4", "10.0.0.9", "10.0.0.5"), rank=1, port=29500, processes=2)


def test_tf_config_is_what_tensorflow_documents() -> None:
    """https://www.tensorflow.org/guide/distributed_training: `cluster` maps a task's type to addresses, `task` has `type` and `index`."""
    said = json.loads(THREE.build_variables()["TF_CONFIG"])
    assert said == {
        "cluster": {"worker": ["10.0.0.4:29500", "10.0.0.9:29500", "10.0.0.5:29500"]},
        "task": {"type": "worker", "index": 1},
    }


def test_cluster_spec_is_what_tf_train_cluster_spec_takes() -> None:
    said = THREE.build_variables()
    assert json.loads(said["CLUSTER_SPEC"]) == json.loads(said["TF_CONFIG"])["cluster"]


def test_every_node_has_the_same_cluster_and_a_place_of_its_own() -> None:
    each = [replace(THREE, rank=rank).build_variables() for rank in range(3)]
    assert len({one["CLUSTER_SPEC"] for one in each}) == 1
    assert [json.loads(one["TF_CONFIG"])["task"]["index"] for one in each] == [0, 1, 2]


def test_torchrun_meets_at_rank_0_and_restarts_nothing_itself() -> None:
    assert THREE.build_torchrun(["train.py", "--lr", "0.1"]) == [
        *("torchrun", "--nnodes", "3", "--node-rank", "1", "--nproc-per-node", "2", "--max-restarts", "0"),
        *("--master-addr", "10.0.0.4", "--master-port", "29500", "train.py", "--lr", "0.1"),
    ]


@pytest.mark.parametrize("command", [["python", "train.py"], ["./train"], ["python", "-m", "train"], ["train.sh"]])
def test_what_is_no_script_of_python_is_run_by_torchrun_as_it_stands(command: list[str]) -> None:
    words = THREE.build_torchrun(command)
    assert words[-len(command) - 1 :] == ["--no-python", *command]


def test_mpirun_starts_every_process_of_every_node() -> None:
    assert THREE.build_mpirun(["python", "train.py"]) == ["mpirun", "-np", "6", "python", "train.py"]


def test_both_forms_of_the_list_of_hosts_name_every_node_in_the_order_of_ranks() -> None:
    assert THREE.format_open_mpi_hosts() == "10.0.0.4 slots=2\n10.0.0.9 slots=2\n10.0.0.5 slots=2\n"
    assert THREE.format_hydra_hosts() == "10.0.0.4:2\n10.0.0.9:2\n10.0.0.5:2\n"


MACHINES = replace(JOB, gpus={"g5.12xlarge": 4}, neurons={"trn1.32xlarge": 16}, launcher=Launcher.TORCHRUN)


@pytest.mark.parametrize(
    ("kind", "asked", "processes"),
    [("g5.12xlarge", 0, 4), ("trn1.32xlarge", 0, 16), ("m7i.large", 0, 1), ("g5.12xlarge", 2, 2), ("m7i.large", 3, 3)],
)
def test_a_node_has_a_process_for_each_accelerator_unless_the_request_counts_them(
    kind: str, asked: int, processes: int
) -> None:
    assert replace(MACHINES, processes_per_node=asked).processes_of(kind) == processes


def test_a_job_of_a_later_version_with_an_unknown_launcher_can_be_read() -> None:
    document = json.loads(encode(MACHINES)) | {"launcher": "slurm"}
    assert decode(Job, json.dumps(document)).launcher is Launcher.NONE
