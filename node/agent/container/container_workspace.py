"""The job's container as the workspace of its training: pulls the image beside everything else, and runs it on the job's folders."""

from __future__ import annotations

import base64
import os
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.container import pulling
from agent.container.docker import Docker
from agent.container.options import DOCKERS_OWN, ENV_LINE, DockerEnvironment, Hardware, Mount, run
from agent.container.process import ContainerProcess
from agent.credentials import CredentialsExpired
from agent.disk import devices
from agent.failures import CannotStart, MachineTrouble, Ordered
from agent.missing_modules import explain_in_image
from agent.requirements import REQUIREMENTS
from agent.workspace import Folders
from contract import containers, training
from contract.containers import Container
from contract.jobs import Job, Launcher
from contract.mounts import JobMount
from contract.workbench import FOLDER as BENCH

LOOK_S = 0.2
KINDS = ("infiniband/uverbs*", "infiniband/rdma_cm")
"""Device files of EFA below /dev."""
NEURON = ("neuron[0-9]*",)
NVIDIA = ("nvidia[0-9]*", "nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "gdrdrv")
"""Also those that the NVIDIA toolkit gives: of them systemd does not know, and takes them away when it reads its units anew."""


class ContainerWorkspace:
    """Runs the training in the job's container. Any thread may close it."""

    def __init__(
        self,
        job: Job,
        container: Container,
        region: str,
        *,
        root: Path,
        work: Path,
        variables: Mapping[str, str],
        mounts: Sequence[tuple[Path, JobMount]] = (),
        token: Callable[[str], str],
        instance_type: Callable[[], str],
        pause: Callable[[float], None],
        note: Callable[[str], None],
        tell: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`mounts` says where the machine has the job's file systems; `token` gives the login of a registry's region, and raises
        CredentialsExpired; `pause` raises Ordered where an order comes; `tell` says in the node's report what it waits for."""
        self._job, self._container, self._address = job, container, container.address(region)
        self._root, self._work, self._variables, self._mounted = root, work, variables, mounts
        self._token, self._instance_type, self._pause = token, instance_type, pause
        self._note, self._tell, self._monotonic = note, tell, monotonic
        self._settings = work / "docker"
        self._docker: Docker | None = None
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._puller = threading.Thread(target=self._pull_noting, name="pull", daemon=True)
        self.progress_file = work / "progress" / "progress.json"
        self.folders = Folders(
            checkpoints=containers.CHECKPOINTS,
            artifacts=containers.ARTIFACTS,
            progress_file=f"{containers.PROGRESS}/{self.progress_file.name}",
            role=containers.ROLE,
            launcher=containers.LAUNCHER,
        )
        for folder in (self.progress_file.parent, work / "data"):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def python(self) -> None:
        """Nothing: the training's Python is in the image."""

    def begin(self) -> None:
        self._puller.start()

    def prepare(self, code: Path) -> dict[str, str]:
        """Raises CannotStart or MachineTrouble where the image cannot be pulled, in the registry's words."""
        if (code / REQUIREMENTS).is_file():
            self._note(f"{REQUIREMENTS} of the code is not installed: the job's image has its libraries")
        if self._puller.is_alive():
            self._tell(f"pulls the image {self._address}")
        while self._puller.is_alive():
            self._pause(LOOK_S)
        self._tell("")
        if self._failure is not None:
            raise self._failure
        return {}

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        arguments: Sequence[str] = (),
    ) -> ContainerProcess:
        assert self._docker is not None, "prepare comes first"
        said, file = DockerEnvironment.of(environment), self._settings / "environment"
        if unsafe := [name for name in said.passed if DOCKERS_OWN.fullmatch(name)]:
            raise CannotStart(
                f"the value of {unsafe[0]} has more than one line or {ENV_LINE:,} bytes, and docker itself would obey it: set it in the "
                "image, or by a script that the container runs"
            )
        absent = training.OTHER_CREDENTIALS - environment.keys() if self._job.job_role else frozenset[str]()
        self._settings.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text("".join(f"{line}\n" for line in said.lines), "utf-8")
        further = [*(["code"] if self._job.code else []), *(["launcher"] if self._has_scripts else [])]
        for name in ("checkpoints", "artifacts", "data", "progress", *further):
            open_to_all(self._work / name)
        self._docker.remove()  # one that another run of the agent left
        words = run(
            self._address,
            command=command,
            arguments=arguments,
            mounts=self._mounts(),
            environment_file=file,
            passed=sorted({*said.passed, *absent}),
            folder=containers.CODE if self._job.code else "",
            hardware=self._hardware(),
        )
        own = {name: value for name, value in self._docker.variables.items() if name not in absent}
        return ContainerProcess(
            self._docker, words, folder=self._work, variables={**own, **said.passed}, on_line=on_line
        )

    def explain(self, status: int, tail: Sequence[str]) -> str:
        return explain_in_image(tail) if status else ""

    def close(self) -> None:
        self._closed.set()
        if self._docker is not None:
            self._docker.give_up()
            if trouble := self._docker.remove():
                self._note(f"the container may still be there: {trouble}")
            self._docker.forget()

    @property
    def _has_scripts(self) -> bool:
        return self._job.launcher is not Launcher.NONE or self._job.workbench is not None

    def _mounts(self) -> list[Mount]:
        shown = {"checkpoints": containers.CHECKPOINTS, "artifacts": containers.ARTIFACTS, "data": containers.DATA}
        shown["progress"] = containers.PROGRESS
        mounts = [Mount(source=self._work / name, target=target) for name, target in shown.items()]
        if self._has_scripts:
            mounts.append(Mount(source=self._work / "launcher", target=containers.LAUNCHER))
        if self._job.workbench is not None and not self._job.benches_on_a_mount:
            mounts.append(Mount(source=self._work / "checkpoints", target=BENCH))
        if self._job.code:
            mounts.append(Mount(source=self._work / "code", target=containers.CODE))
        if self._job.job_role:
            mounts.append(Mount(source=self._work / "role", target=containers.ROLE, read_only=True))
        mounts += [Mount(source=place, target=one.at, read_only=one.read_only) for place, one in self._mounted]
        return mounts

    def _hardware(self) -> Hardware:
        kind = self._kind()
        gpus = bool(self._job.gpus.get(kind)) or (self._root / "dev/nvidia0").exists()
        found = list[tuple[Path, str]]()
        for wanted, patterns in (
            (self._job.efas_of(kind), KINDS),
            (self._job.neurons.get(kind, 0), NEURON),
            (gpus, NVIDIA),
        ):
            for pattern in patterns if wanted else ():
                found += [
                    (file, f"/dev/{file.relative_to(self._root / 'dev')}")
                    for file in sorted((self._root / "dev").glob(pattern))
                ]
        return Hardware(
            gpus=gpus, devices=tuple(found), shared_bytes=_memory() // 2, most_processes=_most_processes() * 3 // 4
        )

    def _kind(self) -> str:
        try:
            return self._instance_type()
        except OSError as problem:
            raise MachineTrouble(f"the metadata service does not tell the instance type: {problem}") from problem

    def _pull_noting(self) -> None:
        try:
            self._pull()
        except Exception as problem:
            self._failure = problem
        finally:
            if self._docker is not None:
                self._docker.forget()

    def _pull(self) -> None:
        docker = self._docker = Docker(self._settings, self._variables)
        places = docker.places()
        if docker.has(self._address):
            self._note(f"the machine has the image {self._address} already")
            return
        with suppress(OSError):  # a folder that cannot be checked: the pull will say what is wrong
            if lacking := pulling.lacks_room(min(map(devices.free, places)), self._container.size):
                raise CannotStart(f"the image {self._address} does not fit: {lacking}")
        began, said = self._monotonic(), ""
        for number in range(pulling.TRIES):
            if number and self._closed.wait(pulling.AGAIN_S):
                raise Ordered
            said = self._pulled(docker)
            if not said:
                self._note(f"pulled the image {self._address} in {self._monotonic() - began:.1f} s")
                return
            if pulling.why(said) is not pulling.Why.PASSING:
                break
            self._note(f"the image is not pulled yet: {said.strip()[-pulling.WORDS :]}")
        raise pulling.failure(self._address, said)

    def _pulled(self, docker: Docker) -> str:
        """What docker says where the pull fails; empty where it goes well."""
        registry = self._address.partition("/")[0]
        while True:
            try:
                token = self._token(registry.split(".")[3])
                break
            except CredentialsExpired:
                if self._closed.wait(pulling.AGAIN_S):
                    raise
            except Exception as problem:
                return f"ECR gives no login: {type(problem).__name__}: {problem}"
        password = base64.b64decode(token).decode().partition(":")[2]
        said = docker.login(registry, password)
        if said.code == 0:
            said = docker.pull(self._address, self._job.timing.prepare_allowance_s)
        return "" if said.code == 0 else said.text.strip() or f"docker ended with {said.code}"


def open_to_all(folder: Path) -> None:
    """Lets every user write there, because the image says as whom its processes run. Follows no links."""
    for path, names, files in os.walk(folder):
        for one in (Path(path), *(Path(path, name) for name in (*names, *files))):
            with suppress(OSError):
                if not one.is_symlink():
                    one.chmod(0o777 if one.is_dir() else (one.stat().st_mode | 0o666) & 0o777)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _most_processes() -> int:
    """Processes and threads that the kernel allows all together."""
    found = [resource.getrlimit(resource.RLIMIT_NPROC)[1]]
    for name in ("pid_max", "threads-max"):
        with suppress(OSError, ValueError):
            found.append(int(Path("/proc/sys/kernel", name).read_text("ascii")))
    return min((one for one in found if one > 0), default=32_768)
