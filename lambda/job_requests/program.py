"""The fields of a request that say what runs on every node, and what starts it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, field_validator
from pydantic.config import JsonDict

from contract.cluster import SCRIPT
from contract.jobs import Launcher
from git_code.commit import GIT_MAY_BE
from git_code.fields import CodeSource
from job_requests import values
from job_requests.values import AUTO, MOST_PROCESSES, STRINGS, MayBe, Passable, one_of
from refusals.fields import ARCHIVE_MAY_BE

MOST_ARGUMENTS = 1000
"""The most arguments of the command."""
NEEDS_LAUNCHER: JsonDict = {
    "if": {
        "properties": {"launcher": {"enum": [one.value for one in Launcher if one is not Launcher.NONE]}},
        "required": ["launcher"],
    },
    "then": {"required": ["command"]},
    "else": {"properties": {"processes_per_node": False}},
}
"""JSON Schema of what a launcher needs, and of what needs one."""


class ProgramFields(BaseModel):
    """What a request says of its program."""

    code: Annotated[CodeSource, MayBe(f"{ARCHIVE_MAY_BE}, or a commit: {GIT_MAY_BE}")] = Field(
        default_factory=str,
        description=(
            "S3 address of the archive (.tar, .tar.gz, .tgz or .zip) that is unpacked on each node, or a commit of a git repository (git: "
            "its https address, ref: the commit's whole hash), which Admit fetches once. With image it may be left out; where it is given, "
            "the container has it as its working folder."
        ),
        examples=[
            "s3://my-bucket/uploads/ddp_digits.tar.gz",
            {"git": "https://github.com/owner/repository.git", "ref": "0123456789abcdef0123456789abcdef01234567"},
        ],
    )
    command: Annotated[
        values.CommandWords,
        MayBe(f"a list of 1 to {MOST_ARGUMENTS:,} strings, or one string of such words", STRINGS),
    ] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description=(
            "Arguments of the command that runs on every node, unchanged; or one string without shell syntax, split as a shell "
            "splits words. No shell runs either. With image it runs in place of the image's entry point, which runs without it."
        ),
        examples=[
            ["python", "train.py", "--epochs", "20"],
            "python train.py --epochs 20",
            ["bash", "-c", "python prepare.py && python train.py"],
        ],
    )
    launcher: Annotated[Launcher, BeforeValidator(one_of(Launcher, "launcher")), MayBe(", ".join(Launcher))] = Field(
        default=Launcher.NONE,
        description=(
            "What starts the command: none (each node starts it once), torchrun (processes_per_node times on each node; a first word that "
            "ends in .py is a script that torchrun's Python runs, any other a program) or mpi (mpirun on rank 0, for the processes of all "
            "nodes). An image has to bring the torchrun or mpirun that is used in it."
        ),
        examples=[Launcher.TORCHRUN.value, Launcher.MPI.value],
    )
    processes_per_node: Annotated[
        values.Processes, MayBe(f"{AUTO}, or a whole number from 1 to {MOST_PROCESSES:,}")
    ] = Field(
        default=0,
        description=(
            "Processes that the launcher starts on each node: auto is one for each GPU or Neuron device that EC2 counts in the node's "
            "type, and one where there is none. A Neuron device has several cores: for a process on each, give the number. Only with "
            "launcher torchrun or mpi."
        ),
        examples=[AUTO, 8],
        json_schema_extra={"default": AUTO},
    )
    image: Annotated[
        values.ContainerName | None,
        MayBe("repository and tag of an image, as in images:digits-1, or its whole address in a private ECR registry"),
    ] = Field(
        default=None,
        description=(
            "Container image that the training runs in: repository and tag (or digest) of the deployment, name and tag of an AWS Deep "
            "Learning Container, or a whole address in a private ECR registry. Its digest at admission is what every node runs. "
            "Without it the training runs on the machine's own image."
        ),
        examples=["images:digits-1", "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"],
    )
    arguments: Annotated[list[Passable], MayBe(f"a list of 1 to {MOST_ARGUMENTS:,} strings", STRINGS)] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description="Arguments of the image's entry point, or of command, unchanged. Only with image.",
        examples=[["--epochs", "20"]],
    )

    @property
    def program_words(self) -> list[str]:
        """The words that run, in a container too; none where the image's entry point does, which only its registry knows."""
        return [*self.command, *self.arguments] if self.command else []

    @property
    def launched_words(self) -> list[str]:
        """The words that run, as they name the file that runs: torchrun itself opens a script, and starts a program as the node does."""
        words = self.program_words
        is_script = self.launcher is Launcher.TORCHRUN and bool(words) and words[0].endswith(SCRIPT)
        return [Launcher.TORCHRUN.value, *words] if is_script else words

    @field_validator("command")
    @classmethod
    def _program(cls, value: list[str]) -> list[str]:
        if value and not value[0].strip():
            raise ValueError("its first word is blank; allowed: the program to run, then its arguments")
        return value
