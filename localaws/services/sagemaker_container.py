"""Prepares a training container: the /opt/ml of SageMaker's contract, and the variables of the toolkit in AWS's own images.

An image that was really built runs in its own root, with SageMaker's folders mounted. Of any other, SageMaker's paths lie below the
container's folder; SAGEMAKER_BASE_DIR, the toolkit's own variable, names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localaws.containers.container import BASIC
from localaws.containers.images import Image, here
from localaws.containers.unpacked import Unpacked
from localaws.services import sagemaker_mpi as mpi
from localaws.services.sagemaker_code import PROGRAM, SUBMITTED, bring, chosen, words

BASE = "opt/ml"
TORCHRUN = "sagemaker_torch_distributed_enabled"
CHECKPOINTS = "/opt/ml/checkpoints"
MOUNTED = ("input", "model", "output")
"""SageMaker's folders that are not the image's; its code lies in another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One instance of a training."""

    name: str
    """Name in SageMaker's form, as in `algo-1`."""
    address: str
    """Address in 127.0.0.0/8, because names of hosts do not resolve here."""
    root: Path
    """The folder that the container would see as `/`; where the image has a root of its own, only of what SageMaker mounts."""
    own: Unpacked | None = None
    """The image's own root, where it was really built."""

    @property
    def base(self) -> Path:
        return self.root / BASE

    @property
    def seen(self) -> Path:
        """SageMaker's folder, as the program sees it."""
        return Path("/", BASE) if self.own else self.base

    def here(self, word: str) -> str:
        """Returns a path of the container as the program needs it."""
        return word if self.own else here(self.root, word)

    def inside(self, folder: str) -> Path:
        """Returns a folder of the container as the program needs it."""
        return Path(folder) if self.own else self.root / folder.lstrip("/")

    def place(self, path: str) -> Path:
        """Returns where this computer has a file of the container: SageMaker's, or the image's own."""
        found = self.root / path.lstrip("/")
        return self.own.root / path.lstrip("/") if self.own and not found.exists() else found

    @property
    def shell(self) -> Path:
        """Where this computer has the folder that all hosts of the training share for what stands for ssh."""
        return self.root.parent / "shell"

    @property
    def seen_shell(self) -> str:
        return mpi.SHELL_FOLDER if self.own else str(self.shell)

    @property
    def code_folder(self) -> Path:
        """Where this computer has the code that the toolkit brings."""
        return self.base / "code"

    @property
    def code(self) -> Path:
        """Where this computer has the code that runs: the image's, if it has any."""
        baked = self.own.root / BASE / "code" if self.own else self.code_folder
        return baked if baked.is_dir() and any(baked.iterdir()) else self.code_folder


@dataclass(frozen=True, slots=True)
class Started:
    """How a container is started."""

    command: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    by_toolkit: bool
    """Whether AWS's toolkit writes the failure file if the program does not."""
    processes: int = 0
    """Processes of a host under mpirun; 0 without."""
    follows: bool = False
    """Whether it ends with the first host, which runs mpirun: that host's failure comes before its own."""


def lay_out(host: Host, hosts: Sequence[Host], request: Mapping[str, Any]) -> None:
    """Makes the folders and the files of input/config; whoever fetches data and checkpoints adds those."""
    for name in ("input/config", "input/data", "model", "output/data", "code", "checkpoints"):
        (host.base / name).mkdir(parents=True, exist_ok=True)
    config = host.base / "input/config"
    channels = {one["ChannelName"]: _channel(one) for one in request.get("InputDataConfig", [])}
    for name, document in (
        ("hyperparameters", request.get("HyperParameters", {})),
        ("resourceconfig", _resources(host, hosts, request)),
        ("inputdataconfig", channels),
    ):
        (config / f"{name}.json").write_text(json.dumps(document))


