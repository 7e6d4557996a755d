"""Refusals of the command."""

from __future__ import annotations

from tools.refusals.jobs import archives
from tools.refusals.jobs.table import Row, Section

TORCHRUN = (
    "torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT ..."
)
ACCELERATE = (
    "accelerate launch --num_machines $NUM_NODES --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port "
    "$MASTER_PORT ... (with --num_processes for all nodes together)"
)


def _lone(what: str, command: list[str] | str, words: str, fault: str, *allowed: str) -> Row:
    """A launcher of the command's own, on two nodes."""
    line = f"command: {words} would not join the 2 nodes into one training: {fault}; allowed: {', or '.join(allowed)}"
    return Row(what, {"nodes": 2, "command": command}, line)


COMMAND = Section(
    "command",
    "a list of 1 to 1,000 strings, or one string of such words",
    entry="strings of up to 128,000 bytes",
    taken=["python", "train.py", "--epochs", "20"],
    rows=(
        Row("missing", {}, "command: is missing", without=("command",)),
        ("null", None, "null is not a list"),
        ("an empty list", [], "is empty"),
        ("an empty text", "", "is empty"),
        (
            "a blank program",
            [" ", "train.py"],
            "its first word is blank; allowed: the program to run, then its arguments",
        ),
        (
            "a quote that is not closed",
            "python 'train.py",
            "cannot be split into words (No closing quotation); allowed: a list of strings, or words quoted as for a shell",
        ),
        (
            "two commands and a variable",
            "echo $NODE_RANK && ls",
            "has shell syntax, and no shell runs the command: $NODE_RANK &&"
            '; allowed: ["bash", "-c", "echo $NODE_RANK && ls"], or quotes around what the program must receive unchanged',
        ),
        (
            "a pipe, a redirection, a pattern and a background process",
            "cat *.txt | sort > all &",
            "has shell syntax, and no shell runs the command: *.txt | > and 1 more"
            '; allowed: ["bash", "-c", "cat *.txt | sort > all &"], or quotes around what the program must receive unchanged',
        ),
        (
            "a variable in double quotes",
            "python -c \"print('$HOME')\"",
            "has shell syntax, and no shell runs the command: $HOME"
            '; allowed: ["bash", "-c", "python -c \\"print(\'$HOME\')\\""]'
            ", or quotes around what the program must receive unchanged",
        ),
        (
            "a variable that is set ahead of the program",
            "OMP_NUM_THREADS=4 python train.py",
            "has shell syntax, and no shell runs the command: OMP_NUM_THREADS=4"
            '; allowed: ["bash", "-c", "OMP_NUM_THREADS=4 python train.py"]'
            ", or quotes around what the program must receive unchanged",
        ),
        _lone(
            "torchrun on two nodes, each by itself",
            "torchrun --nproc-per-node 4 train.py --epochs 3",
            "torchrun",
            "it names no number of nodes (--nnodes)",
            '"launcher": "torchrun", "processes_per_node": 4 with "command": ["train.py", ...]',
            f"bash -c with {TORCHRUN}",
        ),
        _lone(
            "torchrun for one node on two",
            ["python", "-m", "torch.distributed.run", "--standalone", "train.py"],
            "python -m torch.distributed.run",
            "--standalone is for one node",
            '"launcher": "torchrun" with "command": ["train.py", ...]',
            f"bash -c with {TORCHRUN}",
        ),
        _lone(
            "another number of nodes",
            ["bash", "-lc", "cd src && torchrun --nnodes 1 --master-addr $MASTER_ADDR train.py"],
            "torchrun",
            "--nnodes 1 is not the number of nodes",
            '"launcher": "torchrun" with "command": ["train.py", ...]',
            TORCHRUN,
        ),
        _lone(
            "variables that no shell replaces",
            ["torchrun", "--nnodes", "$NUM_NODES", "--master-addr", "$MASTER_ADDR", "train.py"],
            "torchrun",
            "no shell replaces $NUM_NODES",
            '"launcher": "torchrun" with "command": ["train.py", ...]',
            f"bash -c with {TORCHRUN}",
        ),
        _lone(
            "two nodes that each wait for the other on their own address",
            [
                "torchrun",
                "--nnodes",
                "2",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                "localhost:29500",
                "-m",
                "package.train",
            ],
            "torchrun",
            "it names no address of rank 0 (--master-addr or --rdzv-endpoint)",
            '"launcher": "torchrun" with "command": ["python", "-m", "package.train", ...]',
            f"bash -c with {TORCHRUN}",
        ),
        _lone(
            "accelerate without the machines",
            ["accelerate", "launch", "--multi_gpu", "train.py"],
            "accelerate launch",
            "it names no number of nodes (--num_machines)",
            '"launcher": "torchrun" with "command": ["train.py", ...]',
            f"bash -c with {ACCELERATE}",
        ),
        _lone(
            "deepspeed without the machines",
            ["deepspeed", "train.py", "--deepspeed", "ds.json"],
            "deepspeed",
            "it names no number of nodes (--num_nodes)",
            '"launcher": "torchrun" with "command": ["train.py", ...]',
        ),
        _lone(
            "mpirun without the machines",
            ["mpirun", "-np", "8", "python", "train.py"],
            "mpirun",
            "it names no other nodes (-H)",
            '"launcher": "mpi" with "command": ["python", "train.py", ...]',
        ),
        Row(
            "a script that the archive lacks",
            {"code": "s3://yard-home/uploads/main.tar.gz", "command": ["torchrun", "--nnodes=2", "mian.py"]},
            "command: runs mian.py, which is not in s3://yard-home/uploads/main.tar.gz (did you mean main.py?)"
            "; allowed: a file of the archive, by its path from the archive's root",
        ),
        Row(
            "a script of a folder that was packed instead of its contents",
            {"code": "s3://yard-home/uploads/folder.tar.gz", "command": "python train.py"},
            "command: runs train.py, which is not in s3://yard-home/uploads/folder.tar.gz (it is at digits/train.py: pack the"
            " folder's contents, as `tar -C digits -czf code.tar.gz .` does)"
            "; allowed: a file of the archive, by its path from the archive's root",
        ),
        (
            "a program of the archive that it lacks",
            ["./start.sh"],
            "runs ./start.sh, which is not in s3://yard-home/uploads/a.tar.gz"
            "; allowed: a file of the archive, by its path from the archive's root",
        ),
        *archives.COMMAND_ROWS,
        ("a number among the words", ["python", "train.py", 5], ".2: 5 is not a string"),
        ("a NUL character", ["python", "a\x00b"], ".1: holds a NUL character; allowed: all others"),
        ("1,001 words", ["x"] * 1001, "has 1,001 entries"),
        ("a word longer than Linux takes", ["python", "é" * 64001], ".1: has 128,002 bytes"),
        (
            "half of a surrogate pair",
            ["python", "\ud800"],
            '.1: "\\ud800" is not valid Unicode (it holds half of a surrogate pair)',
        ),
        ("an object", {"python": "train.py"}, "an object is not a list"),
    ),
)
