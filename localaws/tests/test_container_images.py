"""Images without Docker: what of a Dockerfile is followed, where its files lie, which command is run, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localaws.containers.images import Image, NotRunnable, keep
from localaws.services.sagemaker_code import Reason, ToolkitError
from localaws.services.sagemaker_container import Host, Started, lay_out, started
from localaws.services.sagemaker_mpi import name_host
from localaws.tests.archives import packed

HOSTS = ("algo-1", "algo-2")
REQUEST = {
    "TrainingJobName": "t",
    "AlgorithmSpecification": {"TrainingImage": "x", "TrainingInputMode": "File"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 1},
    "HyperParameters": {"epochs": "3", "batch-size": "32", "name": "two words", "flags": '["a"]'},
    "InputDataConfig": [{"ChannelName": "training", "DataSource": {"S3DataSource": {}}}],
}
TOOLKIT = "FROM base\nCOPY t.py /opt/ml/code/\nENV SAGEMAKER_PROGRAM=t.py\n"


def image(tmp_path: Path, dockerfile: str, *files: str, **arguments: str) -> Image:
    context = tmp_path / "context"
    for name in files:
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        (context / name).write_text(name)
    context.mkdir(exist_ok=True)
    (context / "Dockerfile").write_text(dockerfile)
    return Image.read(context, arguments)


def laid_out(tmp_path: Path, one: Image) -> dict[str, str]:
    """Path in the image to content."""
    root = tmp_path / "root"
    one.lay_out(root)
    return {f"/{path.relative_to(root)}": path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("copy", "place"),
    [
        ("COPY a.py /code/", "/code/a.py"),
        ("COPY a.py /code", "/code"),
        ("COPY --chown=1:1 a.py /code/b.py", "/code/b.py"),
        ('COPY ["a.py", "/code/"]', "/code/a.py"),
        ("WORKDIR /w\nCOPY a.py .", "/w/a.py"),
        ("WORKDIR /w\nWORKDIR deeper\nCOPY a.py ./", "/w/deeper/a.py"),
        ("ARG WHERE=/there\nCOPY a.py ${WHERE}/", "/there/a.py"),
        ("ENV WHERE=/env\nCOPY a.py $WHERE/", "/env/a.py"),
        ("COPY \\\n  a.py \\\n  /long/", "/long/a.py"),
    ],
)
def test_a_file_lies_where_docker_would_have_put_it(tmp_path: Path, copy: str, place: str) -> None:
    assert laid_out(tmp_path, image(tmp_path, f"FROM base\n{copy}\n", "a.py")) == {place: "a.py"}


def test_a_folder_is_copied_without_its_name_and_several_files_by_theirs(tmp_path: Path) -> None:
    one = image(tmp_path, "FROM base\nCOPY lib /app/lib\nCOPY a.py b.py /app/\n", "lib/x/y.py", "a.py", "b.py")
    assert set(laid_out(tmp_path, one)) == {"/app/lib/x/y.py", "/app/a.py", "/app/b.py"}


def test_only_the_last_stage_counts_and_what_another_made_is_left_out(tmp_path: Path) -> None:
    text = 'FROM one AS build\nCOPY a.py /a\nENTRYPOINT ["x"]\nFROM ${BASE}\nCOPY --from=build /a /b\nRUN make\n'
    one = image(tmp_path, f"ARG BASE=other\n{text}", "a.py", BASE="given")
    assert (one.base, one.entrypoint, laid_out(tmp_path, one)) == ("given", [], {})


@pytest.mark.parametrize(
    ("text", "entrypoint", "command"),
    [
        ('ENTRYPOINT ["python", "-m", "x"]\nCMD ["y"]', ["python", "-m", "x"], ["y"]),
        ('CMD ["y"]\nENTRYPOINT ["x"]', ["x"], []),
        ("CMD run it", [], ["/bin/sh", "-c", "run it"]),
        ("", [], []),
    ],
)
def test_the_command_is_the_dockerfiles(tmp_path: Path, text: str, entrypoint: list[str], command: list[str]) -> None:
    one = image(tmp_path, f"FROM base\n{text}\n")
    assert (one.entrypoint, one.command) == (entrypoint, command)


def test_variables_in_either_form_have_their_paths_on_this_computer(tmp_path: Path) -> None:
    one = image(
        tmp_path, 'FROM base\nCOPY a.py /app/\nENV PYTHONPATH=/app:/none WORD="two words"\nENV OLD old form\n', "a.py"
    )
    laid_out(tmp_path, one)
    root = tmp_path / "root"
    assert one.environment(root) == {"PYTHONPATH": f"{root}/app:/none", "WORD": "two words", "OLD": "old form"}


@pytest.mark.parametrize(("text", "says"), [("RUN x\n", "no FROM"), ("FROM b\nCOPY gone /x\n", "copies gone")])
def test_what_docker_would_not_build_is_not_run(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(NotRunnable, match=says):
        laid_out(tmp_path, image(tmp_path, text))


def test_an_image_that_was_not_built_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotRunnable, match="no build of this rehearsal made the image sha256:00"):
        Image.of(tmp_path, "sha256:00")


def test_what_a_build_kept_is_found_by_its_digest_with_its_arguments(tmp_path: Path) -> None:
    image(tmp_path, "ARG BASE=none\nFROM --platform=linux/amd64 $BASE\n")
    keep(tmp_path / "images", "sha256:ab", tmp_path / "context", {"BASE": "aws"})
    assert Image.of(tmp_path / "images", "sha256:ab").base == "aws"


# the container contract


def hosts(tmp_path: Path, one: Image) -> list[Host]:
    found = [Host(name=name, address=f"127.2.0.{place}", root=tmp_path / name) for place, name in enumerate(HOSTS)]
    for host in found:
        one.lay_out(host.root)
        lay_out(host, found, REQUEST)
    return found


def test_the_toolkit_runs_the_program_with_the_hyperparameters_as_arguments(tmp_path: Path) -> None:
    one = image(tmp_path, TOOLKIT, "t.py")
    both = hosts(tmp_path, one)
    how = started(one, both[1], both, REQUEST, ami=tmp_path, port=7781)
    assert (how.command[:2], how.folder) == (["python", "t.py"], tmp_path / "algo-2/opt/ml/code")
    assert how.command[2:] == [*("--batch-size", "32", "--epochs", "3"), *("--flags", "['a']", "--name", "two words")]
    wanted = {"SM_CURRENT_HOST": "algo-2", "SM_HP_BATCH_SIZE": "32", "MASTER_ADDR": "127.2.0.0", "MASTER_PORT": "7781"}
    assert wanted.items() <= how.variables.items()
    assert json.loads(how.variables["SM_HOSTS"]) == list(HOSTS)
    assert how.variables["SM_CHANNEL_TRAINING"] == str(tmp_path / "algo-2/opt/ml/input/data/training")


def test_with_torchrun_every_host_knows_its_rank_and_the_masters_address(tmp_path: Path) -> None:
    one = image(tmp_path, TOOLKIT, "t.py")
    both = hosts(tmp_path, one)
    request = {**REQUEST, "HyperParameters": {"sagemaker_torch_distributed_enabled": "true", "epochs": "3"}}
    words = " ".join(started(one, both[1], both, request, ami=tmp_path, port=7781).command)
    assert "-m torch.distributed.run --nnodes 2 " in words
    assert "--master_addr 127.2.0.0 --master_port 7781 --node_rank 1" in words
    assert "sagemaker_torch" not in words


MPI = {"sagemaker_mpi_enabled": "true", "epochs": "3"}


def under_mpirun(tmp_path: Path, place: int, **more: str) -> Started:
    one = image(tmp_path, TOOLKIT, "t.py")
    both = hosts(tmp_path, one)
    given = {**MPI, **{f"sagemaker_mpi_{name}": value for name, value in more.items()}}
    return started(one, both[place], both, {**REQUEST, "HyperParameters": given}, ami=tmp_path, port=7781)


def test_with_mpi_the_first_host_runs_the_program_on_every_host(tmp_path: Path) -> None:
    options = json.dumps("-x A='b c' --NCCL_DEBUG=WARN")
    how = under_mpirun(tmp_path, 0, num_of_processes_per_host="8", custom_mpi_options=options)
    words = " ".join(how.command)
    assert "mpirun --host 127.2.0.0:8,127.2.0.1:8 -np 16 --allow-run-as-root " in words
    assert "-x NCCL_DEBUG=WARN -x A=b c -x " in words
    assert words.endswith(" python -m mpi4py t.py --epochs 3")
    assert "sagemaker_mpi" not in words
    assert (how.processes, how.follows) == (8, False)


def test_with_mpi_every_other_host_waits_for_the_first_and_runs_nothing_of_its_own(tmp_path: Path) -> None:
    how = under_mpirun(tmp_path, 1, num_of_processes_per_host="8")
    assert "serve 127.2.0.1" in " ".join(how.command)
    assert "t.py" not in " ".join(how.command)
    assert how.follows


def test_with_mpi_a_host_has_one_process_unless_the_hyperparameters_say_otherwise(tmp_path: Path) -> None:
    words = " ".join(under_mpirun(tmp_path, 0, custom_mpi_options='""').command)
    assert "--host 127.2.0.0,127.2.0.1 -np 2 " in words
    assert "-np 3 " in " ".join(under_mpirun(tmp_path, 0, num_processes="3").command)


def test_with_mpi_no_host_without_a_root_of_its_own_is_told_a_path_of_the_first(tmp_path: Path) -> None:
    how = under_mpirun(tmp_path, 0)
    exported = [name for before, name in zip(how.command, how.command[1:], strict=False) if before == "-x"]
    assert {"SM_HOSTS", "SM_CURRENT_HOST", "PATH"} <= {*exported}
    assert "SM_MODEL_DIR" not in exported
    assert not [name for name in exported if str(tmp_path / "algo-1") in how.variables.get(name, "")]


@pytest.mark.parametrize("value", ["false", "0", "null", '""'])
def test_mpi_that_is_not_enabled_starts_no_mpirun(tmp_path: Path, value: str) -> None:
    how = under_mpirun(tmp_path, 1, enabled=value)
    assert (how.command[:2], how.follows) == (["python", "t.py"], False)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("[1,3]<stdout>: loss=1", "[1,mpirank:3,algo-2]<stdout>: loss=1"),
        ("[1,12]<stderr>: x", "[1,mpirank:12,algo-7]<stderr>: x"),
        ("of [1,3]<stdout>", "of [1,3]<stdout>"),
        ("loss=1", "loss=1"),
    ],
)
def test_a_line_of_a_rank_names_its_host_and_no_other_line_does(line: str, named: str) -> None:
    assert name_host(line, 2) == named


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["epoch 1", "Traceback", "ValueError: no", "after"], "ValueError: no\nafter"),
        (["[1,3]<stderr>: ValueError: no"], "ValueError: no"),
        (["1", "2", "3", "4", "5", "6"], "2\n3\n4\n5\n6"),
        (["Errors: 0", "in error"], "Errors: 0\nin error"),
        ([], ""),
    ],
)
def test_the_reason_begins_with_the_first_error_or_is_the_last_lines(lines: list[str], reason: str) -> None:
    heard = Reason()
    for line in lines:
        heard.hear(line)
    assert str(heard) == reason


@pytest.mark.parametrize(
    ("dockerfile", "hyper", "says"),
    [
        ("FROM base\n", {}, "has no ENTRYPOINT"),
        (
            "FROM base\n",
            {"sagemaker_program": "t.py", "sagemaker_submit_directory": '"s3://a/b.tar.gz"'},
            "of the image and",
        ),
    ],
)
def test_what_cannot_be_run_says_why(tmp_path: Path, dockerfile: str, hyper: dict[str, str], says: str) -> None:
    one = image(tmp_path, dockerfile, "t.py")
    both = hosts(tmp_path, one)
    with pytest.raises(NotRunnable, match=says):
        started(one, both[0], both, {**REQUEST, "HyperParameters": hyper}, ami=tmp_path, port=7781)


CODE = {"sagemaker_program": '"t.py"', "sagemaker_submit_directory": '"/opt/ml/input/data/code/sourcedir.tar.gz"'}
NOTHING = "FROM base\n"


def start_with_code(tmp_path: Path, dockerfile: str, body: bytes, hyper: dict[str, str] = CODE) -> tuple[Started, Path]:
    """How the toolkit starts with code in a channel, and its folder of code."""
    one = image(tmp_path, dockerfile, "t.py")
    (host, *others) = hosts(tmp_path, one)
    packed = host.base / "input/data/code/sourcedir.tar.gz"
    packed.parent.mkdir()
    packed.write_bytes(body)
    request = {**REQUEST, "HyperParameters": hyper}
    return started(one, host, [host, *others], request, ami=tmp_path, port=7781), host.base / "code"


def test_the_toolkit_unpacks_the_code_of_a_channel_and_runs_the_program_in_its_folder(tmp_path: Path) -> None:
    how, code = start_with_code(tmp_path, NOTHING, packed("t.py", "lib/a.py"))
    assert ([*how.command], how.folder) == (["python", "t.py"], code)
    assert (code / "lib/a.py").exists()


def test_the_toolkit_leaves_what_the_image_has_in_the_folder_of_the_code(tmp_path: Path) -> None:
    _, code = start_with_code(tmp_path, "FROM base\nCOPY t.py /opt/ml/code/\n", packed("other.py"))
    assert [one.name for one in code.iterdir()] == ["t.py"]


def test_the_variable_comes_before_the_hyperparameter(tmp_path: Path) -> None:
    how, _ = start_with_code(tmp_path, "FROM base\nENV SAGEMAKER_PROGRAM=b.py\n", packed("t.py", "b.py"))
    assert [*how.command] == ["python", "b.py"]


def test_another_program_than_python_runs_under_a_shell(tmp_path: Path) -> None:
    how, code = start_with_code(
        tmp_path, NOTHING, packed("run.sh"), {**CODE, "sagemaker_program": '"run.sh"', "lr": "1"}
    )
    assert [*how.command] == ["/bin/sh", "-c", "./run.sh --lr 1"]
    assert (code / "run.sh").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("body", "program", "says"),
    [
        (packed("t.py"), "run.sh", "FileNotFoundError: .*'/opt/ml/code/run.sh'"),
        (b"PK", "t.py", "ReadError: not a gzip file"),
    ],
    ids=["without the program", "no archive"],  # an archive has the time of its making
)
def test_where_the_toolkit_itself_fails_it_says_so(tmp_path: Path, body: bytes, program: str, says: str) -> None:
    with pytest.raises(ToolkitError, match=f"(?s)framework error: .*{says}"):
        start_with_code(tmp_path, NOTHING, body, {**CODE, "sagemaker_program": json.dumps(program)})


def test_the_files_of_the_contract_say_what_the_request_said(tmp_path: Path) -> None:
    one = image(tmp_path, TOOLKIT, "t.py")
    config = hosts(tmp_path, one)[1].base / "input/config"
    assert json.loads((config / "hyperparameters.json").read_text()) == REQUEST["HyperParameters"]
    resources = json.loads((config / "resourceconfig.json").read_text())
    assert (resources["current_host"], resources["hosts"]) == ("algo-2", list(HOSTS))
    assert json.loads((config / "inputdataconfig.json").read_text())["training"]["TrainingInputMode"] == "File"
