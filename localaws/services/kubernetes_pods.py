"""Stands for the operator of MPIJobs and the kubelet: runs the pods of a job as processes of this computer, in the roots of their images.

What it does is read from the operator's own source (kubeflow/mpi-operator 0.8: mpi_job_controller.go): workers first, then the launcher,
whose end is the job's; a worker that fails is waited for; a job that is suspended loses its pods. A container that is always started again
begins before the others and ends after them. In the place of sshd stands `containers/remote_shell.py`, where the image is made from one of
AWS's, which have it; elsewhere the words of the pod run as they are.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

from localaws.containers.base import LABEL
from localaws.containers.container import BASIC, Container
from localaws.containers.unpacked import Unpacked, built
from localaws.services import sagemaker_mpi as mpi
from localaws.services.kubernetes_model import Document, KubernetesModel, build_pods, is_over, is_suspended, write_time
from localaws.services.sagemaker_checks import REGISTRY

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOOK_S = 0.05
READY_S = 0.5
"""How long a container runs until its pod is ready; one that ends at once never is."""
LINES = 80
"""Lines of a container's log that its message has, where it failed."""
MOST_MESSAGE = 2048
HOST_FILE = "/etc/mpi/hostfile"
OF_LABEL = re.compile(r"metadata\.labels\['([^']+)'\]")
SSHD = "/usr/sbin/sshd"
FAILED = 128


class PodFailed(Exception):
    """A pod cannot start; the message is what the kubelet says."""


