"""A command that is one text: what a shell would act on is refused, and what is quoted is not."""

from __future__ import annotations

import shlex

import pytest

from job_requests.reading import read
from job_requests.shell import shell_syntax
from tests.builders import ADMISSION
from tools.refusals.jobs import LEAST

A_SHELLS = {
    "python a.py && python b.py": ["&&"],
    "python a.py || true": ["||"],
    "python a.py | tee log": ["|"],
    "python a.py; ls": [";"],
    "python a.py;": [";"],
    "python a.py > log": [">"],
    "python a.py >> log 2>&1": [">>", "2>&"],
    "python a.py < in": ["<"],
    "cat <<END": ["<<"],
    "python a.py &": ["&"],
    "python a.py --rank $NODE_RANK": ["$NODE_RANK"],
    "python a.py --rank=${NODE_RANK:-0}": ["${NODE_RANK:-0}"],
    'python a.py "$NODE_RANK"': ["$NODE_RANK"],
    "echo $?": ["$?"],
    "echo $'a'": ["$'"],
    "python a.py `nproc`": ["`nproc`"],
    'python a.py "`nproc`"': ["`nproc`"],
    "python a.py $(nproc --all)": ["$(nproc --all)"],
    r'echo "\$HOME"': [r"\$"],
    "(python a.py)": ["(", ")"],
    "python -c print(1)": ["(", ")"],
    "python a.py data/*.csv": ["data/*.csv"],
    "python a.py shard-?.tar": ["shard-?.tar"],
    "python a.py 'a'*": ["*"],
    "python a.py ~/data": ["~/data"],
    "python a.py # twice": ["# twice"],
    "python a.py\npython b.py": ["a line break"],
    "python a.py \\\n --lr 1": ["a line break"],
    "LR=1 python a.py": ["LR=1"],
    "PATH+=:x python a.py": ["PATH+=:x"],
    "cd src": ["cd"],
    "export A=b": ["export"],
    "source venv/bin/activate": ["source"],
    ". venv/bin/activate": ["."],
}
PLAIN = (
    "python train.py --epochs 20",
    "  python train.py\n",
    "python -c 'import os; print(os.environ[\"HOME\"])'",
    'python -c "import a; b(1 | 2) > 3"',
    "python -c 'print(\"$HOME\", `x`)'",
    r"python a.py \$HOME \; \* \& it\'s",
    "python a.py 'data/*.csv' \"shard-?.tar\"",
    "python a.py model.layers=[1,2] +a={b:1}",
    "python a.py --lr=1e-3 a=b ++x=y,z",
    "python a.py {% x %}",
    "python a.py a~b a#b 5$ 10%",
    "torchrun --nproc-per-node 4 --rdzv-endpoint=host:29500 train.py",
    "python a.py 's3://bucket/key?versionId=1&x=2'",
    "./run.sh éü-ñ@x^y!",
    "cdrecord x",
    'python a.py --suffix "" --prefix \'\' --name=""',
)


@pytest.mark.parametrize(("text", "pieces"), A_SHELLS.items())
def test_what_a_shell_would_act_on_is_found(text: str, pieces: list[str]) -> None:
    assert shell_syntax(text) == pieces


@pytest.mark.parametrize("text", A_SHELLS)
def test_the_list_form_of_the_same_words_is_taken_as_it_stands(text: str) -> None:
    for words in (["bash", "-c", text], text.split(" ")):
        request, problems = read({**LEAST, "command": words}, ADMISSION.limits)
        assert problems == []
        assert request.command == words


@pytest.mark.parametrize("text", PLAIN)
def test_what_a_shell_would_pass_on_is_taken_and_split_as_a_shell_splits_it(text: str) -> None:
    request, problems = read({**LEAST, "command": text}, ADMISSION.limits)
    assert problems == []
    assert request.command == shlex.split(text)


@pytest.mark.parametrize(
    "text", ["x" * 200_000, "=$" * 100_000, "${" * 100_000, "'a'" * 60_000, '"\\$' * 60_000, "a* " * 60_000]
)
def test_a_text_of_any_making_is_read_once(text: str) -> None:
    shell_syntax(text)
