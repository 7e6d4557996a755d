"""Which commands start processes of their own, and which of these would leave each of several machines alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import pytest

from refusals.commands import find_shell_text
from refusals.launching import find_fault, find_launches, read_options

STARTING = {
    "torchrun train.py": "torchrun",
    "/opt/conda/bin/torchrun --nnodes=2 train.py": "/opt/conda/bin/torchrun",
    "python -m torch.distributed.run train.py": "python -m torch.distributed.run",
    "/usr/bin/python3.12 -u -m torch.distributed.launch a.py": "/usr/bin/python3.12 -m torch.distributed.launch",
    "venv/bin/python -m torch.distributed.run a.py": "venv/bin/python -m torch.distributed.run",
    "python3 -um torch.distributed.run a.py": "python3 -m torch.distributed.run",
    "python3 -mtorch.distributed.run a.py": "python3 -m torch.distributed.run",
    "python -W ignore /usr/local/bin/torchrun a.py": "python /usr/local/bin/torchrun",
    "mpirun -np 2 ./a": "mpirun",
    "/usr/bin/mpirun ./a": "/usr/bin/mpirun",
    "mpiexec.hydra ./a": "mpiexec.hydra",
    "prterun ./a": "prterun",
    "accelerate launch a.py": "accelerate launch",
    "accelerate-launch a.py": "accelerate-launch",
    "python -m accelerate.commands.launch a.py": "python -m accelerate.commands.launch",
    "python -m accelerate.commands.accelerate_cli launch a.py": "python -m accelerate.commands.accelerate_cli launch",
    "deepspeed a.py": "deepspeed",
    "python -m deepspeed.launcher.runner a.py": "python -m deepspeed.launcher.runner",
    "horovodrun -np 4 python a.py": "horovodrun",
    "colossalai run a.py": "colossalai run",
    "composer -n 8 a.py": "composer",
    "python -m composer.cli a.py": "python -m composer.cli",
    "lightning run model a.py": "lightning run",
    "fabric run a.py": "fabric run",
    "fleetrun a.py": "fleetrun",
    "python -m paddle.distributed.launch a.py": "python -m paddle.distributed.launch",
    "srun a": "srun",
    "ray start --head": "ray start",
    "ray job submit -- python a.py": "ray job submit",
    # Behind programs that start others.
    "env -u B A=1 torchrun a.py": "torchrun",
    "nice -n 10 torchrun a.py": "torchrun",
    "nice -10 nohup torchrun a.py": "torchrun",
    "timeout -k 5 --signal=INT 2h torchrun a.py": "torchrun",
    "stdbuf -oL -e 0 torchrun a.py": "torchrun",
    "numactl --cpunodebind=0 -m 0 torchrun a.py": "torchrun",
    "taskset -c 0-3 torchrun a.py": "torchrun",
    "sudo -E env PATH=/x torchrun a.py": "torchrun",
    "tini -s -- torchrun a.py": "torchrun",
    "nsys profile -o out --trace=cuda torchrun a.py": "torchrun",
    "uv run torchrun a.py": "torchrun",
    "uv run --with accelerate --no-sync -- torchrun a.py": "torchrun",
    "uv run -m torch.distributed.run a.py": "python -m torch.distributed.run",
    "uv tool run --from torch torchrun a.py": "torchrun",
    "uvx accelerate launch a.py": "accelerate launch",
    "poetry run accelerate launch a.py": "accelerate launch",
    "pipenv run torchrun a.py": "torchrun",
    "conda run -n x --no-capture-output torchrun a.py": "torchrun",
    "micromamba run -p /x torchrun a.py": "torchrun",
    "env uv run python3.11 -m torch.distributed.run a.py": "python3.11 -m torch.distributed.run",
}
NOT_STARTING = (
    "python train.py",
    "python torchrun.py",
    "python train.py torchrun",
    "python train.py --launcher accelerate",
    "python train.py --deepspeed ds.json",
    "python train.py -m torch.distributed.run",
    "python -m package -m torch.distributed.run",
    "python -c torchrun",
    "python -m",
    "python",
    "./torchrun.sh",
    "./torchrun train.py",
    "./deepspeed train.py",
    "my-mpirun ./a",
    "echo torchrun",
    "bash run.sh torchrun",
    "bash torchrun.sh",
    "accelerate config",
    "accelerate env",
    "accelerate",
    "composer install",
    "tune run lora_finetune_single_device --config c.yaml",
    "tune download model",
    "lightning run app",
    "fabric",
    "ray status",
    "colossalai check -i",
    "env",
    "env A=1",
    "uv sync",
    "uv pip install accelerate",
    "conda run -n deepspeed python train.py",
    "conda install torchrun",
    "uv run --with deepspeed python train.py",
    "uv run --extra accelerate train.py",
    "uv run --an-option-of-tomorrow torchrun train.py",
    "timeout 10 python train.py",
    "which torchrun",
    "command -v torchrun",
)
STARTING_IN_TEXT = {
    "torchrun train.py": "torchrun",
    "exec /usr/bin/mpirun -np 2 ./a > log": "/usr/bin/mpirun",
    "exec -a trainer torchrun train.py": "torchrun",
    "OMP_NUM_THREADS=4 A= torchrun train.py && echo done": "torchrun",
    'A="b c" B=$(date) torchrun train.py': "torchrun",
    "torchrun \\\n  --nnodes 2 train.py": "torchrun",
    "  'mpirun' ./a": "mpirun",
    "python -m torch.distributed.run $X": "python -m torch.distributed.run",
    "$PYTHON -m torch.distributed.run a.py": "$PYTHON -m torch.distributed.run",
    "python prepare.py && torchrun train.py": "torchrun",
    "set -e\ncd src; source venv/bin/activate\ntorchrun train.py 2>&1 | tee log": "torchrun",
    "cd src || exit 1; torchrun train.py": "torchrun",
    "time torchrun train.py": "torchrun",
    "bash -c 'torchrun train.py'": "torchrun",
    "eval 'torchrun train.py'": "torchrun",
    "(torchrun train.py)": "torchrun",
    "command torchrun train.py": "torchrun",
    "while ! torchrun --nproc_per_node 8 t.py; do sleep 1; done": "torchrun",
    "until torchrun t.py; do sleep 1; done": "torchrun",
    "for x in 1 2; do torchrun train.py; done": "torchrun",
    "if [ -f x ]; then torchrun t.py; else torchrun t.py --resume; fi": "torchrun",
}
UNCERTAIN = (
    "if test -e a; then torchrun train.py; fi",
    "[ $NODE_RANK = 0 ] && torchrun train.py",
    "python train.py || torchrun train.py",
    "for x in $HOSTS; do torchrun train.py; done",
    "while test -e a; do torchrun train.py; done",
    "if a; then torchrun --nnodes 2 --master-addr h t.py; else torchrun t.py; fi",
    "if a; then torchrun t.py; else python t.py; fi",
    "if a; then torchrun t.py; else torchrun $X t.py; fi",
    "if [ $NODE_RANK = 0 ]; then torchrun t.py; else torchrun t.py --worker; fi",
    "$LAUNCH train.py",
    "torchrun$X train.py",
    "# torchrun\npython train.py",
    "python\n-m torch.distributed.run",
    "echo torchrun",
    "command -v torchrun && python train.py",
    "'torchrun train.py'",
    '"torchrun',
    "torchrun() { python train.py; }; torchrun",
    "exec python train.py; torchrun train.py",
    "cat >run.sh <<END\ntorchrun train.py\nEND\nbash run.sh",
    "",
)
SHELLS = (
    ["bash", "-c"],
    ["/bin/sh", "-ec"],
    ["bash", "-euo", "pipefail", "-c"],
    ["bash", "-c", "-x"],
    ["bash", "--login", "-c"],
    ["bash", "-lc"],
)


def name(words: Sequence[str]) -> list[str]:
    return [one.words for one in find_launches(words)]


@pytest.mark.parametrize(("command", "words"), STARTING.items())
def test_a_command_that_starts_processes_is_known(command: str, words: str) -> None:
    assert name(shlex.split(command)) == [words]


@pytest.mark.parametrize("command", NOT_STARTING)
def test_a_command_that_only_looks_so_starts_none(command: str) -> None:
    assert name(shlex.split(command)) == []


@pytest.mark.parametrize(("text", "words"), STARTING_IN_TEXT.items())
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_launcher_that_certainly_runs_in_the_text_of_a_shell_is_known(
    text: str, words: str, shell: list[str]
) -> None:
    assert name([*shell, text]) == [words]


@pytest.mark.parametrize("text", UNCERTAIN)
def test_what_a_shell_may_do_otherwise_is_not_guessed(text: str) -> None:
    assert name(["bash", "-c", text]) == []


@pytest.mark.parametrize(
    "command", [["bash", "run.sh"], ["bash", "-s"], ["bash", "--rcfile", "x", "-c", "a"], ["bash"], ["cat", "-c", "a"]]
)
def test_only_what_a_shell_reads_as_its_text_is_its_text(command: list[str]) -> None:
    assert find_shell_text(command) is None


def test_shells_in_shells_are_read_to_a_depth() -> None:
    words = ["torchrun", "train.py"]
    for _ in range(4):
        words = ["bash", "-c", shlex.join(words)]
    assert name(words) == ["torchrun"]
    assert name(["bash", "-c", shlex.join(["bash", "-c", shlex.join(words)])]) == []


# What each starts


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("torchrun --nproc_per_node=4 -r 3 train.py --nnodes 2", "train.py --nnodes 2"),
        ("torchrun --nproc 4 -m package.train --a", "python -m package.train --a"),
        ("torchrun --no-python ./run.sh", "./run.sh"),
        ("torchrun --an-option-of-tomorrow x train.py -a", "train.py -a"),
        ("torchrun --an-option-of-tomorrow x train", ""),
        ("accelerate launch --multi_gpu --num_processes 8 train.py -a", "train.py -a"),
        ("mpirun -np 4 ./a b", ""),
    ],
)
def test_what_a_launcher_starts_is_known_where_its_options_are(command: str, program: str) -> None:
    (launch,) = find_launches(shlex.split(command))
    assert shlex.join(read_options(launch).program) == program


# Two machines

COUNT, MASTER = "it names no number of nodes", "it names no address of rank 0"
ALONE: Mapping[str, str] = {
    "torchrun train.py": COUNT,
    "torchrun --nproc-per-node 4 train.py": COUNT,
    "torchrun --nproc-per-node 4 --node-rank 0 --master-addr 10.0.0.4 train.py": COUNT,
    "torchrun --standalone train.py": "--standalone is for one node",
    "torchrun --nnodes 2 --standalone train.py": "--standalone is for one node",
    "torchrun --nnodes 1 train.py": "--nnodes 1 is not the number of nodes",
    "torchrun --nnodes=1:1 train.py": "--nnodes 1:1 is not the number of nodes",
    "torchrun --nnodes 3 --rdzv-endpoint host:1 train.py": "--nnodes 3 is not the number of nodes",
    "torchrun --nnodes 3:8 --rdzv-endpoint host:1 train.py": "--nnodes 3:8 is not the number of nodes",
    "torchrun --nnodes 2 train.py": MASTER,
    "torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint localhost:29500 train.py": MASTER,
    "torchrun --nnodes 2 --master_addr 127.0.0.1 train.py": MASTER,
    "torchrun train.py --nnodes 2 --master-addr host": COUNT,
    "torchrun --nnodes $NUM_NODES --master-addr $MASTER_ADDR train.py": "no shell replaces $NUM_NODES",
    "env PET_NNODES=1 torchrun train.py": "PET_NNODES 1 is not the number of nodes",
    "python -m torch.distributed.launch --nproc_per_node 4 train.py": COUNT,
    "accelerate launch train.py": COUNT,
    "accelerate launch --multi_gpu --num_processes 8 --num_machines 1 train.py": "--num_machines 1 is not the number of nodes",
    "accelerate launch --num_machines 2 train.py": MASTER,
    "accelerate launch --config_file fsdp.yaml train.py": COUNT,
    "deepspeed train.py --deepspeed ds.json": COUNT,
    "deepspeed --num_gpus 4 train.py": COUNT,
    "deepspeed --num_nodes 1 train.py": "--num_nodes 1 is not the number of nodes",
    "mpirun -np 8 python train.py": "it names no other nodes (-H)",
    "horovodrun -np 8 python train.py": "it names no other nodes (-H)",
    "horovodrun -np 8 -H localhost:8 python train.py": "it names no other nodes (-H)",
    "mpirun --host localhost,127.0.0.1:4 python train.py": "it names no other nodes (-H)",
    "tune run --nproc_per_node 4 full_finetune_distributed --config c.yaml": COUNT,
    "colossalai run --nproc_per_node 8 train.py": COUNT,
    "composer -n 8 train.py": "it names no number of nodes (--world_size)",
    "fabric run --devices=2 train.py": COUNT,
    "python -m paddle.distributed.launch train.py": COUNT,
}
JOINED = (
    "torchrun --nnodes 2 --node-rank 0 --master-addr host train.py",
    "torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=host:29400 train.py",
    "torchrun --nnodes 1:2 --rdzv_endpoint host:29400 train.py",
    "torchrun --nnod 2 --master-a host train.py",
    "torchrun --an-option-of-tomorrow --nnodes 2 --master-addr host train.py",
    "env PET_NNODES=2 PET_RDZV_ENDPOINT=host:1 torchrun train.py",
    "accelerate launch --num_machines 2 --machine_rank 0 --main_process_ip host train.py",
    "accelerate launch --num-machines=2 --main-process-ip=host train.py",
    "deepspeed --hostfile hosts --no_ssh --node_rank 0 --master_addr host train.py",
    "deepspeed --num_nodes 2 --node_rank 0 --master_addr host train.py",
    "deepspeed -H hosts train.py",
    "mpirun -H a,b python train.py",
    "mpirun --mca orte_default_hostfile hosts python train.py",
    "env HYDRA_HOST_FILE=hosts mpiexec -n 8 python train.py",
    "horovodrun -np 8 -H a:4,b:4 python train.py",
    "colossalai run --hostfile hosts train.py",
    "composer --world_size 16 --node_rank 0 --master_addr host train.py",
    "fabric run --num-nodes 2 --main-address host train.py",
    "fleetrun --nnodes 2 --master host:1 train.py",
    "tune run --nnodes 2 --rdzv_endpoint host:1 full_finetune_distributed --config c.yaml",
    "srun -N 2 python train.py",
    "ray start --head",
)
ALONE_IN_TEXT = (
    "torchrun --nproc-per-node $GPUS train.py",
    "torchrun --nproc-per-node 4 train.py $ARGS",
    "torchrun --nnodes $NUM_NODES train.py",
    "torchrun --nnodes 1 --master-addr $MASTER_ADDR train.py",
    "accelerate launch --num_processes $GPUS train.py",
    "pip install x; accelerate launch train.py",
    "cd x && accelerate launch --config_file fsdp.yaml train.py",
    "export NNODES=$NUM_NODES; torchrun train.py",
)
JOINED_IN_TEXT = (
    "torchrun --nnodes $NUM_NODES --node-rank $NODE_RANK --nproc-per-node auto --master-addr $MASTER_ADDR train.py",
    'torchrun --nnodes="$NUM_NODES" --rdzv-endpoint "$MASTER_ADDR:29400" train.py',
    "torchrun --nnodes $WORLD_SIZE --node_rank $RANK --master_addr $(head -1 hosts) train.py",
    "torchrun --nnodes ${NUM_NODES:-1} --master-addr ${MASTER_ADDR} train.py",
    "N=$NUM_NODES; torchrun --nnodes $N:$N --rdzv_endpoint=$MASTER_ADDR train.py",
    "torchrun $ARGS train.py",
    'torchrun "${ARGS[@]}" train.py',
    'torchrun --nproc-per-node 4 "$@"',
    "accelerate launch --multi_gpu $ACCELERATE_ARGS train.py",
    "accelerate launch --an-option-of-tomorrow $EXTRA_ARGS train.py",
    "export PET_NNODES=$NUM_NODES PET_MASTER_ADDR=$MASTER_ADDR; torchrun train.py",
    "if [ $NUM_NODES -gt 1 ]; then export PET_NNODES=$NUM_NODES PET_MASTER_ADDR=$MASTER_ADDR; fi; torchrun train.py",
    "torchrun --nproc-per-node 4 train.py --hosts $NUM_NODES --rank $NODE_RANK --master $MASTER_ADDR",
    "accelerate launch --num_machines $NUM_NODES --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --num_processes 8 train.py",
    "envsubst <c.in >c.yaml && accelerate launch --config_file c.yaml train.py",
    "python write_hostfile.py > hostfile; deepspeed --hostfile=hostfile --no_ssh --node_rank=$NODE_RANK train.py",
    "WORLD_SIZE=$((NUM_NODES * 8)) composer train.py",
)


def list_faults(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    return [fault for one in find_launches(words) if (fault := find_fault(one, {2}, environment))]


@pytest.mark.parametrize(("command", "fault"), ALONE.items())
def test_a_launcher_that_leaves_each_of_two_machines_alone_is_named_with_its_fault(command: str, fault: str) -> None:
    (found,) = list_faults(shlex.split(command), {})
    assert found.startswith(fault)


@pytest.mark.parametrize("command", JOINED)
def test_a_launcher_that_is_told_of_both_machines_has_none(command: str) -> None:
    words = shlex.split(command)
    assert (bool(find_launches(words)), list_faults(words, {})) == (True, [])


@pytest.mark.parametrize("text", ALONE_IN_TEXT)
def test_variables_that_say_nothing_of_the_machines_join_none(text: str) -> None:
    assert len(list_faults(["bash", "-c", text], {})) == 1


@pytest.mark.parametrize("text", JOINED_IN_TEXT)
def test_variables_that_may_say_it_are_not_guessed(text: str) -> None:
    words = ["bash", "-c", text]
    assert (bool(find_launches(words)), list_faults(words, {})) == (True, [])


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("torchrun train.py", {"PET_NNODES": "2", "PET_MASTER_ADDR": "host"}),
        ("torchrun --nnodes 2 train.py", {"PET_RDZV_ENDPOINT": "host:1"}),
        ("composer train.py", {"WORLD_SIZE": "16"}),
        ("mpirun ./a", {"OMPI_MCA_orte_default_hostfile": "hosts"}),
    ],
)
def test_what_a_launcher_reads_from_its_environment_counts(command: str, environment: Mapping[str, str]) -> None:
    assert list_faults(shlex.split(command), environment) == []
    assert len(list_faults(shlex.split(command), {})) == 1


def test_every_launcher_of_a_text_is_judged() -> None:
    text = "torchrun --standalone a.py & torchrun --nnodes 2 --master-addr $MASTER_ADDR b.py; accelerate launch c.py"
    assert [fault.partition(" is")[0] for fault in list_faults(["bash", "-c", text], {})] == [
        "--standalone",
        "it names no number of nodes (--num_machines)",
    ]