@dataclass(eq=False)
class Pod:
    """One pod, and its processes."""

    document: Document
    root: Path
    address: str
    containers: dict[str, Container] = field(default_factory=dict)
    lines: dict[str, deque[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def spec(self) -> Document:
        found: Document = self.document["spec"]
        return found

    @property
    def training(self) -> Document:
        """Its one container that is not a helper."""
        found: Document = self.spec["containers"][0]
        return found


class Operator:
    """Runs what the model says, each job in a thread of its own. `turn` is held while the model changes."""

    def __init__(
        self,
        aws: LocalAws,
        model: KubernetesModel,
        region: str,
        turn: threading.RLock,
        roles: Mapping[tuple[str, str], str],
    ) -> None:
        self._aws, self.model, self._region, self._turn, self._roles = aws, model, region, turn, roles
        self.runs: dict[str, JobRun] = {}
        """By the object's uid."""
        model.changed = self._change
        model.deleted = self._delete

    def _change(self, job: Document) -> None:
        uid = job["metadata"]["uid"]
        if uid not in self.runs:
            self.runs[uid] = JobRun(self, job)
            threading.Thread(target=self.runs[uid].run, name=job["metadata"]["name"], daemon=True).start()

    def _delete(self, job: Document) -> None:
        """What a job owns goes with it; of one that is over that is the launcher's pod."""
        self.runs[job["metadata"]["uid"]].gone.set()
        if is_over(job):
            self.model.remove_pods(job)

    def stop(self) -> None:
        for one in self.runs.values():
            one.gone.set()
        for one in self.runs.values():
            one.kill()

    # for its runs

    def pull(self, image: str) -> Unpacked:
        """Returns the image with its own root, pulled by the machine and not with the pod's role. Raises PodFailed."""
        found = REGISTRY.fullmatch(image)
        if not found:
            raise PodFailed(f"InvalidImageName: {image}")
        account, region, repository, tag, digest = found.groups()
        if not digest:
            ecr = self._aws.client("ecr", region, throttled=False)
            images = ecr.batch_get_image(registryId=account, repositoryName=repository, imageIds=[{"imageTag": tag}])
            if not images["images"]:
                raise PodFailed(f"ErrImagePull: {image}: not found")
            digest = images["images"][0]["imageId"]["imageDigest"]
        try:
            own = built(self._aws.work / "images", digest)
        except CalledProcessError as problem:
            raise PodFailed(f"ErrImagePull: {problem.stderr}") from None
        if own is None:
            raise PodFailed(f"ErrImagePull: {image} was not built for real, and pods run in no other way here")
        return own

    def role_of(self, pod: Pod) -> str:
        """The role that its service account has."""
        return self._roles.get((pod.document["metadata"]["namespace"], pod.spec.get("serviceAccountName", "")), "")

    def variables_of(self, role: str) -> dict[str, str]:
        """The way to the local AWS, and the credentials that the agent of a machine gives to a pod."""
        keys = self._aws.credentials_for(role).variables() if role else {}
        return {"AWS_DEFAULT_REGION": self._region, **self._aws.environment(), **keys}

    @property
    def aws(self) -> LocalAws:
        return self._aws

    @property
    def turn(self) -> threading.RLock:
        return self._turn


class JobRun:
    """One job from its making to its end."""

    def __init__(self, operator: Operator, job: Document) -> None:
        self._operator, self._job, self._model = operator, job, operator.model
        self.gone = threading.Event()
        """Set where the object was deleted."""
        self.pods: list[Pod] = []

    @property
    def name(self) -> str:
        return str(self._job["metadata"]["name"])

    def run(self) -> None:
        self._say("Created", "MPIJobCreated")
        aws = self._operator.aws
        until = time.monotonic() + aws.conditions.scaled(aws.conditions.training_start_s, aws.chance)
        while time.monotonic() < until and not self._leaves():
            time.sleep(LOOK_S)
        try:
            if not self._leaves() and self._begin():
                self._watch()
        finally:
            self._clear()
            if is_suspended(self._job) and not is_over(self._job):
                with self._operator.turn:
                    self._model.suspend(self._job)

    def kill(self) -> None:
        """Kills everything at once."""
        for pod in self.pods:
            for one in pod.containers.values():
                one.kill()

    def _leaves(self) -> bool:
        return self.gone.is_set() or is_suspended(self._job) or self._operator.aws.stopping.is_set()

    def _say(self, kind: str, reason: str, message: str = "") -> None:
        with self._operator.turn:
            self._model.say(self._job, kind, reason, message)

    def _begin(self) -> bool:
        """Starts the pods. False where the job waits for a worker for ever, or its launcher cannot start."""
        root = self._operator.aws.work / "pods" / self.name
        self.pods = [
            Pod(one, root / str(rank), self._operator.aws.addresses.take())
            for rank, one in enumerate(build_pods(self._job))
        ]
        mpi.share_shell(root / "shell")
        hosts = root / "hostfile"
        slots = self._job["spec"].get("slotsPerWorker", 1)
        hosts.write_text("".join(f"{one.address} slots={slots}\n" for one in self.pods))
        launcher, workers = self.pods[0], self.pods[1:]
        for pod in [*workers, launcher]:
            if pod is launcher and not all(one.containers and self._is_up(one) for one in workers):
                while not self._leaves():
                    time.sleep(LOOK_S)
                return False
            self._place(pod)
            try:
                self._start(pod)
            except PodFailed as problem:
                self._fail(pod, FAILED, str(problem))
                if pod is launcher:
                    self._say("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
                    return False
        self._say("Running", "MPIJobRunning")
        return True

    def _place(self, pod: Pod) -> None:
        """Gives the pod a machine of its own."""
        machine = f"machine-{pod.address.replace('.', '-')}"
        pod.spec["nodeName"] = machine
        labels = dict(pod.spec.get("nodeSelector", {}))
        with self._operator.turn:
            self._model.nodes.append({"metadata": {"name": machine, "labels": labels}})
            self._model.pods[pod.document["metadata"]["namespace"], pod.name] = pod.document

    def _start(self, pod: Pod) -> None:
        """Runs the helpers that end, starts those that stay, then what trains. Raises PodFailed."""
        for helper in pod.spec.get("initContainers", []):
            container = self._container(pod, helper)
            if helper.get("restartPolicy") != "Always" and (code := container.wait()):
                raise PodFailed(self._message(pod, helper["name"], f"Init:Error, exit code {code}"))
        self._container(pod, pod.training).wait(READY_S)
        pod.document["status"] = {"phase": "Running", "startTime": write_time(time.time())}

    def _is_up(self, pod: Pod) -> bool:
        """Whether its training container runs; says what became of one that does not."""
        code = pod.containers[pod.training["name"]].code
        if code is None:
            return True
        self._fail(pod, code, self._message(pod, pod.training["name"], "Error")) if code else None
        return code == 0

    def _watch(self) -> None:
        """Waits for the launcher's end, and writes what became of the job."""
        launcher, aws = self.pods[0], self._operator.aws
        deadline = self._job["spec"]["runPolicy"].get("activeDeadlineSeconds", 86_400) / aws.conditions.speed
        begun, container = time.monotonic(), launcher.containers[launcher.training["name"]]
        while container.code is None and not self._leaves():
            if time.monotonic() - begun > deadline:
                self._end(launcher)
                self._say("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
                return
            time.sleep(LOOK_S)
        if self._leaves():
            return
        code = container.wait() or 0
        self._end(launcher)
        if code:
            self._fail(launcher, code, self._message(launcher, launcher.training["name"], "Error"))
            self._say("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
            return
        launcher.document["status"]["phase"] = "Succeeded"
        self._say("Succeeded", "MPIJobSucceeded", f"MPIJob {self.name} successfully completed.")

    def _clear(self) -> None:
        """Ends what runs; of a job that was suspended or deleted nothing is left, of another one the launcher's pod."""
        for pod in self.pods:
            self._end(pod)
        with self._operator.turn:
            names = {pod.spec.get("nodeName") for pod in self.pods}
            self._model.nodes[:] = [one for one in self._model.nodes if one["metadata"]["name"] not in names]
            for pod in self.pods:
                if is_over(self._job) and pod is self.pods[0] and not self.gone.is_set():
                    continue
                self._model.pods.pop((pod.document["metadata"]["namespace"], pod.name), None)

    def _end(self, pod: Pod) -> None:
        """As the kubelet ends a pod: SIGTERM to what trains, then to its helpers, each with the rest of the grace."""
        grace = self._operator.aws.conditions.grace(pod.spec.get("terminationGracePeriodSeconds", 30))
        order = [pod.training["name"], *(one["name"] for one in pod.spec.get("initContainers", []))]
        for container in (pod.containers[name] for name in order if name in pod.containers):
            if container.code is None:
                container.end(grace)

    def _fail(self, pod: Pod, code: int, message: str) -> None:
        state = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
        status = {"phase": "Failed", "containerStatuses": [{"name": pod.training["name"], "state": state}]}
        with self._operator.turn:
            pod.document["status"] = status

    def _message(self, pod: Pod, name: str, otherwise: str) -> str:
        return "\n".join(pod.lines.get(name, ()))[-MOST_MESSAGE:] or otherwise

    def _container(self, pod: Pod, given: Document) -> Container:
        """Starts one container of a pod. Raises PodFailed."""
        role = self._operator.role_of(pod)
        own = self._operator.pull(given["image"])
        variables = {
            "PATH": BASIC,
            "HOME": "/root",
            "LANG": "C.UTF-8",
            **own.variables,
            **mpi.ONE_COMPUTER,
            **self._operator.variables_of(role),
            **self._variables(pod, given),
        }
        variables["PATH"] = f"{mpi.SHELL_FOLDER}:{variables['PATH']}"
        words = [self._plainly(one, variables) for one in (*self._entrypoint(own, given), *given.get("args", []))]
        if LABEL in (own.config.get("Labels") or {}) and any(SSHD in word for word in words):
            words = ["python", "-I", "-S", f"{mpi.SHELL_FOLDER}/remote_shell.py", "serve", pod.address]
        lines = pod.lines.setdefault(given["name"], deque[str](maxlen=LINES))
        command = own.command(
            words,
            variables,
            note=pod.root / f"{given['name']}.json",
            mounts=self._mounts(pod, given),
            folder=given.get("workingDir", ""),
            user=str(given.get("securityContext", {}).get("runAsUser", "")),
        )
        container = Container(command, {}, pod.root, lines.append)
        pod.containers[given["name"]] = container
        return container

    def _entrypoint(self, own: Unpacked, given: Document) -> Sequence[str]:
        if given.get("command"):
            found: Sequence[str] = given["command"]
            return found
        image = own.image()
        return [*image.entrypoint, *([] if given.get("args") else image.command)]

    def _variables(self, pod: Pod, given: Document) -> dict[str, str]:
        found = dict[str, str]()
        for one in given.get("env", []):
            if "valueFrom" in one:
                label = OF_LABEL.fullmatch(one["valueFrom"]["fieldRef"]["fieldPath"])
                found[one["name"]] = pod.document["metadata"]["labels"].get(label[1], "") if label else ""
            else:
                found[one["name"]] = self._plainly(one.get("value", ""), found)
        return found

    def _plainly(self, text: str, variables: Mapping[str, str]) -> str:
        """Expands `$(NAME)` as Kubernetes does, and puts addresses in the place of the pods' names, which resolve nowhere here."""
        text = re.sub(r"\$\$|\$\((\w+)\)", lambda one: "$" if one[1] is None else variables.get(one[1], one[0]), text)
        space = self._job["metadata"]["namespace"]
        for pod in self.pods:
            text = text.replace(f"{pod.name}.{self.name}.{space}.svc", pod.address)
        return text

    def _mounts(self, pod: Pod, given: Document) -> list[tuple[str, str, bool]]:
        mounts = [
            (str(pod.root.parent / "hostfile"), HOST_FILE, True),
            (str(pod.root.parent / "shell"), mpi.SHELL_FOLDER, False),
        ]
        kinds = {one["name"]: one.get("emptyDir", {}).get("medium", "") for one in pod.spec.get("volumes", [])}
        for one in given.get("volumeMounts", []):
            if kinds[one["name"]] == "Memory":
                continue  # every root has a memory of its own
            place = pod.root / "volumes" / one["name"] / one.get("subPath", "")
            place.mkdir(parents=True, exist_ok=True)
            mounts.append((str(place), one["mountPath"], False))
        return mounts
