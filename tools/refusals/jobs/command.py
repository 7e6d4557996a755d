"""Refusals of the command."""

from __future__ import annotations

from tools.refusals.jobs.table import Row, Section

COMMAND = Section(
    "command",
    "a list of 1 to 1,000 texts, or one text of such words",
    entry="texts of up to 128,000 bytes",
    taken=["python", "train.py", "--epochs", "20"],
    rows=(
        Row("missing", {}, "command: is missing", without=("command",)),
        Row("null", {"command": None}, "command: null is not a list"),
        Row("an empty list", {"command": []}, "command: is empty"),
        Row("an empty text", {"command": ""}, "command: is empty"),
        Row(
            "a blank program",
            {"command": [" ", "train.py"]},
            "command: its first word is blank; allowed: the program to run, then its arguments",
        ),
        Row(
            "a quote that is not closed",
            {"command": "python 'train.py"},
            (
                "command: cannot be split into words (No closing quotation)"
                "; allowed: a list of texts, or words quoted as for a shell"
            ),
        ),
        Row(
            "two commands and a variable",
            {"command": "echo $NODE_RANK && ls"},
            "command: has what only a shell understands, and no shell runs it: $NODE_RANK &&"
            '; allowed: ["bash", "-c", "echo $NODE_RANK && ls"], or quotes around what the program is to see as it stands',
        ),
        Row(
            "a pipe, a redirection, a pattern and a background process",
            {"command": "cat *.txt | sort > all &"},
            "command: has what only a shell understands, and no shell runs it: *.txt | > and 1 more"
            '; allowed: ["bash", "-c", "cat *.txt | sort > all &"], or quotes around what the program is to see as it stands',
        ),
        Row(
            "a variable in double quotes",
            {"command": "python -c \"print('$HOME')\""},
            "command: has what only a shell understands, and no shell runs it: $HOME"
            '; allowed: ["bash", "-c", "python -c \\"print(\'$HOME\')\\""]'
            ", or quotes around what the program is to see as it stands",
        ),
        Row(
            "a variable that is set ahead of the program",
            {"command": "OMP_NUM_THREADS=4 python train.py"},
            "command: has what only a shell understands, and no shell runs it: OMP_NUM_THREADS=4"
            '; allowed: ["bash", "-c", "OMP_NUM_THREADS=4 python train.py"]'
            ", or quotes around what the program is to see as it stands",
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
        Row(
            "a program of the archive that it lacks",
            {"command": ["./start.sh"]},
            "command: runs ./start.sh, which is not in s3://yard-home/uploads/a.tar.gz"
            "; allowed: a file of the archive, by its path from the archive's root",
        ),
        Row("a number among the words", {"command": ["python", "train.py", 5]}, "command.2: 5 is not a string"),
        Row(
            "a NUL character",
            {"command": ["python", "a\x00b"]},
            "command.1: holds a NUL character; allowed: all others",
        ),
        Row("1,001 words", {"command": ["x"] * 1001}, "command: has 1,001 entries"),
        Row("a word longer than Linux takes", {"command": ["python", "é" * 64001]}, "command.1: has 128,002 bytes"),
        Row(
            "half of a surrogate pair",
            {"command": ["python", "\ud800"]},
            'command.1: "\\ud800" is not valid Unicode (it holds half of a surrogate pair)',
        ),
        Row("an object", {"command": {"python": "train.py"}}, "command: an object is not a list"),
    ),
)
