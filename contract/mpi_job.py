"""Describes a line's training as an MPIJob of Kubernetes (kubeflow.org/v2beta1): pods that find the folders of SageMaker's containers.

The operator of MPIJobs adds the rest: names of hosts, keys for ssh, and sshd where a worker has no command of its own.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract import containers, tags, training
from contract.cluster import Cluster
from contract.environments import VARIABLE_PREFIX
from contract.jobs import Launcher
from contract.pod_files import (
    INPUT,
    OUTPUT,
    PodChannel,
    PodFiles,
)

API, KIND, PLURAL = "kubeflow.org/v2beta1", "MPIJob", "mpijobs"
OPERATORS = "training.kubeflow.org"
JOB_NAME, JOB_ROLE, REPLICA = (f"{OPERATORS}/{one}" for one in ("job-name", "job-role", "replica-index"))
"""Labels that the operator sets on pods."""
WORKER = "worker"
"""The value of JOB_ROLE on every pod but the launcher's."""
ENDED_FOR = f"{tags.RESERVED.rstrip(':')}/ended-for"
"""Annotation of an MPIJob that Trainyard ends: why. One that is suspended without it was suspended by a person."""
BEGAN = f"{tags.RESERVED.rstrip(':')}/began"
"""Annotation of an MPIJob that Trainyard ends: since when all of its pods ran. The operator forgets it when a job is suspended."""
TRAINING, BRINGER, KEEPER = "training", "bringer", "keeper"
"""Names of containers: what trains, what brings the data, what saves checkpoints and models."""
SEAL = f"{VARIABLE_PREFIX}SEAL"
"""The variable of PodFiles.seal, which no plan has: it is made with the object."""
SERVICE_ACCOUNT = "training"
INSTANCE_TYPE, HOST = "node.kubernetes.io/instance-type", "kubernetes.io/hostname"
GPU, DISK = "nvidia.com/gpu", "ephemeral-storage"
HOST_FILE = "/etc/mpi/hostfile"
"""Where the operator puts the list of hosts."""
STAYS = {"karpenter.sh/do-not-disrupt": "true"}
"""Annotation of pods whose machine is not to be replaced by a better one. A machine that drifts or expires takes no notice after a day."""
GRACE_S = 120
"""How long a training has between SIGTERM and SIGKILL; SageMaker gives as long."""
SAVED_S = 1800.0
"""How long after its training's end a pod may save models; they are waited for so long."""
VOLUME, MEMORY = "files", "memory"
SHARED_MEMORY = "/dev/shm"  # noqa: S108  (the kernel's own place)
MOUNTED = ("input", "model", "output", "checkpoints")
"""Folders below containers.FOLDERS that are the pod's; the code is the image's, or unpacked by the command."""
SAY = f"""p= s=; stop() {{ s=1; [ -z "$p" ] || {{ kill -TERM $p; later {GRACE_S} -KILL $p; }}; }}
trap stop TERM INT
later() {{ (sleep $1; shift; kill "$@") >/dev/null 2>&1 & }}
f=/opt/ml/output/said; rm -f $f.pipe; mkfifo $f.pipe; tee $f <$f.pipe & t=$!
[ -z "$s" ] || {{ kill -KILL $t; exit 143; }}
"$@" >$f.pipe 2>&1 & p=$!; [ -z "$s" ] || stop
wait $p; c=$?
while kill -0 $p 2>/dev/null; do wait $p; c=$?; done
later 5 $t; wait $t; exit $c"""
"""Starts the command. Writes what it prints into a file as well, in which the keeper finds metrics. Hands signals on, and
starts nothing after one. Ends as the command ended. The pod has time to save after that, so this has to kill the command, and
what the command left behind may hold nothing up."""
SSHD = "mkdir -p /run/sshd && exec /usr/sbin/sshd -De -o StrictModes=no"
"""As the operator would start it; the shell names a program that the image lacks, and sshd needs the folder. The kubelet lets everybody
write into the folder of the operator's keys, which sshd else refuses."""
SSH = "plm_rsh_args", "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectionAttempts=10"
"""What mpirun gives to ssh, in the place of the operator's variable, which has the last of it; a pod's host key is on no list."""
UNIQUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""The form of a label's value."""
EXPORTED = ("PATH", "LD_LIBRARY_PATH")
"""Variables of the image that mpirun hands on, as AWS's toolkit has it."""
ALWAYS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlace:
    """Where the pods of a deployment run."""

    cluster: str
    """Name of the cluster of EKS."""
    namespace: str
    region: str
    keeper_image: str
    """The platform's image that brings and saves files."""
    port: int
    """At which rank 0 listens (MASTER_PORT)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTraining:
    """What trains, beside the arguments of CreateTrainingJob that say everything else."""

    name: str
    command: tuple[str, ...] = ()
    """Empty for the image's own entry point."""
    arguments: tuple[str, ...] = ()
    """The image's entry point gets them, where there is no command."""
    unpack: tuple[str, ...] = ()
    """Words that unpack the code of the line and run what follows them, on every pod; empty for the image's own code."""
    folder: str = ""
    """The working folder; empty for the image's own."""
    launcher: Launcher = Launcher.NONE
    options: tuple[str, ...] = ()
    """Of mpirun."""
    processes: int = 1
    """Of each pod, under a launcher."""
    gpus: int = 0
    """Of each pod."""
    notes: str = ""
    """`s3://` folder of what the pods note of themselves."""


