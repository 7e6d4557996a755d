"""What a user copies from the examples of images is taken by the Build machine as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract.codec import decode
from contract.images import BuildOrder
from tests.archives import tarred
from tests.functions.image_build.account import Account, check

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = ("image_with_code", "image_without_code")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_ordered_once_its_archive_is_uploaded(there: Account, name: str) -> None:
    files = sorted((EXAMPLES / name).iterdir())
    packed = tarred(*((f"./{file.name}", file.read_text()) for file in files if file.is_file()))
    there.put(f"uploads/{name}.tar.gz", packed)
    request = json.loads((EXAMPLES / name / "build.json").read_text())
    assert request["context"].startswith("s3://REPLACE-WITH-UploadPrefix/")
    request["context"] = f"s3://yard-home/uploads/{name}.tar.gz"
    order = decode(BuildOrder, check(request)["order"])
    assert order.base.endswith(request["base"])


@pytest.mark.parametrize("name", NAMES)
def test_an_example_takes_its_base_and_every_argument_of_its_input(name: str) -> None:
    lines = (EXAMPLES / name / "Dockerfile").read_text().splitlines()
    request = json.loads((EXAMPLES / name / "build.json").read_text())
    assert lines.index("ARG BASE") < lines.index("FROM ${BASE}")
    for argument in request.get("build_arguments", {}):
        assert any(line.startswith(f"ARG {argument}") for line in lines[lines.index("FROM ${BASE}") :])


@pytest.mark.parametrize("name", NAMES)
def test_what_an_example_copies_is_there(name: str) -> None:
    folder = EXAMPLES / name
    copied = [line.split()[1] for line in (folder / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    assert copied
    assert [file for file in copied if not (folder / file).is_file()] == []
    with_code = any(file.endswith(".py") for file in copied)
    assert with_code == (name == "image_with_code")
