"""What each function is given: every variable leads to the resource that its name says."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any

import pytest

from contract import names
from contract.timing import Timing
from stacks.grid_settings import GridSettings
from stacks.parts.own_images import child_tag
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import every, plain
from tools.configurations import EVERYTHING
from tools.synthesis import CONTEXT, Synthesised

PREFIX = "TRAINYARD_"
ACCOUNT, HOME = "111122223333", "eu-central-1"
LIBRARIES = "763104351884"
"""Account of AWS's Deep Learning Containers."""
SETTINGS = Settings.parse(CONTEXT[BLOCK] | EVERYTHING)
MACHINES = f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:"
TRAIN, GRID, SEARCH = (f"{MACHINES}trainyard-{one}" for one in ("train", "grid", "search"))
BUCKETS = {"<trainyard-foundation:ExportsOutputRefHome>", f"trainyard-home-{ACCOUNT}-{HOME}"}
"""The home bucket, by reference and by name."""
GRIDS = ("planner", "grid_collect", "grid_cleanup")
SEARCHES = ("search", "search_cleanup")
SAME: dict[str, Any] = {
    "ACCOUNT": ACCOUNT,
    "BASE_ACCOUNT": LIBRARIES,
    "BASE_ACCOUNTS": {"": LIBRARIES},
    "CATALOGUE": {
        "cluster": "<trainyard-catalogue:ExportsOutputFnGetAttDatabaseClusterDBClusterArn>",
        "secret": "<trainyard-catalogue:ExportsOutputRefDatabaseReader>",
    },
    "CHILD_IMAGE": child_tag(GridSettings().child_base),
    "CLUSTER_FUNCTION": "trainyard-cluster",
    "COPY_ACCOUNTS": [],
    "DATA_BUCKETS": [],
    "DEFAULTS": {"image": "", "instance_type": ""},
    "DEPLOYMENT": "trainyard",
    "GIT_HOSTS": {"github.com": "", "gitlab.com": ""},
    "GRID_MACHINE": GRID,
    "HOME_REGION": HOME,
    "IMAGES": SETTINGS.images,
    "IMAGE_OWNERS": [],
    "INSTANCE_PROFILE": "<trainyard-foundation:ExportsOutputFnGetAttNodeProfileArn>",
    "JOB_ROLE": f"arn:aws:iam::{ACCOUNT}:role/trainyard-job-{HOME}",
    "JOB_ROLES": [],
    "KEEP_DATA": True,
    "KUBERNETES": {"most_nodes": 8, "name": "lab", "port": 29500},
    "LOG_GROUP": names.log_group("trainyard"),
    "MACHINE_IMAGES": {},
    "MASTER_PORT": 29500,
    "NODE_ROLE": "<trainyard-foundation:ExportsOutputFnGetAttNodeRoleRoleId>",
    "REGION": HOME,
    "REGIONS": [HOME],
    "REPOSITORIES": ["images"],
    "SEARCH_MACHINE": SEARCH,
    "SUFFIX": "<AWS::URLSuffix>",
    "TABLE": "<trainyard-foundation:ExportsOutputRefState>",
    "TOPIC": "<trainyard-foundation:ExportsOutputRefNotifications>",
    "TRAINING": [HOME],
    "TRAINING_ROLES": {},
    "TRAIN_MACHINE": TRAIN,
}
"""Variable to its value in every function that has it."""
OWN: dict[tuple[str, str], Any] = {
    **{(one, "MACHINE"): TRAIN for one in ("keeper", "page_writer", "reaper", "drain")},
    **{(one, "MACHINE"): GRID for one in (*GRIDS, *SEARCHES)},
    ("cleanup", "MACHINE"): "<TrainMachine>",
    **{(one, "QUEUE"): "trainyard-grid" for one in (*GRIDS, *SEARCHES)},
    ("cleanup", "QUEUE"): "<CleanupQueue>",
    **{(one, "TRAINING_ROLE"): "<TrainingRole.Arn>" for one in GRIDS},
    **{(one, "TRAINING_ROLE"): f"arn:aws:iam::{ACCOUNT}:role/trainyard-training-{HOME}" for one in SEARCHES},
    ("branch_watch", "MESSAGES"): "<StartQueue>",
    ("grid_cleanup", "MESSAGES"): "<GridQueue>",
    ("keeper", "MESSAGES"): "<KeeperEnds>",
    ("page_writer", "MESSAGES"): "<PageQueue>",
    ("search_cleanup", "MESSAGES"): "<SearchQueue>",
    ("starter", "MESSAGES"): "<StartQueue>",
    ("starter", "LETTERS"): "<StartLetters>",
    ("starter", "MACHINES"): {"grid": GRID, "job": TRAIN, "search": SEARCH},
    ("starter", "AGAIN_S"): 600,
    ("page_writer", "AGAIN_S"): 60,
    ("admission", "ATTENDANT"): "<Attendant>",
    ("branch_watch", "BUILD_MACHINE"): f"{MACHINES}trainyard-build",
    ("own_images", "BUILD_MACHINE"): f"{MACHINES}trainyard-platform-build",
    ("catalogue_schema", "CLUSTER"): "<DatabaseCluster.DBClusterArn>",
    ("catalogue_schema", "KEEPER_SECRET"): "<DatabaseKeeper>",
    ("catalogue_schema", "READER_SECRET"): "<DatabaseReader>",
    ("cluster_api", "CLUSTER"): "lab",
    ("keeper", "ACCESS"): {"cluster": "<DatabaseCluster.DBClusterArn>", "secret": "<DatabaseKeeper>"},
    ("keeper", "CLUSTER_ID"): "<DatabaseCluster.DBClusterResourceId>",
}
"""Function and variable to its value where functions differ."""
ELSEWHERE = {"AGENT", "AGENT_BUCKET", "AGENT_KEY", "BUCKET", "CHECKPOINTS", "JOBS", "RULES", "TIMING"}
ELSEWHERE |= {"JOB_LIMITS", "LIMITS", "MAX_HOURS", "MAX_LEAST", "MAX_SHARE", "REPORT_ONLY"}
"""Variables that another test of this folder compares."""