def build_mpi_job(arguments: Mapping[str, Any], it: PodTraining, place: PodPlace) -> dict[str, Any]:
    """Returns the MPIJob of a training that SageMaker would be given with these `arguments` of CreateTrainingJob. The launcher's pod is one
    of its nodes; nothing is tried twice."""
    nodes = int(arguments["ResourceConfig"].get("InstanceCount", 1))
    marks = {one["Key"]: str(one["Value"]) for one in arguments.get("Tags", [])}
    replicas = {"Launcher": _replica(1, _build_pod(arguments, it, place, is_worker=False))}
    if nodes > 1:
        replicas["Worker"] = _replica(nodes - 1, _build_pod(arguments, it, place, is_worker=True))
    return {
        "apiVersion": API,
        "kind": KIND,
        "metadata": {
            "name": it.name,
            "namespace": place.namespace,
            "labels": label(marks),
            "annotations": annotate(marks),
        },
        "spec": {
            "slotsPerWorker": it.processes,
            "runLauncherAsWorker": True,
            # A worker of any other launcher may have ended, and is never ready, before there is a rank 0.
            "launcherCreationPolicy": "WaitForWorkersReady" if it.launcher is Launcher.MPI else "AtStartup",
            "mpiImplementation": "OpenMPI",
            "runPolicy": {
                "cleanPodPolicy": "All",
                "activeDeadlineSeconds": int(arguments["StoppingCondition"]["MaxRuntimeInSeconds"]),
                "backoffLimit": 0,
                "suspend": False,
            },
            "mpiReplicaSpecs": replicas,
        },
    }


def seal_job(job: Mapping[str, Any], seal: str) -> dict[str, Any]:
    """Returns the MPIJob whose keeper alone knows the seal, by which its note is believed."""
    sealed: dict[str, Any] = copy.deepcopy(dict(job))
    for helper in _list_keepers(sealed):
        helper["env"] = [*helper["env"], {"name": SEAL, "value": seal}]
    return sealed


def read_seal(job: Mapping[str, Any]) -> str:
    """Returns the seal of an MPIJob; empty where it has none."""
    given = [one for helper in _list_keepers(job) for one in helper.get("env") or () if one.get("name") == SEAL]
    return str(given[0].get("value") or "") if given else ""


