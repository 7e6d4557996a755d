"""The helpers in the pods of a line: what the bringer fills, and what the keeper saves while the training runs and at its end."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import EndpointConnectionError

from contract.metric_values import write_expression
from contract.mpi_job import BRINGER, KEEPER
from contract.pod_files import PodChannel, PodFiles, read_result
from grid_child import bounded_search
from grid_child.plain_files import open_plain, stream_archive
from grid_child.pod_folders import PodFolders
from grid_child.pod_keeper import LOOK_S, SAVE_EVERY_S, PodKeeper
from grid_child.pods import run

FILES = PodFiles(
    nodes=2,
    instance_type="ml.g5.xlarge",
    channels=(PodChannel(name="training", source="s3://data/train/"),),
    hyperparameters={"lr": "0.1"},
    checkpoints="s3://bytes/grids/g/00000000/checkpoints",
    output="s3://bytes/grids/g/00000000/job/output",
    notes="s3://bytes/grids/g/00000000/pods/",
    metrics={"loss": write_expression("loss")},
    seal="seal",
)


class Storage:
    """S3 as far as pods use it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.sent: list[str] = []
        self.is_away = False
        self.fails = 0
        """How many uploads fail from now on."""

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        self.objects[Bucket, Key] = Body

    def upload_fileobj(self, file: Any, bucket: str, key: str, Config: Any = None) -> None:  # noqa: N803, ARG002
        if self.is_away:
            raise EndpointConnectionError(endpoint_url="s3")
        key.encode()
        if self.fails:
            self.fails -= 1
            raise S3UploadFailedError(f"Failed to upload {key}: SlowDown")
        pieces = list[bytes]()
        while piece := file.read(8192):
            pieces.append(piece)
        self.objects[bucket, key] = b"".join(pieces)
        self.sent.append(key)

    def download_file(self, bucket: str, key: str, name: str) -> None:
        Path(name).write_bytes(self.objects[bucket, key])

    def get_paginator(self, _: str) -> Storage:
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        found = sorted(key for of, key in self.objects if of == Bucket and key.startswith(Prefix))
        yield from ({"Contents": [{"Key": key}]} for key in found)
        yield {}


@pytest.fixture
def storage() -> Storage:
    made = Storage()
    for name in ("a", "b/c", "d"):
        made.objects["data", f"train/{name}"] = name.encode()
    return made


def folders(storage: Storage, root: Path, rank: int = 0, **changes: Any) -> PodFolders:
    given = {name: getattr(FILES, name) for name in FILES.__dataclass_fields__} | changes
    return PodFolders(PodFiles(**given), root, rank=rank, storage=storage)


def list_data(root: Path) -> list[str]:
    data = root / "input/data/training"
    return sorted(one.relative_to(data).as_posix() for one in data.rglob("*") if one.is_file())


# The bringer


def test_a_pod_finds_what_a_container_of_sagemaker_finds(storage: Storage, tmp_path: Path) -> None:
    folders(storage, tmp_path, rank=1).fill()
    config = tmp_path / "input/config"
    assert json.loads((config / "hyperparameters.json").read_text()) == {"lr": "0.1"}
    resources = json.loads((config / "resourceconfig.json").read_text())
    assert (resources["current_host"], resources["hosts"]) == ("algo-2", ["algo-1", "algo-2"])
    assert list_data(tmp_path) == ["a", "b/c", "d"]
    assert all((tmp_path / one).is_dir() for one in ("model", "output/data", "checkpoints"))


def test_of_a_sharded_channel_each_pod_has_its_part(storage: Storage, tmp_path: Path) -> None:
    channels = (PodChannel(name="training", source="s3://data/train/", sharded=True),)
    for rank, expected in ((0, ["a", "d"]), (1, ["b/c"])):
        folders(storage, tmp_path / str(rank), rank, channels=channels).fill()
        assert list_data(tmp_path / str(rank)) == expected