def started(
    image: Image, host: Host, hosts: Sequence[Host], request: Mapping[str, Any], *, ami: Path, port: int
) -> Started:
    """`port`: where the first host listens for the others. Raises NotRunnable if the image names nothing that can be run."""
    variables = {
        "PATH": BASIC if host.own else f"{ami.absolute() / 'bin'}:{BASIC}",
        "HOME": "/root" if host.own else str(host.root / "root"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "SAGEMAKER_BASE_DIR": str(host.seen),
        **(image.variables if host.own else image.environment(host.root)),
        **platform_variables(request),
    }
    if command := own_words(image, request):
        start = Started([host.here(word) for word in command], variables, host.inside(image.workdir), by_toolkit=False)
    else:
        start = _by_toolkit(host, hosts, request, variables, request.get("HyperParameters", {}), port)
    return _in_its_root(host, start, request) if host.own else start


def own_words(image: Image, request: Mapping[str, Any]) -> list[str]:
    """Returns what runs without AWS's toolkit; empty where the image leaves that to it."""
    algorithm = request["AlgorithmSpecification"]
    if algorithm.get("ContainerEntrypoint"):
        return [*algorithm["ContainerEntrypoint"], *algorithm.get("ContainerArguments", [])]
    return [*image.entrypoint, *algorithm.get("ContainerArguments", ["train"])] if image.entrypoint else []


def platform_variables(request: Mapping[str, Any]) -> dict[str, str]:
    """Returns what SageMaker itself sets in every container; all names with SM_ are the toolkit's."""
    return {**request.get("Environment", {}), "TRAINING_JOB_NAME": request["TrainingJobName"]}


def checkpoints_at(request: Mapping[str, Any]) -> str:
    """Returns the folder of the container whose files SageMaker keeps."""
    return str(request.get("CheckpointConfig", {}).get("LocalPath", CHECKPOINTS))


def _by_toolkit(
    host: Host,
    hosts: Sequence[Host],
    request: Mapping[str, Any],
    variables: dict[str, str],
    given: Mapping[str, str],
    port: int,
) -> Started:
    """Starts an image based on one of AWS's: its entry point is the toolkit, which runs a program of the image's code."""
    program = chosen(variables, str(plain(given.get(PROGRAM.lower(), ""))))
    bring(host.code, str(plain(given.get(SUBMITTED.lower(), ""))) or variables.get(SUBMITTED, ""), host.place)
    launcher = list[str]()
    if plain(given.get(TORCHRUN, "")) is True:
        launcher += ["-m", "torch.distributed.run", "--nnodes", str(len(hosts)), "--nproc_per_node", "1"]
        launcher += ["--master_addr", hosts[0].address, "--master_port", str(port)]
        launcher += ["--node_rank", str([one.name for one in hosts].index(host.name))]
    folder = host.seen / "code"
    whole = {**variables, **_toolkit(host, hosts, request, program, port), **variables_of_parameters(given)}
    whole["PYTHONPATH"] = ":".join(filter(None, (str(folder), whole.get("PYTHONPATH", ""))))
    ours = {name: plain(value) for name, value in given.items() if _toolkits(name)}
    if mpi.is_enabled(ours):
        return _under_mpirun(
            host, hosts, ours, words(host.code, program, host.root, _arguments(given), mpi.PYTHON), whole
        )
    command = words(host.code, program, host.root, _arguments(given), launcher)
    return Started(command, whole, folder, by_toolkit=True)


def _under_mpirun(
    host: Host, hosts: Sequence[Host], given: Mapping[str, Any], program: Sequence[str], variables: dict[str, str]
) -> Started:
    """The first host runs mpirun. Hosts without roots of their own have each their own paths: none is told those of the first."""
    mpi.share_shell(host.shell)
    whole = {**variables, **mpi.ONE_COMPUTER, "PATH": f"{host.seen_shell}:{variables['PATH']}"}
    exported = sorted(name for name in whole if name in mpi.EXPORTED or name.startswith("SM_"))
    if not host.own:
        temporary = host.root / "tmp"
        temporary.mkdir(exist_ok=True)
        whole["TMPDIR"] = str(temporary)
        exported = [name for name in exported if str(host.root) not in whole[name]]
        program = mpi.begin_in_own_code(program)
    if host.address == hosts[0].address:
        command = mpi.build_mpirun(program, [one.address for one in hosts], given, exported)
    else:
        command = mpi.build_worker(host.seen_shell, host.address)
    follows = host.address != hosts[0].address
    return Started(command, whole, host.seen / "code", True, mpi.count_processes(given), follows)


def _in_its_root(host: Host, start: Started, request: Mapping[str, Any]) -> Started:
    """The same in the image's own root: SageMaker's folders are mounted, and the code that the toolkit brought."""
    assert host.own is not None
    places = [*(f"/{BASE}/{name}" for name in MOUNTED), checkpoints_at(request)]
    places += [f"/{BASE}/code"] if any(host.code_folder.iterdir()) else []
    mounts = [(str(host.root / place.lstrip("/")), place, False) for place in places]
    mounts += [(str(host.shell), host.seen_shell, False)] if start.processes else []
    command = host.own.command(
        start.command, start.variables, note=host.root / "start.json", mounts=mounts, folder=str(start.folder)
    )
    return replace(start, command=command, variables={}, folder=host.root)


def plain(text: str) -> Any:
    """Reads a hyperparameter as the toolkit does: as JSON if it is valid, otherwise as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def variables_of_parameters(given: Mapping[str, str]) -> dict[str, str]:
    """`SM_HP_BATCH_SIZE` for `batch-size`."""
    return {f"SM_HP_{_upper(name)}": _text(plain(value)) for name, value in given.items() if not _toolkits(name)}


def _arguments(given: Mapping[str, str]) -> list[str]:
    found = []
    for name, value in sorted(given.items()):
        if not _toolkits(name):
            found += [f"-{name}" if len(name) == 1 else f"--{name}", _argument(plain(value))]
    return found


def _toolkit(host: Host, hosts: Sequence[Host], request: Mapping[str, Any], program: str, port: int) -> dict[str, str]:
    given = request.get("HyperParameters", {})
    own = {name: plain(value) for name, value in given.items() if not _toolkits(name)}
    channels = [one["ChannelName"] for one in request.get("InputDataConfig", [])]
    base, names = host.seen, [one.name for one in hosts]
    config = host.base / "input/config"
    return {
        "SM_HOSTS": json.dumps(names),
        "SM_CURRENT_HOST": host.name,
        "SM_MASTER_ADDR": hosts[0].address,
        "MASTER_ADDR": hosts[0].address,
        "MASTER_PORT": str(port),
        "SM_NUM_GPUS": "0",
        "SM_NUM_CPUS": str(os.cpu_count() or 1),
        "SM_CURRENT_INSTANCE_TYPE": request["ResourceConfig"]["InstanceType"],
        "SM_NETWORK_INTERFACE_NAME": "lo",
        "SM_LOG_LEVEL": "20",
        "SM_HPS": json.dumps(own),
        "SM_USER_ARGS": json.dumps(_arguments(given)),
        "SM_CHANNELS": json.dumps(sorted(channels)),
        **{f"SM_CHANNEL_{_upper(one)}": str(base / "input/data" / one) for one in channels},
        "SM_INPUT_DIR": str(base / "input"),
        "SM_INPUT_CONFIG_DIR": str(base / "input/config"),
        "SM_INPUT_DATA_CONFIG": (config / "inputdataconfig.json").read_text(),
        "SM_RESOURCE_CONFIG": (config / "resourceconfig.json").read_text(),
        "SM_MODEL_DIR": str(base / "model"),
        "SM_OUTPUT_DIR": str(base / "output"),
        "SM_OUTPUT_DATA_DIR": str(base / "output/data"),
        "SM_MODULE_DIR": str(base / "code"),
        "SM_MODULE_NAME": program.removesuffix(".py"),
    }


def _channel(given: Mapping[str, Any]) -> dict[str, str]:
    source = given["DataSource"]["S3DataSource"]
    return {
        "TrainingInputMode": given.get("InputMode", "File"),
        "S3DistributionType": source.get("S3DataDistributionType", "FullyReplicated"),
        "RecordWrapperType": given.get("RecordWrapperType", "None"),
    }


def _resources(host: Host, hosts: Sequence[Host], request: Mapping[str, Any]) -> dict[str, Any]:
    names, kind = [one.name for one in hosts], request["ResourceConfig"]["InstanceType"]
    return {
        "current_host": host.name,
        "current_instance_type": kind,
        "current_group_name": "homogeneousCluster",
        "hosts": names,
        "instance_groups": [{"instance_group_name": "homogeneousCluster", "instance_type": kind, "hosts": names}],
        "network_interface_name": "lo",
    }


def _toolkits(name: str) -> bool:
    return name.startswith("sagemaker_")


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _text(value: Any) -> str:
    """The value of a variable: text as it is, nothing for null, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _argument(value: Any) -> str:
    """The argument of a program: an object's entries behind commas, nothing for null, anything else as Python prints it."""
    if isinstance(value, dict):
        return ",".join(f"{name}={one}" for name, one in sorted(value.items()))
    return "" if value is None else str(value)
