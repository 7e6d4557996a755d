"""Fields of a line that its backend would take and not heed: those that change what trains are refused, the others are warned of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.environments import LineCluster
from contract.errors import InvalidRequest
from grid_plan.columns import MPI, TORCHRUN
from tests.functions.grid_plan.account import DIGEST, Account, judging, plan
from tools.refusals.grids.yard import BUCKET, CONTAINERS, HOME, MANIFEST, execution

LINE = {"region": HOME, "image": "images:v1", "instance_type": "ml.g5.xlarge", "instance_count": 2}
COMMAND = ["python", "src/train.py"]
LAUNCHERS = pytest.mark.parametrize("launcher", [MPI, TORCHRUN])


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account with a cluster of Kubernetes."""
    with judging(monkeypatch, kubernetes=LineCluster(name="lab", most_nodes=4)) as made:
        yield made


def warned(there: Account, *lines: Any, **given: Any) -> list[str]:
    there.upload("".join(json.dumps(one) + "\n" for one in lines))
    return list(plan({"manifest": MANIFEST, **given}, execution(f"idle-{len(there.calls)}"))["warnings"])


def refused(there: Account, *lines: Any, **given: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as problem:
        warned(there, *lines, **given)
    return [one.removeprefix("- ") for one in str(problem.value).split("\n")[1:]]


@LAUNCHERS
@pytest.mark.parametrize("field", ["command", "entrypoint"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_distribution_that_a_command_replaces_is_refused_with_the_line_that_is_right(
    there: Account, launcher: str, field: str, count: int
) -> None:
    (reason,) = refused(there, LINE | {field: COMMAND, "distribution": launcher, "instance_count": count})
    assert reason == (
        f"line 1: distribution: {launcher} is read by AWS's toolkit, whose start entrypoint replaces, so every instance would run its "
        "command once, and alone; allowed: program src/train.py with hyperparameters as its arguments, in place of entrypoint, or none"
    )


@LAUNCHERS
def test_a_distribution_beside_the_arguments_of_an_image_is_refused(there: Account, launcher: str) -> None:
    (reason,) = refused(there, LINE | {"arguments": ["--lr", "1"], "distribution": launcher})
    assert f"distribution: {launcher} is read by AWS's toolkit, whose start arguments replaces" in reason
    assert "allowed: program (a file of the code or of the image)" in reason


@LAUNCHERS
@pytest.mark.parametrize("command", [["bash", "-c", "python t.py"], ["./run"], ["python", "-m", "pkg.train"]])
def test_a_command_of_which_no_program_is_known_is_refused_all_the_same(
    there: Account, launcher: str, command: list[str]
) -> None:
    (reason,) = refused(there, LINE | {"entrypoint": command, "distribution": launcher})
    assert "every instance would run its command once, and alone" in reason


def test_a_distribution_of_the_defaults_is_refused_beside_the_command_of_a_line(there: Account) -> None:
    defaults = LINE | {"distribution": TORCHRUN, "program": "train.py"}
    reasons = refused(
        there, {}, {"entrypoint": COMMAND}, {"entrypoint": COMMAND, "backend": "kubernetes"}, defaults=defaults
    )
    assert [one.partition(": ")[0] for one in reasons] == ["line 2"]


def test_a_command_of_the_defaults_is_refused_beside_the_distribution_of_a_line(there: Account) -> None:
    reasons = refused(there, {"distribution": MPI}, {}, defaults=LINE | {"entrypoint": COMMAND}, allow_duplicates=True)
    assert [one.partition(": ")[0] for one in reasons] == ["line 1"]


@LAUNCHERS
def test_the_command_of_code_beside_an_image_is_refused_too(there: Account, launcher: str) -> None:
    line = LINE | {"code": f"s3://{BUCKET}/uploads/c.tar.gz", "entrypoint": COMMAND, "distribution": launcher}
    assert any("distribution: " in one for one in refused(there, line))


@LAUNCHERS
@pytest.mark.parametrize("backend", ["ec2", "kubernetes"])
def test_where_the_command_is_what_is_launched_a_distribution_is_taken(
    there: Account, launcher: str, backend: str
) -> None:
    warned(there, LINE | {"entrypoint": COMMAND, "distribution": launcher, "backend": backend})


@LAUNCHERS
def test_beside_a_program_a_distribution_is_taken_and_an_image_of_ones_own_is_warned_of(
    there: Account, launcher: str
) -> None:
    line = LINE | {"program": "train.py", "distribution": launcher}
    (warning,) = warned(there, line)
    assert "where images:v1 does not have it, every instance trains alone" in warning
    there.ecr[HOME].repositories[CONTAINERS, "pytorch-training"] = {"2.8": DIGEST}
    assert warned(there, line | {"image": "pytorch-training:2.8"}) == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"processes_per_host": 2}, "processes_per_host: means nothing with the distribution none"),
        ({"mpi_options": "-x A"}, "mpi_options: means nothing with the distribution none"),
        (
            {"processes_per_host": 2, "distribution": "torchrun"},
            "processes_per_host: means nothing with the distribution torchrun",
        ),
        ({"max_wait_hours": 30}, "max_wait_hours: means nothing with the market on-demand"),
    ],
)
@pytest.mark.parametrize("start", [{"program": "train.py"}, {"entrypoint": COMMAND}, {}])
def test_a_field_without_what_reads_it_is_refused(there: Account, fields: Any, says: str, start: Any) -> None:
    assert any(f"line 1: {says}" in one for one in refused(there, LINE | start | fields))