def test_an_address_that_names_one_object_brings_it_by_its_name(storage: Storage, tmp_path: Path) -> None:
    folders(storage, tmp_path, channels=(PodChannel(name="training", source="s3://data/train/a"),)).fill()
    assert list_data(tmp_path) == ["a"]


def test_data_that_is_not_there_fails_the_pod_by_its_address(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match="there is nothing at s3://data/nothing/, the data of the channel training"
    ):
        folders(storage, tmp_path, channels=(PodChannel(name="training", source="s3://data/nothing/"),)).fill()


def test_a_key_that_leads_out_of_its_folder_is_not_brought(storage: Storage, tmp_path: Path) -> None:
    storage.objects["data", "train/../../../etc/x"] = b""
    with pytest.raises(ValueError, match="leads out of its folder"):
        folders(storage, tmp_path).fill()


def test_checkpoints_of_an_earlier_training_are_there(storage: Storage, tmp_path: Path) -> None:
    storage.objects["bytes", "grids/g/00000000/checkpoints/w.npz"] = b"w"
    folders(storage, tmp_path).fill()
    assert (tmp_path / "checkpoints/w.npz").read_bytes() == b"w"


# The keeper


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def keep(
    storage: Storage, root: Path, *, until_s: float = 2.0, during: dict[float, Any] | None = None, **changes: Any
) -> int:
    """Runs a keeper until the training's end; `during` has what happens at which second."""
    now, happens = [0.0], dict(during or {})
    keeper = PodKeeper(folders(storage, root, **changes), now=lambda: now[0], pause=lambda _: pass_on())

    def pass_on() -> None:
        now[0] += LOOK_S
        for at in [one for one in happens if one <= now[0]]:
            happens.pop(at)()
        if now[0] >= until_s:
            keeper.leave()

    return keeper.run()


def noted(storage: Storage) -> Any:
    return read_result(storage.objects["bytes", "grids/g/00000000/pods/result.json"], FILES.seal)


def test_the_end_saves_model_output_log_and_the_last_value_of_each_metric(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "model/deep/w.bin", "w")
    write(tmp_path, "output/data/plot", "p")
    write(tmp_path, "output/said", "loss=0.5\nloss=0.25\nloss=no number\n")
    assert keep(storage, tmp_path) == 0
    packed = storage.objects["bytes", "grids/g/00000000/job/output/model.tar.gz"]
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["deep/w.bin"]
    assert ("bytes", "grids/g/00000000/job/output/output.tar.gz") in storage.objects
    assert storage.objects["bytes", "grids/g/00000000/pods/log.txt"].startswith(b"loss=0.5")
    assert (noted(storage).metrics, noted(storage).model) == ({"loss": 0.25}, True)


DIVERGED = {
    "at its end": ("loss=0.5\nloss=0.25\nloss=nan\n", "nan"),
    "as PyTorch prints it": ("loss=0.5\nloss=tensor(nan, device='cuda:0')\n", "nan"),
    "above all numbers": ("loss=0.5\nloss=inf\n", "inf"),
    "below all numbers": ("loss=-inf", "-inf"),
    "for ever": ("loss=nan\n" * 3, "nan"),
    "in JSON's word": ("loss=0.5\nloss=-Infinity\n", "-inf"),
    "beyond what documents hold": ("loss=0.5\nloss=1e305\n", "1e+305, beyond 1e+300"),
    "as a text": ("loss=0.5\nloss='NaN'\n", "nan"),
}


@pytest.mark.parametrize("how", DIVERGED)
def test_a_training_that_diverged_has_no_value_and_the_reason(storage: Storage, tmp_path: Path, how: str) -> None:
    said, last = DIVERGED[how]
    write(tmp_path, "output/said", said)
    assert keep(storage, tmp_path) == 0
    assert (noted(storage).metrics, noted(storage).metric_problems) == ({}, {"loss": f"its last value is {last}"})


