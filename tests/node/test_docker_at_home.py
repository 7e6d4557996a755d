"""The command of docs/guides/containers.md that runs a job's image at home: its folders and names are a job's; docker itself runs it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import containers, training
from localaws.containers import real
from localaws.testing.roots import AWSS, NEEDED, Builder
from tests.node import dockerd
from tests.node.dockerd import RealDocker

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "containers.md"
EXAMPLE = ROOT / "examples" / "image_job"
DOCKER = pytest.mark.skipif(bool(dockerd.lacks()), reason=dockerd.lacks())


def documented() -> str:
    """The block of the page that has the command."""
    (block,) = [
        one for one in re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "docker run" in one
    ]
    return str(block)


def values(option: str) -> list[str]:
    """What the command gives to an option, each time that it has it."""
    words = shlex.split(documented())
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_the_container_at_home_finds_the_folders_of_a_job() -> None:
    folders = [re.sub(".*target=", "", one) for one in values("--mount")]
    assert folders == [containers.CHECKPOINTS, containers.ARTIFACTS, containers.DATA, containers.PROGRESS]


def test_the_container_at_home_finds_every_variable_of_a_job_and_no_other() -> None:
    given = dict(one.split("=", 1) for one in values("--env"))
    assert given.keys() == training.RESERVED
    assert given[training.CHECKPOINT_DIR] == containers.CHECKPOINTS
    assert given[training.ARTIFACTS_DIR] == containers.ARTIFACTS
    assert given[training.PROGRESS_FILE].startswith(f"{containers.PROGRESS}/")


@pytest.fixture(scope="module")
def docker() -> Iterator[RealDocker]:
    made = RealDocker()
    yield made
    made.close()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """Address of the example's image, built from its Dockerfile."""
    images = tmp_path_factory.mktemp("home") / "images"
    registry = real.begin(images, request.addfinalizer)
    return f"{registry}/images@{Builder(images).digest(EXAMPLE, {'BASE': AWSS})}"


def at_home(docker: RealDocker, folder: Path, image: str, steps: int) -> str:
    """What the page's command prints, in an empty folder but for what an earlier one has left there."""
    command = documented().replace("IMAGE --steps 60", f"{image} --steps {steps} --seconds-per-step 0")
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "DOCKER_HOST": docker.host},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@DOCKER
@NEEDED
def test_the_image_of_a_job_trains_at_home_and_goes_on_from_its_checkpoint(
    docker: RealDocker, image: str, tmp_path: Path
) -> None:
    first = at_home(docker, tmp_path, image, 60).splitlines()
    assert (first[0].split()[:2], first[-1]) == (["step", "1"], "step 60 metric=0.989883")
    kept = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()}
    assert kept == {"run/checkpoints/line.json", "run/artifacts/line-0.json", "run/progress/progress.json"}
    again = at_home(docker, tmp_path, image, 62).splitlines()
    assert [one.partition(" metric")[0] for one in again] == ["goes on from step 60", "step 61", "step 62"]
    assert docker.says("ps", "--all", "--quiet") == ""
