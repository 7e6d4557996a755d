"""The table of names: it has every name that the code sets, on both sides, and the page has the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from agent import variables
from agent.aws import Aws
from agent.identity import NodeIdentity
from agent.workspace import Folders
from contract import containers, training
from grid_plan import code
from localaws.containers.images import Image
from localaws.services.sagemaker_container import Host, lay_out, started
from tests.builders import JOB
from tools.container_names import NAMES
from tools.containers import page

HERE = {name for one in NAMES for name in one.here}
THERE = {name for one in NAMES for name in (*one.platform, *one.toolkit)}
STAND_IN = {
    "PATH",
    "HOME",
    "LANG",
    "PYTHONUNBUFFERED",
    "PYTHONPATH",
    "OMP_NUM_THREADS",
    "GLOO_SOCKET_IFNAME",
    "SAGEMAKER_BASE_DIR",
}
"""What the local SageMaker sets because it has no root, no cores and no network for each container."""
REQUEST = {
    "TrainingJobName": "t",
    "AlgorithmSpecification": {"TrainingImage": "x", "TrainingInputMode": "File"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "HyperParameters": {"epochs": "3", **code.toolkit("t.py", packed=False)},
    "InputDataConfig": [{"ChannelName": one, "DataSource": {"S3DataSource": {}}} for one in ("training", code.CHANNEL)],
}


def test_every_folder_of_a_jobs_container_is_there() -> None:
    folders = {
        value for name, value in vars(containers).items() if name.isupper() and str(value).startswith("/opt/ml/")
    }
    assert len(folders) > 5
    assert folders - HERE == set()


def test_every_variable_of_the_contract_is_there() -> None:
    constants = [value for name, value in vars(training).items() if name.isupper() and isinstance(value, str)]
    names = {value for value in constants if value.isupper()}  # others are names of files
    assert training.PROGRESS_FILE in names
    assert names - HERE == set()
    assert set() == training.RESERVED - HERE


def test_every_variable_that_the_agent_sets_is_there() -> None:
    node = NodeIdentity(
        deployment="yard", job=JOB.id, attempt=1, rank=0, instance="i-0", region=JOB.home_region, deadline=0,
        addresses=tuple(f"10.0.0.{rank}" for rank in range(JOB.nodes)),
    )  # fmt: skip
    folders = Folders(checkpoints="/c", artifacts="/a", progress_file="/p", role="/r", launcher="/l")
    alone = replace(JOB, environment={}, secrets={})
    names = variables.for_training(alone, node, folders, cast(Aws, None)).keys()
    assert names - HERE == set()
    assert len(names) > 5


def test_every_name_that_sagemaker_sets_here_is_there(tmp_path: Path) -> None:
    host = Host(name="algo-1", address="127.2.0.1", root=tmp_path / "root")
    (host.base / "code").mkdir(parents=True)
    (host.base / "code/t.py").touch()
    lay_out(host, [host], REQUEST)
    image = Image(tmp_path, base="aws")
    how = started(image, host, [host], REQUEST, ami=tmp_path, port=7777)
    ours = {"SM_CHANNEL_TRAINING": "SM_CHANNEL_<NAME>", "SM_HP_EPOCHS": "SM_HP_<NAME>"}
    found = {ours.get(name, name) for name in how.variables} - STAND_IN
    assert found - THERE == set()
    files = {f"/opt/ml/{one.relative_to(host.base)}" for one in (host.base / "input/config").iterdir()}
    assert files - THERE == set()
    assert {f"/opt/ml/{one}" for one in ("checkpoints", "model", "code", "output/data")} - THERE == set()


def test_the_page_has_every_name_of_the_table() -> None:
    text = page()
    assert [name for name in sorted(HERE | THERE) if f"`{name}`" not in text] == []


def test_no_name_of_one_side_stands_on_the_other_alone() -> None:
    assert {name for name in HERE if name.startswith("SM_")} == set()
    assert not {training.CHECKPOINT_DIR, training.PROGRESS_FILE, training.JOB_ID} & THERE