def test_a_training_that_found_back_has_its_last_value(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "output/said", "loss=0.5\nloss=nan\nloss=0.25\n")
    keep(storage, tmp_path)
    assert (noted(storage).metrics, noted(storage).metric_problems) == ({"loss": 0.25}, {})


@pytest.mark.parametrize("metric", ["NaN", '"nan"', "Infinity"])
def test_a_training_that_diverged_by_its_progress_file_has_no_value_and_the_reason(
    storage: Storage, tmp_path: Path, metric: str
) -> None:
    write(tmp_path, "output/progress", f'{{"step": 1, "metric": {metric}}}')
    keep(storage, tmp_path)
    assert noted(storage).metrics == {}
    assert list(noted(storage).metric_problems) == ["metric"]


def test_a_progress_file_does_not_hide_that_the_log_ends_with_a_training_that_diverged(
    storage: Storage, tmp_path: Path
) -> None:
    write(tmp_path, "output/said", "metric=nan\n")
    write(tmp_path, "output/progress", json.dumps({"step": 1, "metric": 0.9}))
    keep(storage, tmp_path, metrics={"metric": write_expression("metric")})
    assert (noted(storage).metrics, list(noted(storage).metric_problems)) == ({}, ["metric"])


def test_an_expression_that_needs_years_for_a_line_costs_its_metric_alone(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        bounded_search, "LONGEST_SEARCH_S", 0.2
    )  # of the processor, so that no load of the machine counts
    write(tmp_path, "model/w", "w")
    write(tmp_path, "output/said", f"slow=1; loss=0.5\nslow={'7' * 60}\nslow=2; loss=0.25\n")
    metrics = {"slow": "slow=(([0-9]+)+);", "loss": write_expression("loss")}
    assert keep(storage, tmp_path, metrics=metrics) == 0
    assert (noted(storage).model, noted(storage).metrics) == (True, {"loss": 0.25})
    assert noted(storage).metric_problems == {"slow": "its expression needs more than 5 s for one line of the log"}


def test_without_a_model_there_is_no_archive_and_the_note_says_so(storage: Storage, tmp_path: Path) -> None:
    assert keep(storage, tmp_path) == 0
    assert (noted(storage).model, noted(storage).metrics) == (False, {})
    assert storage.sent == []


def test_a_last_line_without_its_end_counts_once_the_training_is_over(storage: Storage, tmp_path: Path) -> None:
    said = write(tmp_path, "output/said", "loss=0.")
    keep(storage, tmp_path, during={1.0: lambda: said.write_text("loss=0.75")})
    assert noted(storage).metrics == {"loss": 0.75}


def test_a_metric_of_the_progress_file_counts_where_the_log_has_none(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "output/progress", json.dumps({"step": 1, "metric": 0.9}))
    keep(storage, tmp_path)
    assert noted(storage).metrics == {"metric": 0.9}


@pytest.mark.parametrize("text", ["", "[1]", '{"metric": "none"}', '{"metric": null}'])
def test_a_progress_file_without_a_number_is_passed_over(storage: Storage, tmp_path: Path, text: str) -> None:
    write(tmp_path, "output/progress", text)
    keep(storage, tmp_path)
    assert (noted(storage).metrics, noted(storage).metric_problems) == ({}, {})


def test_checkpoints_are_saved_while_the_training_runs_when_they_have_come_to_rest(
    storage: Storage, tmp_path: Path
) -> None:
    write(tmp_path, "checkpoints/1", "one")
    keep(storage, tmp_path, until_s=1 * SAVE_EVERY_S + 1)
    first = list(storage.sent)
    assert first == ["grids/g/00000000/checkpoints/1"], "at the end, because it was new at the only look"
    keep(storage, tmp_path, until_s=2 * SAVE_EVERY_S + 1)
    assert storage.sent.count("grids/g/00000000/checkpoints/1") == 2


def test_a_checkpoint_that_has_not_changed_is_not_sent_again(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "checkpoints/1", "one")
    keep(storage, tmp_path, until_s=5 * SAVE_EVERY_S + 1)
    assert storage.sent == ["grids/g/00000000/checkpoints/1"]