def _list_keepers(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    launcher = ((job.get("spec") or {}).get("mpiReplicaSpecs") or {}).get("Launcher") or {}
    helpers = ((launcher.get("template") or {}).get("spec") or {}).get("initContainers") or ()
    return [one for one in helpers if one.get("name") == KEEPER]


def annotate(marks: Mapping[str, str]) -> dict[str, str]:
    """Returns our tags as annotations, which take any text: by these an MPIJob is ours."""
    return {_spell(key): value for key, value in marks.items() if key.startswith(tags.RESERVED)}


def label(marks: Mapping[str, str]) -> dict[str, str]:
    """Returns our tags as labels, by which objects are listed; those whose values no label takes are left out."""
    return {key: value for key, value in annotate(marks).items() if UNIQUE.fullmatch(value)}


def read_begin(job: Mapping[str, Any]) -> str:
    """Returns since when all pods of an MPIJob have run, as Kubernetes writes times; empty where they never did, or a suspension has
    overwritten it."""
    noted = ((job.get("metadata") or {}).get("annotations") or {}).get(BEGAN)
    conditions = (job.get("status") or {}).get("conditions") or ()
    found = [one for one in conditions if one.get("type") == "Running" and one.get("reason") != "MPIJobSuspended"]
    return str(noted or (found[0].get("lastTransitionTime") if found else "") or "")


def read_marks(job: Mapping[str, Any]) -> dict[str, str]:
    """Returns the tags that an MPIJob's annotations say."""
    prefix = _spell(tags.RESERVED)
    given = (job.get("metadata") or {}).get("annotations") or {}
    return {tags.RESERVED + key.removeprefix(prefix): str(one) for key, one in given.items() if key.startswith(prefix)}


def mark_deployment(deployment: str) -> dict[str, str]:
    """Returns the label of everything that is the deployment's: objects, pods, and the machines on which they run."""
    return {_spell(tags.DEPLOYMENT): deployment}


def count_nodes(job: Mapping[str, Any]) -> int:
    """Returns how many nodes an MPIJob takes while it runs."""
    replicas = (job.get("spec") or {}).get("mpiReplicaSpecs") or {}
    return sum(int(one.get("replicas") or 0) for one in replicas.values())


def _spell(key: str) -> str:
    """A label's key has a slash where a tag's has a colon."""
    return key.replace(":", "/")


def _replica(count: int, template: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": "Never", "template": template}


def _build_pod(arguments: Mapping[str, Any], it: PodTraining, place: PodPlace, *, is_worker: bool) -> dict[str, Any]:
    marks = {one["Key"]: str(one["Value"]) for one in arguments.get("Tags", [])}
    resources = arguments["ResourceConfig"]
    files = describe_files(arguments, it)
    bringer = _build_helper(BRINGER, files, place)
    # A container of this kind is started before the training, and ended after it.
    keeper = _build_helper(KEEPER, files, place) | {"restartPolicy": "Always"}
    ours = mark_deployment(marks[tags.DEPLOYMENT])
    alone = {"labelSelector": {"matchLabels": ours}}
    return {
        "metadata": {"labels": label(marks), "annotations": annotate(marks) | STAYS},
        "spec": {
            "serviceAccountName": SERVICE_ACCOUNT,
            # Pod Identity has a token of its own; the code of a line has nothing to say to the cluster.
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": {INSTANCE_TYPE: str(resources["InstanceType"]).removeprefix("ml."), **ours},
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, **alone}]}
            },
            # The kubelet gives the keeper what the grace of its pod leaves.
            "terminationGracePeriodSeconds": GRACE_S if is_worker else GRACE_S + int(SAVED_S),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [bringer] if is_worker else [bringer, keeper],
            "containers": [_build_training(arguments, it, place, is_worker=is_worker)],
            "volumes": [
                {"name": VOLUME, "emptyDir": {"sizeLimit": f"{int(resources['VolumeSizeInGB'])}Gi"}},
                {"name": MEMORY, "emptyDir": {"medium": "Memory"}},
            ],
        },
    }


