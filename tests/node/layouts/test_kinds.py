"""Tests what a file is, by its name and a few bytes: what is not known counts as weights."""

from __future__ import annotations

import json

import pytest

from agent.layouts.formats import MOST_DOCUMENT
from agent.layouts.kinds import SMALL, FileKind, find_kind

LINES = b"epoch 1 loss 0.5\nepoch 2 loss 0.4\n"
ROWS = b'{"step": 1}\n{"step": 2}\n'


def judge(data: bytes, name: str) -> FileKind:
    return find_kind(lambda offset, most: data[offset : offset + most], len(data), name)


@pytest.mark.parametrize(
    "name",
    [
        "train.log", "a/20260101.log", "log.txt", "log.txt.rank1", "log_rank1.log", "train.log.1", "run.log.2026-01-01", "slurm-12.out",
        "worker.err", "metrics.jsonl", "stdout", "err.txt", "train_log.txt",
    ],
)  # fmt: skip
def test_lines_under_the_name_of_a_log_are_one(name: str) -> None:
    assert judge(LINES, name) is FileKind.RECORD
    assert judge(LINES * 100_000, name) is FileKind.RECORD
    assert judge(b"\x80\x02" + LINES, name) is FileKind.WEIGHTS, "a name alone proves nothing"
    assert judge(b"half" * 100, name) is not FileKind.RECORD


@pytest.mark.parametrize("name", ["scalars.json", "metrics.json", "metrics", "log.json"])
def test_lines_of_json_are_a_log_under_any_name(name: str) -> None:
    assert judge(ROWS, name) is FileKind.RECORD
    assert judge(ROWS + b'{"st', name) is FileKind.RECORD


@pytest.mark.parametrize("name", ["runs/events.out.tfevents.17.host.1.0", "wandb/run-1.wandb"])
def test_binary_records_are_known_by_their_names(name: str) -> None:
    assert judge(b"\0\x01\x02", name) is FileKind.RECORD


@pytest.mark.parametrize(
    "name", ["app.log.gz", "log.gz", "app.log.3.gz", "metrics.jsonl.gz", "train_log.txt.gz", "log.csv.1.zst"]
)
def test_packed_logs_are_known_by_their_names(name: str) -> None:
    assert judge(b"\x1f\x8b\x08\0", name) is FileKind.RECORD


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("results.csv", b"1,2\n", FileKind.TEXT),
        ("monitor.csv", b'#{"t_start": 1}\nr,l,t\n', FileKind.TEXT),
        ("config.yaml", b"a: 1\n", FileKind.TEXT),
        ("hparams", b"lr=1\nwd=2\n", FileKind.TEXT),
        ("progress.txt", b"10%\r20%", FileKind.TEXT),
        ("table.csv", b"1,2\n" * SMALL, FileKind.LINES),
        ("log", b"[rank0]: x\n[rank0]: y\n", FileKind.TEXT),
        ("config.json", b'{\n "a": 1\n}\n', FileKind.DOCUMENT),
        ("x.json", b"{", FileKind.DOCUMENT),
        ("history.json", b"[0.25" + b", 0.25" * SMALL + b"]", FileKind.DOCUMENT),
        ("train.pid", b"17", FileKind.DOCUMENT),
        ("x.lock", b"", FileKind.DOCUMENT),
        ("DONE", b"", FileKind.DOCUMENT),
        ("last_checkpoint", b"/ckpt/epoch_1.pth", FileKind.WORDS),
        ("model", b"of 20", FileKind.WORDS),
        ("plot.png", b"\x89PNG\r\n\x1a\n\0\0", FileKind.NOTE),
        ("a.jpg", b"\xff\xd8\xff\xe0", FileKind.NOTE),
        ("v.mp4", b"\0\0\0\x18ftypmp42", FileKind.NOTE),
        ("study.db", b"SQLite format 3\0\x10", FileKind.NOTE),
        ("study.db-wal", b"\x37\x7f\x06\x82", FileKind.NOTE),
    ],
)
def test_what_is_no_weights_is_known(name: str, data: bytes, kind: FileKind) -> None:
    assert judge(data, name) is kind


@pytest.mark.parametrize(
    "name",
    [
        "trace_rank1.json", "trace.json", "host_1.179.pt.trace.json.gz", "__pycache__/a.cpython-312.pyc", "a.svg", "a.tiff", "a.bmp",
        "report.nsys-rep", "core.1234", ".DS_Store", "plugins/profile/host.xplane.pb", "heartbeat.rank1", "hostname",
    ],
)  # fmt: skip
def test_what_tools_leave_behind_is_no_weights(name: str) -> None:
    assert judge(b"\0\x01" * SMALL, name) is FileKind.NOTE


def test_names_that_are_nearly_those_of_tools_are_weights() -> None:
    for name in ("core.pt", "trace.pt", "model.pb", "my_trace_model.json", "hostname.bin", "core.v1"):
        assert judge(b"\0\x01" * SMALL, name) is FileKind.WEIGHTS


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("model.pt", LINES),
        ("model.npz", b""),
        ("state.bin", ROWS),
        ("m.safetensors", b"{}"),
        ("weights", b"\x01\x02" * 99),
        ("model.txt", b"tree\nversion=v4\nnum_class=1\n"),
        ("model.json", json.dumps({"learner": {"x": [1]}}).encode()),
        ("model.xgb", b'{"learner":{"attributes":{}'),
        ("cat.json", b'{"oblivious_trees":[{'),
        ("model", b"svm_type c_svc\nkernel_type rbf\n"),
        ("m.txt", b"<?xml version='1.0'?>\n<PMML>\n"),
        ("glove.txt", b"400 3\nthe 0.1 -0.2 0.3\nof 0.2 0.1 0.4\n"),
        ("large", b"x" * 5000),
        ("replay.gz", b"\x1f\x8b\x08\0"),
        ("weights_7.txt.gz", b"\x1f\x8b\x08\0"),
        ("table.csv.zst", b"\x28\xb5\x2f\xfd"),
        ("genomes.jsonl.xz", b"\xfd7zXZ\0"),
        ("logits.txt.gz", b"\x1f\x8b\x08\0"),
        ("model.log", b"\0\1\n\2\3\n"),
        ("params.json", b'{"weights": [0.1, 0.2'),
        ("big.json", b'{"a": "' + b"x" * MOST_DOCUMENT + b'"}'),
    ],
)
def test_whatever_may_be_weights_counts_as_weights(name: str, data: bytes) -> None:
    assert judge(data, name) is FileKind.WEIGHTS


def test_text_that_is_cut_within_a_letter_is_text() -> None:
    assert judge("Größe\n".encode() * 3 + "ö".encode()[:1], "train.log") is FileKind.RECORD