def test_links_are_not_followed(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "model/pipe")
    keep(storage, tmp_path)
    assert storage.sent == []


SECRET = "of the machine"


@pytest.mark.parametrize("name", ["output/said", "output/progress"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "link to nothing"])
def test_what_stands_in_the_place_of_a_file_neither_stops_the_keeper_nor_leads_it_out(
    storage: Storage, tmp_path: Path, name: str, kind: str
) -> None:
    write(tmp_path, "outside/secret", f'{{"metric": 1}}\nloss=1 {SECRET}\n')
    write(tmp_path, "pod/model/w", "w")
    place = tmp_path / "pod" / name
    place.parent.mkdir(exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            place.symlink_to(tmp_path / ("outside/secret" if kind == "link" else "nothing"))
    keep(storage, tmp_path / "pod")
    assert (noted(storage).model, noted(storage).metrics) == (True, {})
    assert not any(SECRET.encode() in one for one in storage.objects.values())


def test_a_folder_that_is_a_link_is_not_archived(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret", SECRET)
    (tmp_path / "pod/output").mkdir(parents=True)
    (tmp_path / "pod/output/data").symlink_to(tmp_path / "outside")
    keep(storage, tmp_path / "pod")
    assert storage.sent == []


def test_a_file_below_a_folder_that_became_a_link_is_not_opened(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret", SECRET)
    (tmp_path / "pod").mkdir()
    (tmp_path / "pod/model").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        open_plain(tmp_path / "pod", "model/secret")


def test_an_archive_of_which_a_file_is_gone_is_no_archive(storage: Storage, tmp_path: Path) -> None:
    file = write(tmp_path, "model/w", "w" * 100_000)
    with (
        stream_archive(tmp_path, "model", [file, tmp_path / "model/gone"]) as packed,
        pytest.raises(FileNotFoundError),
    ):
        storage.upload_fileobj(packed, "bytes", "k")
    assert storage.objects.get(("bytes", "k")) is None


def test_what_cannot_be_saved_is_noted_and_ends_with_an_error(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "model/w", "w")
    storage.is_away = True
    assert keep(storage, tmp_path) == 1
    assert "EndpointConnectionError" in noted(storage).problem


def test_a_save_that_fails_while_the_training_runs_is_made_up(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "checkpoints/1", "one")
    storage.is_away = True
    at = 2 * SAVE_EVERY_S + 5
    assert (
        keep(storage, tmp_path, until_s=at + SAVE_EVERY_S, during={at: lambda: setattr(storage, "is_away", False)}) == 0
    )
    assert "grids/g/00000000/checkpoints/1" in storage.sent


def test_an_upload_that_fails_meanwhile_does_not_end_the_keeper(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "checkpoints/1", "one")
    storage.fails = 1
    assert keep(storage, tmp_path, until_s=3 * SAVE_EVERY_S) == 0
    assert "grids/g/00000000/checkpoints/1" in storage.sent


def test_one_file_that_cannot_be_saved_holds_back_no_other(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "model/w", "w")
    write(tmp_path, "checkpoints/1", "one")
    (tmp_path / os.fsdecode(b"checkpoints/\xff.pt")).write_text("x")
    assert keep(storage, tmp_path) == 1
    assert "grids/g/00000000/checkpoints/1" in storage.sent
    assert noted(storage).model
    assert "UnicodeEncodeError" in noted(storage).problem


def test_an_upload_that_fails_at_the_end_is_noted(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path, "model/w", "w")
    storage.fails = 1
    assert keep(storage, tmp_path) == 1
    assert (noted(storage).model, "SlowDown" in noted(storage).problem) == (False, True)


@pytest.mark.parametrize("words", [[], ["other"], [BRINGER, KEEPER]])
def test_a_helper_without_its_word_says_which_there_are(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words, {}, hear=lambda _: None) == 64
    assert "allowed: bringer or keeper" in capsys.readouterr().err
