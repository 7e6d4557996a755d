"""What starts a job's processes: which commands a launcher takes, how many processes a node takes, and what the job says of both."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from aws.facts import InstanceType
from aws.types import instance_type
from contract import keys
from contract.cluster import Cluster
from contract.codec import encode
from contract.jobs import Launcher
from job_requests.launchers import list_process_problems
from job_requests.reading import read
from job_requests.request import JobRequest
from refusals.archive import Listing, listing
from refusals.commands import script
from refusals.script import archive_problems, wanted_files
from tests.archives import header, packed, program, tarred
from tests.builders import JOB, LIMITS
from tests.contract.versions import read_kept
from tests.functions.admission.account import Account, refused, start
from tools.refusals.jobs import LEAST

EVERY: Mapping[str, InstanceType] = {name: instance_type(entry) for name, entry in INSTANCE_TYPES.items()}
"""As moto knows them: recorded answers of DescribeInstanceTypes."""
CODE = LEAST["code"]
TORCHRUN = {**LEAST, "launcher": "torchrun"}


def list_archive(body: bytes, *kept: str) -> Listing:
    return listing(io.BytesIO(body), "a.tar.gz", lambda: False, kept)


def document(there: Account, name: str = "job-1") -> dict[str, Any]:
    job = there.job(name)
    assert job is not None
    fields: dict[str, Any] = json.loads(encode(job))
    return fields


def problems(request: Mapping[str, Any]) -> list[str]:
    return read(request, LIMITS)[1]


# What the job says


def test_a_job_without_a_launcher_has_the_fields_that_jobs_had_before_there_was_one(there: Account) -> None:
    start(LEAST)
    kept = read_kept()
    assert document(there).keys() == json.loads(kept[max(kept)]["job"]).keys()


def test_the_word_none_changes_no_byte_of_the_job(there: Account) -> None:
    start(LEAST)
    before = there.s3.read(JOB.home_bucket, keys.JobPrefix("job-1").description)
    start({**LEAST, "launcher": "none"}, "job-2")
    after = there.s3.read(JOB.home_bucket, keys.JobPrefix("job-2").description)
    assert before is not None
    assert before.replace(b"job-1", b"job-2") == after


@pytest.mark.parametrize("given", [{}, {"processes_per_node": "auto"}])
def test_the_job_of_a_launcher_leaves_the_number_to_the_type_of_each_node(
    there: Account, given: dict[str, Any]
) -> None:
    start({**TORCHRUN, **given})
    job = there.job("job-1")
    assert job is not None
    assert (job.launcher, job.processes_per_node) == (Launcher.TORCHRUN, 0)
    assert "processes_per_node" not in document(there)


@pytest.mark.parametrize("number", [1, 1.0])
def test_the_job_has_the_number_of_the_request(there: Account, number: float) -> None:
    start({**LEAST, "launcher": "mpi", "processes_per_node": number})
    job = there.job("job-1")
    assert job is not None
    assert (job.launcher, job.processes_per_node) == (Launcher.MPI, 1)


# Commands that start processes themselves

NESTED: Mapping[str, list[str]] = {
    "torchrun": ["torchrun", "--nnodes=2", "train.py"],
    "/usr/bin/mpirun": ["/usr/bin/mpirun", "./a"],
    "python -m torch.distributed.run": ["python", "-m", "torch.distributed.run", "train.py"],
    "accelerate launch": ["accelerate", "launch", "train.py"],
    "deepspeed": ["env", "X=1", "deepspeed", "train.py"],
    "horovodrun": ["horovodrun", "-np", "4", "python", "train.py"],
    "colossalai run": ["colossalai", "run", "train.py"],
    "composer": ["composer", "-n", "8", "train.py"],
    "fabric run": ["fabric", "run", "train.py"],
    "srun": ["srun", "python", "train.py"],
    "ray start": ["bash", "-c", "cd src && ray start --head && python train.py"],
}


@pytest.mark.parametrize(("words", "command"), NESTED.items())
@pytest.mark.parametrize("launcher", ["torchrun", "mpi"])
def test_a_launcher_starts_no_other_one(words: str, command: list[str], launcher: str) -> None:
    (problem,) = problems({**LEAST, "launcher": launcher, "command": command})
    assert problem.startswith(
        f"launcher: {launcher} starts the command on its own, and the command runs {words}, which starts processes too; allowed: none, or "
    )


@pytest.mark.parametrize(
    ("launcher", "command"), [("torchrun", '["train.py", ...]'), ("mpi", '["python", "train.py", ...]')]
)
def test_the_command_without_its_own_launcher_is_named_as_the_requests_takes_it(launcher: str, command: str) -> None:
    given = ["torchrun", "--nproc-per-node", "2", "train.py", "--lr", "0.1"]
    (problem,) = problems({**LEAST, "launcher": launcher, "command": given})
    assert problem.endswith(f'; allowed: none, or "command": {command}')
    (problem,) = problems({**LEAST, "launcher": launcher, "nodes": 2, "command": given})
    assert problem.endswith(f'; allowed: "command": {command}'), (
        "on several nodes it would be refused without a launcher"
    )


@pytest.mark.parametrize("launcher", ["torchrun", "mpi"])
def test_a_word_of_the_command_is_no_launcher(launcher: str) -> None:
    for command in (["python", "train.py", "--launcher", "accelerate"], ["python", "torchrun.py"], ["bash", "run.sh"]):
        assert problems({**LEAST, "launcher": launcher, "nodes": 2, "command": command}) == []


def test_arguments_are_words_of_the_command_that_a_launcher_starts() -> None:
    request = {**TORCHRUN, "image": "images:v1", "command": ["python"], "arguments": ["-m", "torch.distributed.run"]}
    (problem,) = problems(request)
    assert "runs python -m torch.distributed.run" in problem


@pytest.mark.parametrize(
    "command", [["a:b", "::", "--at", "c:"], ["python", "-", ":x"], ["bash", "-c", "true : x"]], ids=" ".join
)
def test_a_colon_within_a_word_is_no_word(command: list[str]) -> None:
    assert problems({**LEAST, "launcher": "mpi", "command": command}) == []


def test_a_colon_is_a_word_like_any_other_to_torchrun_and_to_the_node() -> None:
    for launcher in ("torchrun", "none"):
        assert problems({**LEAST, "launcher": launcher, "command": ["python", "train.py", ":"]}) == []


# What a launcher needs beside it


def test_a_launcher_that_is_wrong_is_the_only_reason_shown() -> None:
    (problem,) = problems({**LEAST, "launcher": "slurm", "processes_per_node": 2, "command": ["torchrun", "a.py"]})
    assert problem.startswith('launcher: "slurm" is not a launcher; allowed: ')


def test_a_command_that_is_wrong_is_there_all_the_same() -> None:
    (problem,) = problems({**TORCHRUN, "image": "images:v1", "command": 7})
    assert problem.startswith("command: 7 is not a list")


def test_a_command_that_is_missing_is_told_once() -> None:
    (problem,) = problems({name: value for name, value in TORCHRUN.items() if name != "command"})
    assert problem.startswith("command: is missing")


@pytest.mark.parametrize("value", ["auto", 1, 1024])
def test_processes_without_a_launcher_are_refused_whatever_their_number(value: object) -> None:
    for given in ({}, {"launcher": "none"}):
        (problem,) = problems({**LEAST, **given, "processes_per_node": value})
        assert problem.startswith("processes_per_node: the request has no launcher")


def test_every_reason_is_told_at_once_and_nothing_is_changed(there: Account) -> None:
    wrong = {"launcher": "mpi", "processes_per_node": 2, "command": ["mpirun", "./a"], "volume_gb": 0}
    lines = refused({**LEAST, **wrong}).split("\n")[1:]
    assert [line.partition(":")[0] for line in lines] == ["- volume_gb", "- launcher", "- processes_per_node"]
    assert there.changes == []


# How many processes a node takes


def count(types: list[str], number: int | str, launcher: str = "torchrun") -> list[str]:
    fields = {"instance_types": types, "launcher": launcher, "processes_per_node": number}
    return list_process_problems(JobRequest.model_validate({**LEAST, **fields}), EVERY)


@pytest.mark.parametrize(
    ("kind", "most", "words"),
    [
        ("p5.48xlarge", 8, "8 GPUs"),
        ("g5.xlarge", 1, "1 GPU"),
        ("trn1.32xlarge", 32, "32 Neuron cores"),
        ("trn2.48xlarge", 128, "128 Neuron cores"),
        ("c7i.xlarge", 4, "4 vCPUs"),
        ("g6f.large", 2, "2 vCPUs"),
        ("trn2u.48xlarge", 192, "192 vCPUs"),
    ],
)
def test_a_node_takes_as_many_processes_as_it_has_of_what_each_needs(kind: str, most: int, words: str) -> None:
    assert count([kind], most) == []
    assert count([kind], most + 1, "mpi") == [
        f"processes_per_node: {most + 1} is too large for {kind}, which has {words}; allowed: auto, or a whole number from 1 to {most}"
    ]


def test_every_type_that_takes_fewer_is_named() -> None:
    lines = count(["p5.48xlarge", "g5.12xlarge", "g5.xlarge"], 8)
    assert [line.split()[6] for line in lines] == ["g5.12xlarge,", "g5.xlarge,"]


def test_the_number_that_each_type_decides_is_never_too_large() -> None:
    assert count(["g5.xlarge", "c7i.xlarge"], "auto") == []


def test_a_type_of_which_ec2_says_nothing_is_not_judged() -> None:
    silent = InstanceType(name="x9.large", architectures=("x86_64",), cluster=True)
    request = JobRequest.model_validate({**TORCHRUN, "instance_types": ["x9.large"], "processes_per_node": 1024})
    assert list_process_problems(request, {"x9.large": silent}) == []
    assert list_process_problems(request, {}) == []


def test_a_number_that_is_refused_for_want_of_a_launcher_is_not_judged_by_type(there: Account) -> None:
    (_, line) = refused({**LEAST, "processes_per_node": 1000}).split("\n")
    assert "the request has no launcher" in line
    assert there.changes == []


# What the archive must have


@pytest.mark.parametrize("command", [["train.py"], ["./train.py", "--x"], ["src/train.py"]])
def test_torchrun_reads_a_script_that_needs_neither_an_executable_bit_nor_a_first_line(command: list[str]) -> None:
    words = JobRequest.model_validate({**TORCHRUN, "command": command}).launched_words
    body = tarred((header(command[0], mode=0o644), "exit()\r\n"))
    assert archive_problems(CODE, words, list_archive(body, *wanted_files(words))) == []


@pytest.mark.parametrize(
    "command", [["train.py"], ["./train.py", "--x"], ["src/train.py"], ["python", "train.py"], ["./run.sh"]]
)
def test_the_file_that_is_looked_for_is_the_one_that_torchrun_is_given(command: list[str]) -> None:
    cluster = Cluster(addresses=("10.0.0.1", "10.0.0.2"), rank=1, port=29500, processes=8)
    words = JobRequest.model_validate({**TORCHRUN, "command": command}).launched_words
    started = cluster.build_torchrun(command)
    given = started[started.index("--no-python") + 1 :] if "--no-python" in started else started
    assert script(words) == script(given)
    assert script(words) is not None


def test_a_script_that_torchrun_would_not_find_is_refused(there: Account) -> None:
    (_, line) = refused({**TORCHRUN, "command": ["trian.py"]}).split("\n")
    assert line.startswith(f"- command: runs trian.py, which is not in {LEAST['code']} (did you mean train.py?)")
    assert there.changes == []


def test_a_script_in_utf_16_is_refused_beside_torchrun_too() -> None:
    words = JobRequest.model_validate({**TORCHRUN, "command": ["train.py"]}).launched_words
    body = tarred((header("train.py"), "exit()".encode("utf-16")))
    (problem,) = archive_problems(CODE, words, list_archive(body, *wanted_files(words)))
    assert "is in UTF-16" in problem


@pytest.mark.parametrize("launcher", ["torchrun", "mpi"])
@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ((header("run.sh", mode=0o644), "#!/bin/sh\n"), "is not executable"),
        (program("run.sh", "exit 0\n"), "does not begin with #!"),
        (program("run.sh", "#!/bin/sh\r\n"), "carriage return"),
    ],
)
def test_a_program_of_the_archive_has_to_run_beside_a_launcher_as_without_one(
    launcher: str, member: Any, reason: str
) -> None:
    words = JobRequest.model_validate({**LEAST, "launcher": launcher, "command": ["./run.sh"]}).launched_words
    (problem,) = archive_problems(CODE, words, list_archive(tarred(member), *wanted_files(words)))
    assert reason in problem


@pytest.mark.parametrize("launcher", ["none", "mpi"])
def test_a_python_file_is_a_program_like_any_other_where_torchrun_does_not_read_it(launcher: str) -> None:
    words = JobRequest.model_validate({**LEAST, "launcher": launcher, "command": ["./train.py"]}).launched_words
    body = tarred((header("train.py", mode=0o644), "exit()\n"))
    (problem,) = archive_problems(CODE, words, list_archive(body, *wanted_files(words)))
    assert "is not executable" in problem


@pytest.mark.parametrize(
    ("launcher", "command"), [("mpi", ["train.py"]), ("torchrun", ["/app/train.py"]), ("mpi", ["a"])]
)
def test_what_does_not_lie_in_the_archive_is_not_looked_for_there(launcher: str, command: list[str]) -> None:
    words = JobRequest.model_validate({**LEAST, "launcher": launcher, "command": command}).launched_words
    assert archive_problems(CODE, words, list_archive(packed("other.py"))) == []
