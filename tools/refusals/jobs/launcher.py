"""Refusals of what starts a command, and of how many processes."""

from __future__ import annotations

from typing import Any

from tools.refusals.jobs.image import IN_IMAGE
from tools.refusals.jobs.table import LEAST, Row, Section

ALONE = "the request has no launcher, so each node starts the command once; allowed: processes_per_node beside launcher torchrun or mpi"


def _nests(launcher: str, words: str, left: str) -> str:
    """The line of a command that starts processes itself, with what is left of the command without that."""
    starts = (
        f"launcher: {launcher} starts the command on its own, and the command runs {words}, which starts processes too"
    )
    return f"{starts}; allowed: none, or {left}"


def _row(what: str, launcher: str, command: list[str] | str, words: str, left: str) -> Row:
    return Row(what, {"launcher": launcher, "command": command}, _nests(launcher, words, left))


def _processes(what: str, number: object, *says: str, **more: Any) -> Row:
    """A number beside a launcher."""
    return Row(what, {"launcher": "torchrun", "processes_per_node": number, **more}, *says)


LAUNCHER = Section(
    "launcher",
    "none, torchrun, mpi",
    taken="torchrun",
    rows=(
        ("one that does not exist", "slurm", '"slurm" is not a launcher'),
        ("the program in place of the word", "mpirun", '"mpirun" is not a launcher'),
        ("capital letters", "Torchrun", '"Torchrun" is not a launcher'),
        ("the empty text", "", '"" is not a launcher'),
        ("null, in place of none", None, "null is not a launcher"),
        ("false, in place of none", False, "false is not a launcher"),
        ("a list", ["torchrun"], "a list is not a launcher"),
        ("an object", {"torchrun": 8}, "an object is not a launcher"),
        _row("torchrun twice", "torchrun", ["torchrun", "--nnodes=2", "train.py"], "torchrun", '"command": ["train.py", ...]'),
        _row(
            "mpirun twice, by its path", "mpi", ["/usr/bin/mpirun", "./a"], "/usr/bin/mpirun", "command without it",
        ),
        _row("one in the other", "torchrun", "mpiexec python train.py", "mpiexec", '"command": ["train.py", ...]'),
        _row(
            "torchrun as a module", "mpi", ["python", "-m", "torch.distributed.run", "train.py"], "python -m torch.distributed.run",
            '"command": ["python", "train.py", ...]',
        ),
        _row(
            "torchrun in a shell", "torchrun", ["bash", "-c", "cd src && torchrun --nnodes $NUM_NODES train.py -x"], "torchrun",
            '"command": ["train.py", ...]',
        ),
        _row(
            "accelerate, behind another program", "torchrun", ["uv", "run", "accelerate", "launch", "train.py"], "accelerate launch",
            '"command": ["train.py", ...]',
        ),
        _row(
            "deepspeed with its options", "torchrun", "deepspeed --num_gpus 4 train.py --deepspeed ds.json", "deepspeed",
            '"command": ["train.py", ...]',
        ),
        _row("a launcher that no node has", "mpi", ["srun", "./a"], "srun", "command without it"),
        Row(
            "an option in the place of a program",
            {"launcher": "torchrun", "command": ["--help"]},
            "launcher: torchrun would read the first word of command, --help, as an option of its own; allowed: none, or a command that "
            "begins with a program",
        ),
        Row(
            "a colon among the words, which begins another program for mpirun",
            {"launcher": "mpi", "command": ["python", "train.py", ":", "--epochs", "3"]},
            "launcher: mpi would read the word : of command as the begin of another program; allowed: none, torchrun, or a command "
            "without the word :",
        ),
        Row(
            "an image's entry point",
            {"image": "images:v1", "launcher": "mpi"},
            "launcher: mpi starts a command, and the request has none; what the image's entry point starts is not known; allowed: "
            "none, or mpi beside command",
            without=IN_IMAGE,
        ),
    ),
)  # fmt: skip
PROCESSES = Section(
    "processes_per_node",
    "auto, or a whole number from 1 to 1,024",
    taken=1,
    beside={"launcher": "mpi"},
    rows=(
        ("none", 0, "0 is too small"),
        ("a negative number", -1, "-1 is too small"),
        ("more than 1,024", 1025, "1025 is too large"),
        ("a fraction", 1.5, "1.5 is not a whole number"),
        ("a number in quotes", "8", '"8" is not a whole number (numbers have no quotes)'),
        ("another word", "gpu", '"gpu" is neither auto nor a whole number'),
        ("capital letters", "Auto", '"Auto" is neither auto nor a whole number'),
        ("true", True, "true is not a whole number"),
        ("null", None, "null is not a whole number"),
        ("a list", [8], "a list is not a whole number"),
        ("without a launcher", 1, ALONE),
        ("without a launcher, also as auto", "auto", ALONE),
        Row("beside none", {"launcher": "none", "processes_per_node": 1}, f"processes_per_node: {ALONE}"),
        _processes(
            "more than the type has GPUs",
            2,
            "processes_per_node: 2 is too large for g5.xlarge, which has 1 GPU; allowed: auto, or a whole number from 1 to 1",
        ),
        _processes(
            "more than some of the types have GPUs",
            8,
            "processes_per_node: 8 is too large for g5.12xlarge, which has 4 GPUs; allowed: auto, or a whole number from 1 to 4",
            "processes_per_node: 8 is too large for g5.xlarge, which has 1 GPU; allowed: auto, or a whole number from 1 to 1",
            instance_types=["g4dn.metal", "g5.12xlarge", "g5.xlarge"],
        ),
        _processes(
            "more than a type without accelerators has vCPUs",
            3,
            "processes_per_node: 3 is too large for g6f.large, which has 2 vCPUs; allowed: auto, or a whole number from 1 to 2",
            instance_types=["g6f.large"],
        ),
        Row(
            "more than the GPUs that the request names",
            {
                **{name: value for name, value in LEAST.items() if name != "instance_types"},
                "accelerators": "A10G:4",
                "launcher": "mpi",
                "processes_per_node": 5,
            },
            "processes_per_node: 5 is too large for g5.12xlarge, which has 4 GPUs; allowed: auto, or a whole number from 1 to 4",
            whole=True,
        ),
        _processes(
            "beside a command that starts processes itself",
            2,
            _nests("torchrun", "mpirun", "command without it"),
            "processes_per_node: 2 is too large for g5.xlarge, which has 1 GPU; allowed: auto, or a whole number from 1 to 1",
            command=["mpirun", "./run.sh"],
        ),
    ),
)