def _build_helper(name: str, files: PodFiles, place: PodPlace) -> dict[str, Any]:
    return {
        "name": name,
        "image": place.keeper_image,
        "command": ["python", "-m", "grid_child.pods", name],
        "env": [
            *_list_variables(files.write()),
            *_name_places(),
            {"name": "AWS_REGION", "value": place.region},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        # It reads what the training wrote, as whatever user.
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": VOLUME, "mountPath": containers.FOLDERS}],
    }


def _build_training(
    arguments: Mapping[str, Any], it: PodTraining, place: PodPlace, *, is_worker: bool
) -> dict[str, Any]:
    nodes = int(arguments["ResourceConfig"].get("InstanceCount", 1))
    variables = _variables(arguments, it, place, nodes)
    words, given = list_words(it, nodes, sorted(variables), place, is_worker=is_worker)
    mounts = [{"name": VOLUME, "mountPath": f"{containers.FOLDERS}/{one}", "subPath": one} for one in MOUNTED]
    found: dict[str, Any] = {
        "name": TRAINING,
        "image": arguments["AlgorithmSpecification"]["TrainingImage"],
        "env": [*_list_variables(variables), *_name_places()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*mounts, {"name": MEMORY, "mountPath": SHARED_MEMORY}],
    }
    for name, value in (("command", words), ("args", given), ("workingDir", it.folder)):
        if value:
            found[name] = value
    # The limit of a volume reserves nothing: a pod on a full disk is evicted.
    found["resources"] = {"requests": {DISK: f"{int(arguments['ResourceConfig']['VolumeSizeInGB'])}Gi"}}
    if it.gpus:
        found["resources"]["limits"] = {GPU: str(it.gpus)}
    return found


def list_words(
    it: PodTraining, nodes: int, variables: Sequence[str], place: PodPlace, *, is_worker: bool
) -> tuple[list[str], list[str]]:
    """Returns the command and the arguments of a pod's training container. `variables` are the names that mpirun hands on to its
    processes: sshd hands on none."""
    if it.launcher is Launcher.MPI and is_worker:
        return [*_escape(it.unpack), "/bin/sh", "-c", SSHD], []
    if not it.command:
        return [], _escape(it.arguments)
    cluster = Cluster(addresses=list_hosts(it, nodes, place), rank=0, port=place.port, processes=it.processes)
    words = list(it.command)
    if it.launcher is Launcher.MPI:
        exports = [word for name in (*EXPORTED, *variables) for word in ("-x", name)]
        ssh = [] if SSH[0] in it.options else ["--mca", *SSH]  # two values of one would not do
        options = ["--hostfile", HOST_FILE, "--bind-to", "none", *ssh, *exports, *it.options]
        words = _escape(cluster.build_mpirun([*options, *words]))
    elif it.launcher is Launcher.TORCHRUN:
        words = _escape(cluster.build_torchrun(words))
        words[words.index("--node-rank") + 1] = f"$({training.NODE_RANK})"
    else:
        words = _escape(words)
    words = [*_escape(it.unpack), *words]
    return (words if is_worker else ["/bin/sh", "-c", _escape([SAY])[0], TRAINING, *words]), []


def list_hosts(it: PodTraining, nodes: int, place: PodPlace) -> tuple[str, ...]:
    """Returns the names of a job's pods by rank, as the operator gives them."""
    pods = [f"{it.name}-launcher", *(f"{it.name}-worker-{number}" for number in range(nodes - 1))]
    return tuple(f"{pod}.{it.name}.{place.namespace}.svc" for pod in pods)


def describe_files(arguments: Mapping[str, Any], it: PodTraining) -> PodFiles:
    """Returns what the pods bring and save."""
    channels = tuple(
        PodChannel(
            name=one["ChannelName"],
            source=one["DataSource"]["S3DataSource"]["S3Uri"],
            sharded=one["DataSource"]["S3DataSource"].get("S3DataDistributionType") == "ShardedByS3Key",
        )
        for one in arguments.get("InputDataConfig", [])
    )
    algorithm = arguments["AlgorithmSpecification"]
    return PodFiles(
        nodes=int(arguments["ResourceConfig"].get("InstanceCount", 1)),
        instance_type=str(arguments["ResourceConfig"]["InstanceType"]),
        channels=channels,
        hyperparameters=dict(arguments.get("HyperParameters", {})),
        checkpoints=arguments["CheckpointConfig"]["S3Uri"],
        output=f"{arguments['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{it.name}/output",
        notes=it.notes,
        metrics={one["Name"]: one["Regex"] for one in algorithm.get("MetricDefinitions", [])},
    )


def _variables(arguments: Mapping[str, Any], it: PodTraining, place: PodPlace, nodes: int) -> dict[str, str]:
    """The variables of a job of ours and of AWS's toolkit, those of the line, and what lets mpirun run as root."""
    hosts = list_hosts(it, nodes, place)
    channels = [one["ChannelName"] for one in arguments.get("InputDataConfig", [])]
    return {
        **{name: str(value) for name, value in arguments.get("Environment", {}).items()},
        training.JOB_ID: it.name,
        training.ATTEMPT: "1",
        training.MASTER_ADDR: hosts[0],
        training.MASTER_PORT: str(place.port),
        training.NUM_NODES: str(nodes),
        training.CHECKPOINT_DIR: containers.CHECKPOINTS,
        training.ARTIFACTS_DIR: containers.ARTIFACTS,
        training.PROGRESS_FILE: containers.PROGRESS,
        "TRAINING_JOB_NAME": it.name,
        "SM_MODEL_DIR": containers.ARTIFACTS,
        "SM_OUTPUT_DATA_DIR": OUTPUT,
        "SM_INPUT_DIR": f"{containers.FOLDERS}/input",
        "SM_INPUT_CONFIG_DIR": INPUT,
        "SM_NUM_GPUS": str(it.gpus),
        "SM_CHANNELS": json.dumps(sorted(channels)),
        **{f"SM_CHANNEL_{one.upper().replace('-', '_')}": f"{containers.DATA}/{one}" for one in channels},
        "SM_HPS": json.dumps(dict(arguments.get("HyperParameters", {})), sort_keys=True),
        **(ALWAYS_ROOT if it.launcher is Launcher.MPI else {}),
    }


def _list_variables(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """Kubernetes expands `$(NAME)` in values; ours are plain."""
    return [{"name": name, "value": _escape([value])[0]} for name, value in sorted(variables.items())]


def _name_places() -> list[dict[str, Any]]:
    """The rank of the pod, which the operator writes on it."""
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{REPLICA}']"}}
    return [{"name": training.NODE_RANK, "valueFrom": source}]


def _escape(words: Sequence[str]) -> list[str]:
    """Kubernetes also reads two signs as one."""
    return [one.replace("$", "$$") for one in words]
