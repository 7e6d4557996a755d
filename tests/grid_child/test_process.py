"""The child as a process of its own: what it imports, how it ends, and that SIGTERM reaches it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contract.grid import ExitCode
from contract.images import CHILD_BASE
from contract.timing import Timing
from localaws.containers.images import Image
from localaws.testing.waiting import HANG_S, until
from stacks.parts import own_images
from tests.fakes.aws import Aws
from tests.fakes.grid_yard import GridYard, grid_of, line_of

ROOT = Path(__file__).parents[2]
CHILD = ROOT / "grid_child"
NOWHERE = "http://127.0.0.1:9"
"""A port that nobody listens on."""


def started(variables: dict[str, str]) -> subprocess.Popen[str]:
    """As the container starts it, with a network that leads nowhere."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "AWS_ACCESS_KEY_ID": "AKIAFAKE",
        "AWS_SECRET_ACCESS_KEY": "fake",
        "AWS_ENDPOINT_URL": NOWHERE,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "grid_child"],
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def catches(process: int, number: signal.Signals) -> bool:
    """Whether the process has a handler of its own for the signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def variables(timing: Timing) -> dict[str, str]:
    yard = GridYard(Aws(now=0), grid_of(1, ["eu-central-1"]), [line_of(0)], timing)
    return yard.variables()


def test_a_bad_environment_is_final_and_one_readable_line() -> None:
    process = started({})
    out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (ExitCode.FINAL, "")
    assert re.fullmatch(r"Another attempt would fail in the same way: The variable TRAINYARD_\w+ is missing.*\n", err)


def test_sigterm_ends_a_process_that_waits_and_the_next_attempt_goes_on() -> None:
    """It waits for a bucket that nobody reaches; Batch cannot be reached either, so that nothing is stopped."""
    process = started(variables(Timing(training_watch_s=3600, stop_grace_s=3)))
    until(lambda: catches(process.pid, signal.SIGTERM))
    time.sleep(0.5)  # for its first calls, which nobody answers
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == ExitCode.AGAIN
    assert "keeps running" in out


def test_a_network_that_leads_nowhere_is_left_to_the_next_attempt() -> None:
    process = started(variables(Timing(training_watch_s=0.01)))
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == ExitCode.AGAIN
    assert err.startswith("The next attempt goes on: EndpointConnectionError")


def test_what_a_child_imports_is_small() -> None:
    program = "import grid_child.main, boto3, sys; print(len(sys.modules), *sorted({m.partition('.')[0] for m in sys.modules}))"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split()[1:])
    assert not loaded & {"pydantic", "aws_lambda_powertools", "sagemaker", "numpy", "pandas", "moto", "aws"}


def find_callers() -> dict[str, set[str]]:
    """Service to the files that call it."""
    found: dict[str, set[str]] = {}
    for file in CHILD.glob("*.py"):
        for service in re.findall(r'client\("(\w+)"', file.read_text()):
            found.setdefault(service, set()).add(file.name)
    return found


def test_each_service_is_called_in_one_file() -> None:
    assert find_callers() == {
        "s3": {"store.py", "pod_folders.py"},
        "eks": {"kubernetes.py"},
        "sts": {"kubernetes.py"},
        "sagemaker": {"sagemaker.py"},
        "stepfunctions": {"clusters.py"},
        "batch": {"batch.py"},
    }


def test_the_image_keeps_the_model_of_every_service_that_is_called_and_of_roles() -> None:
    kept = set(re.findall(r"! -name (\w+)", (CHILD / "Dockerfile").read_text()))
    assert kept == {*find_callers(), "sts"}


@pytest.mark.parametrize("wanted", ["USER 65532", "--require-hashes", "--no-cache-dir", "ENTRYPOINT", "FROM ${BASE}"])
def test_the_image_is_small_pinned_and_nobodys(wanted: str) -> None:
    assert wanted in (CHILD / "Dockerfile").read_text()


def test_the_image_has_every_module_of_the_child_and_of_the_contract(tmp_path: Path) -> None:
    context, image = tmp_path / "context", tmp_path / "image"
    for place, folder in own_images.CHILD.items():
        shutil.copytree(folder, context / place, dirs_exist_ok=True)
    Image.read(context, {"BASE": CHILD_BASE}).lay_out(image)
    for package in ("contract", "grid_child"):
        modules = {file.relative_to(ROOT).as_posix() for file in (ROOT / package).rglob("*.py")}
        assert {
            file.relative_to(image / "child").as_posix() for file in (image / "child" / package).rglob("*.py")
        } == modules