@pytest.mark.parametrize("backend", ["sagemaker", "kubernetes"])
@pytest.mark.parametrize("start", [{"entrypoint": COMMAND}, {"arguments": ["--x"]}])
def test_hyperparameters_of_which_no_arguments_become_are_warned_of(there: Account, backend: str, start: Any) -> None:
    line = LINE | {"backend": backend, "instance_count": 1} | start
    (warning,) = [one for one in warned(there, line | {"hyperparameters": {"lr": 0.1}}) if "hyperparameters" in one]
    assert "/opt/ml/input/config/hyperparameters.json" in warning
    assert warned(there, line) == []


def test_hyperparameters_that_become_arguments_are_no_warning(there: Account) -> None:
    for fields in (
        {"program": "t.py"},
        {"program": "t.py", "backend": "kubernetes"},
        {"entrypoint": COMMAND, "backend": "ec2"},
        {},
    ):
        assert warned(there, LINE | {"instance_count": 1, "hyperparameters": {"lr": 0.1}} | fields) == []


@pytest.mark.parametrize("fields", [{"channel": "train"}, {"mode": "Pipe"}, {"channel": "train", "mode": "FastFile"}])
def test_what_says_how_a_channel_brings_data_is_warned_of_on_a_job(there: Account, fields: dict[str, str]) -> None:
    (warning,) = warned(there, LINE | fields | {"backend": "ec2"})
    assert f"line 1: {next(iter(fields))}: says how a channel brings data, and a job has no channels" in warning


def test_a_channel_without_data_is_warned_of(there: Account) -> None:
    (warning,) = warned(there, LINE | {"channel": "train"})
    assert warning == "line 1: channel: train would be the channel of data, and the line has no data"


def test_tags_of_a_line_on_kubernetes_are_warned_of_and_those_of_the_settings_are_not(there: Account) -> None:
    line = LINE | {"backend": "kubernetes", "program": "t.py"}
    assert warned(there, line) == []
    (warning,) = warned(there, line | {"tags": {"team": "vision"}})
    assert "tags.team: no machine and no pod of Kubernetes gets tags of a line" in warning


def test_the_type_of_a_channels_content_is_refused_on_kubernetes(there: Account) -> None:
    channels = {"val": {"data": "s3://data-eu/train/", "content_type": "text/csv"}}
    (reason,) = refused(there, LINE | {"backend": "kubernetes", "program": "t.py", "channels": channels})
    assert reason.startswith("line 1: channels.val.content_type: means nothing with the backend kubernetes")