def bare(text: str) -> Any:
    """A value without the hashes of logical ids; JSON is parsed."""
    text = re.sub(r"<[\w:.-]+>", lambda found: re.sub(r"(?<=[a-z])(?:[0-9A-F]{8})+", "", found[0]), text)
    return json.loads(text) if text[:1] in {"[", "{"} or re.fullmatch(r"[\d.]{1,6}|true|false", text) else text


@pytest.fixture(scope="module")
def given(complete: Synthesised) -> dict[tuple[str, str], Any]:
    """Function's package and variable to its value."""
    return {
        (one["Handler"].partition(".")[0], name.removeprefix(PREFIX)): bare(plain(value))
        for _, one in every(complete, "AWS::Lambda::Function")
        for name, value in one["Environment"]["Variables"].items()
    }


def test_every_variable_leads_to_what_its_name_says(given: dict[tuple[str, str], Any]) -> None:
    compared = {key: value for key, value in given.items() if key[1] not in ELSEWHERE}
    wanted = {key: OWN[key] if key in OWN else SAME.get(key[1]) for key in compared}
    assert {key: (value, wanted[key]) for key, value in compared.items() if value != wanted[key]} == {}
    assert OWN.keys() <= given.keys()


def test_every_function_that_has_a_bucket_has_that_of_home(given: dict[tuple[str, str], Any]) -> None:
    found = {key: value for key, value in given.items() if key[1] == "BUCKET"}
    assert found
    assert {key: value for key, value in found.items() if value not in BUCKETS} == {}


def test_every_function_waits_as_long_as_the_timing_says(given: dict[tuple[str, str], Any]) -> None:
    usual = asdict(Timing())
    timings = {key[0]: value for key, value in given.items() if key[1] == "TIMING"}
    assert len(timings) > 10
    for package, timing in timings.items():
        assert timing.items() <= usual.items(), package


def test_limits_are_those_of_the_settings(given: dict[tuple[str, str], Any]) -> None:
    jobs, lines = (json.loads(json.dumps(asdict(one))) for one in (SETTINGS.limits, SETTINGS.grid.limits))
    for (package, variable), value in given.items():
        if variable == "JOB_LIMITS" or (package, variable) == ("admission", "LIMITS"):
            assert value.items() <= jobs.items(), package
        elif variable == "LIMITS":
            assert value.items() <= lines.items(), package
