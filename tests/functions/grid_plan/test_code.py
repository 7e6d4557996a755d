"""Code beside the image of a line: which bytes its trainings get, where they lie, and how they come to run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aws.service_models import training_model
from contract import containers
from contract.errors import InvalidRequest
from contract.grid import CODES, GridPrefix
from grid_plan import code
from localaws.model import Refused
from tests.archives import packed, tarred
from tests.functions.grid_plan.account import INPUT, Account, account, line, plan, planned
from tools.refusals.grids.yard import BUCKET, CONTAINERS, bytes_bucket, execution

CODE = f"s3://{BUCKET}/uploads/code.tar.gz"
BODY = packed("train.py", "lib/a.py")
AWAY = {"region": "us-east-1", "data": "s3://data-us/train/"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with account(monkeypatch) as made:
        made.s3.write(BUCKET, "uploads/code.tar.gz", BODY)
        yield made


def codes(there: Account, region: str) -> dict[str, bytes]:
    return {
        key: version.body
        for key, version in there.s3.buckets[bytes_bucket(region)].live().items()
        if key.startswith(CODES)
    }


def test_a_program_is_what_awss_toolkit_reads(there: Account) -> None:
    (found,) = planned(there, line(code=CODE, program="train.py", hyperparameters={"epochs": 3}))
    assert training_model.problems(found.request) == []
    assert found.request["HyperParameters"] == {
        "epochs": "3",
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"/opt/ml/input/data/code/sourcedir.tar.gz"',
    }
    assert found.request["Environment"] == {"SAGEMAKER_PROGRAM": "train.py"}
    assert not {"ContainerEntrypoint", "ContainerArguments"} & found.request["AlgorithmSpecification"].keys()


@pytest.mark.parametrize("registry", ["", f"{CONTAINERS}.dkr.ecr.eu-west-1.amazonaws.com/"])
def test_a_container_of_awss_is_that_of_the_region_by_its_short_name_and_by_its_address_in_another(
    there: Account, registry: str
) -> None:
    there.ecr["us-east-1"].repositories[CONTAINERS, "pytorch-training"] = {"2.8": "sha256:" + "b" * 64}
    image = "pytorch-training:2.8"
    found = planned(there, line(image=registry + image) + line(image=registry + image, **AWAY))
    assert [one.request["AlgorithmSpecification"]["TrainingImage"] for one in found] == [
        f"{CONTAINERS}.dkr.ecr.{region}.amazonaws.com/{image}" for region in ("eu-central-1", "us-east-1")
    ]


def test_a_short_tag_of_awss_is_the_newest_container_for_sagemaker_that_it_begins(there: Account) -> None:
    tags = (
        "2.9.0-gpu-py312-sagemaker",
        "2.9.1-gpu-py312-cu130-sagemaker",
        "2.9.1-gpu-py312-ec2",
        "2.9.2-cpu-py312-sagemaker",
    )
    there.ecr["eu-central-1"].repositories[CONTAINERS, "pytorch-training"] = {
        tag: f"sha256:{number:064}" for number, tag in enumerate(tags)
    }
    (found,) = planned(there, line(image="pytorch-training:2.9-gpu"))
    assert found.request["AlgorithmSpecification"]["TrainingImage"] == (
        f"{CONTAINERS}.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training@sha256:{1:064}"
    )


def test_lines_of_several_regions_have_the_newest_image_that_all_of_these_have(there: Account) -> None:
    old = {"2.9.0-gpu-py312": f"sha256:{0:064}"}
    there.ecr["eu-central-1"].repositories[CONTAINERS, "pytorch-training"] = {
        **old,
        "2.9.1-gpu-py312": f"sha256:{1:064}",
    }
    there.ecr["us-east-1"].repositories[CONTAINERS, "pytorch-training"] = dict(old)
    image = "pytorch-training:2.9-gpu"
    found = planned(there, line(image=image) + line(image=image, **AWAY))
    assert {one.request["AlgorithmSpecification"]["TrainingImage"].partition("@")[2] for one in found} == {
        f"sha256:{0:064}"
    }


def test_a_container_for_ec2_runs_in_no_line(there: Account) -> None:
    there.ecr["eu-central-1"].repositories[CONTAINERS, "pytorch-training"] = {"2.9.0-gpu-py312-ec2": f"sha256:{0:064}"}
    with pytest.raises(InvalidRequest, match="AWS's containers of eu-central-1 lack it"):
        planned(there, line(image="pytorch-training:2.9-gpu"))


def test_a_repository_of_awss_is_listed_once_for_all_lines_and_not_for_what_is_no_short_tag(there: Account) -> None:
    with pytest.raises(InvalidRequest):
        planned(
            there,
            "".join(
                line(image=f"pytorch-training:{tag}") for tag in ("2.7-gpu", "2.6-gpu", "2.5-cpu", "latest", "2.9")
            ),
        )
    listed = [one for one in there.calls if (one.service, one.operation) == ("ecr", "DescribeImages")]
    assert len([one for one in listed if one.params["repositoryName"] == "pytorch-training"]) == 1


def test_a_checkpoint_elsewhere_is_not_told_as_a_region_without_containers(there: Account) -> None:
    there.ecr["us-east-1"].repositories[CONTAINERS, "pytorch-training"] = {"2.8": "sha256:" + "b" * 64}
    checkpoint = f"s3://{bytes_bucket('us-east-1')}/{GridPrefix('old').checkpoints(1)}"
    with pytest.raises(InvalidRequest) as problem:
        planned(there, line(image="pytorch-training:2.8", checkpoint=checkpoint))
    assert "checkpoint: " in str(problem.value)
    assert "no containers of AWS" not in str(problem.value)


def test_auto_leaves_out_regions_without_containers_of_awss(there: Account) -> None:
    (found,) = planned(there, json.dumps({"region": "auto", "image": "pytorch-training:2.8"}))
    assert found.region == "eu-central-1"
    assert "ap-south-1" not in {one.region for one in there.calls if one.operation == "BatchGetImage"}


def test_a_program_without_code_is_one_of_the_image(there: Account) -> None:
    (found,) = planned(there, line(program="train.py"))
    assert found.request["HyperParameters"] == {"sagemaker_program": '"train.py"'}
    assert [one["ChannelName"] for one in found.request["InputDataConfig"]] == ["training"]
    assert codes(there, "eu-central-1") == {}


def test_the_words_of_a_line_run_behind_the_unpacking_and_get_the_arguments(there: Account) -> None:
    (found,) = planned(there, line(code=CODE, command=["python", "train.py"], arguments=["--epochs", "3"]))
    assert training_model.problems(found.request) == []
    assert found.request["AlgorithmSpecification"]["ContainerEntrypoint"] == [
        "/bin/sh", "-c", code.UNPACK, "code", "/opt/ml/code", "/opt/ml/input/data/code/sourcedir.tar.gz", "python", "train.py",
    ]  # fmt: skip
    assert found.request["AlgorithmSpecification"]["ContainerArguments"] == ["--epochs", "3"]
    assert "HyperParameters" not in found.request
    assert len(code.UNPACK) <= 256


def test_without_code_the_words_of_a_line_are_the_entry_point_as_they_stand(there: Account) -> None:
    (found,) = planned(there, line(entrypoint=["python", "train.py"]))
    assert found.request["AlgorithmSpecification"]["ContainerEntrypoint"] == ["python", "train.py"]


def test_the_code_is_a_channel_of_one_file_in_the_bucket_of_the_trainings_region(there: Account) -> None:
    home, away = planned(
        there, line(code=CODE, program="train.py", mode="FastFile") + line(code=CODE, program="train.py", **AWAY)
    )
    for region, one in (("eu-central-1", home), ("us-east-1", away)):
        channel = one.request["InputDataConfig"][-1]
        source = channel["DataSource"]["S3DataSource"]
        assert (channel["ChannelName"], channel["InputMode"], source["S3DataType"]) == ("code", "File", "S3Prefix")
        bucket, _, folder = source["S3Uri"].removeprefix("s3://").partition("/")
        assert bucket == bytes_bucket(region)
        assert codes(there, region) == {f"{folder}sourcedir.tar.gz": BODY}


def test_lines_of_a_region_share_one_copy(there: Account) -> None:
    planned(
        there,
        line(code=CODE, program="train.py", sweep={"lr": [1, 2, 3]}) + line(code=CODE, command=["sh", "-c", "ls"]),
    )
    assert len(codes(there, "eu-central-1")) == 1
    assert len(there.calls_of("CopyObject")) == 1


def test_an_upload_that_is_replaced_between_the_check_and_the_copy_changes_nothing(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, copy = list[str](), there.s3._copy

    def replaced_first(bucket: Any, params: dict[str, Any]) -> dict[str, Any]:
        seen.append(params["CopySource"])
        there.s3.write(BUCKET, "uploads/code.tar.gz", packed("other.py"))
        return copy(bucket, params)

    monkeypatch.setattr(there.s3, "_copy", replaced_first)
    planned(there, line(code=CODE, program="train.py"))
    assert seen
    assert list(codes(there, "eu-central-1").values()) == [BODY]


def test_another_upload_under_the_same_address_is_another_copy_for_another_grid(there: Account) -> None:
    planned(there, line(code=CODE, program="train.py"))
    there.s3.write(BUCKET, "uploads/code.tar.gz", packed("train.py", "b.py"))
    plan(INPUT, execution("again"))
    assert len(set(codes(there, "eu-central-1").values())) == 2


def test_code_that_cannot_be_copied_refuses_the_grid(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> dict[str, Any]:
        raise Refused("AccessDenied", "Access Denied", 403)

    monkeypatch.setattr(there.s3, "_copy", denied)
    there.upload(line(code=CODE, program="train.py"))
    with pytest.raises(InvalidRequest, match=r"code\.tar\.gz could not be copied to eu-central-1 \(AccessDenied\)"):
        plan(INPUT)
    assert there.s3.read(BUCKET, "grids/sweep-7/grid.json") is None


def test_a_lines_own_way_to_run_takes_the_place_of_the_defaults(there: Account) -> None:
    defaults = INPUT["defaults"] | {"code": CODE, "program": "train.py"}
    first, second = planned(there, line() + line(command=["python", "lib/a.py"]), defaults=defaults)
    assert "sagemaker_program" in first.request["HyperParameters"]
    assert "HyperParameters" not in second.request
    assert second.request["AlgorithmSpecification"]["ContainerEntrypoint"][-2:] == ["python", "lib/a.py"]


def test_a_program_of_a_line_takes_the_place_of_the_defaults_entry_point_and_its_arguments(there: Account) -> None:
    defaults = INPUT["defaults"] | {"code": CODE, "command": ["python"], "arguments": ["lib/a.py"]}
    first, second = planned(there, line() + line(program="train.py"), defaults=defaults)
    assert first.request["AlgorithmSpecification"]["ContainerArguments"] == ["lib/a.py"]
    assert not {"ContainerEntrypoint", "ContainerArguments"} & second.request["AlgorithmSpecification"].keys()


def test_a_line_with_a_program_and_arguments_of_its_own_is_refused(there: Account) -> None:
    there.upload(line(code=CODE, program="train.py", arguments=["--epochs", "3"]))
    with pytest.raises(InvalidRequest, match="program: gets the hyperparameters, and arguments would replace"):
        plan(INPUT)


def test_code_in_a_plain_manifest_is_a_column(there: Account) -> None:
    text = f"region,data,code,program\neu-central-1,s3://data-eu/train/,{CODE},train.py\n"
    (found,) = planned(there, text)
    assert found.source["code"] == CODE
    there.upload(json.dumps(found.source))
    plan(INPUT, execution("again"))
    assert there.lines("again")[0].request["HyperParameters"] == found.request["HyperParameters"]


def test_one_archive_of_many_lines_is_looked_at_once(there: Account) -> None:
    planned(there, line(code=CODE, program="train.py", sweep={"lr": list(range(40))}))
    heads = [one for one in there.calls_of("HeadObject") if one.params["Key"] == "uploads/code.tar.gz"]
    assert len(heads) == 1


# The words that unpack it, as a shell takes them


def unpacked(folder: Path, *words: str, body: bytes = BODY) -> subprocess.CompletedProcess[str]:
    archive = folder / "sourcedir.tar.gz"
    archive.write_bytes(body)
    there = {containers.CODE: str(folder / "code"), code.PACKED: str(archive)}
    command = [there.get(word, word) for word in code.entrypoint(words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_words_run_in_the_folder_of_the_code_with_their_arguments_as_they_stand(tmp_path: Path) -> None:
    said = unpacked(tmp_path, "sh", "-c", 'pwd; ls; printf "<%s>" "$@"', "x", "a b", "$HOME", "*")
    assert said.returncode == 0
    assert said.stdout == f"{tmp_path}/code\nlib\ntrain.py\n<a b><$HOME><*>"


def test_what_the_image_has_in_the_folder_is_gone_as_under_a_mount(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "old.py").touch()
    assert unpacked(tmp_path, "ls").stdout == "lib\ntrain.py\n"


def test_the_exit_code_is_that_of_the_words(tmp_path: Path) -> None:
    assert unpacked(tmp_path, "sh", "-c", "exit 7").returncode == 7


def test_nothing_runs_where_the_archive_is_broken(tmp_path: Path) -> None:
    said = unpacked(tmp_path, "touch", str(tmp_path / "ran"), body=tarred(("a", "b"))[:40])
    assert said.returncode != 0
    assert not (tmp_path / "ran").exists()
