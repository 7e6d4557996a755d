"""The names that a program meets in a container: in a job here, and in SageMaker, where one program runs in both."""

from __future__ import annotations

from dataclasses import dataclass

from contract import containers, training
from grid_plan import code

CONFIG = f"{containers.FOLDERS}/input/config"
HOSTS = f"{CONFIG}/resourceconfig.json"


@dataclass(frozen=True, kw_only=True)
class SharedName:
    """One thing, and what it is called on each side. Every word of a tuple is a name; `words` are for what has none."""

    what: str
    here: tuple[str, ...] = ()
    """Folders and variables of a job's container."""
    platform: tuple[str, ...] = ()
    """Folders, files and variables of SageMaker itself, in every container."""
    toolkit: tuple[str, ...] = ()
    """Variables of AWS's toolkit, in its containers alone. `<NAME>` stands for a name of the line."""
    here_words: str = ""
    there_words: str = ""


NAMES = (
    SharedName(
        what="checkpoints, restored and kept",
        here=(containers.CHECKPOINTS, training.CHECKPOINT_DIR),
        platform=(containers.CHECKPOINTS,),
    ),
    SharedName(
        what="results that are kept",
        here=(containers.ARTIFACTS, training.ARTIFACTS_DIR),
        platform=(containers.ARTIFACTS,),
        toolkit=("SM_MODEL_DIR",),
    ),
    SharedName(
        what="other output",
        here_words="results, or the log",
        platform=("/opt/ml/output/data",),
        toolkit=("SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR"),
    ),
    SharedName(
        what="code that comes beside the image; the working folder",
        here=(containers.CODE,),
        platform=(containers.CODE,),
        toolkit=("SM_MODULE_DIR", "SM_MODULE_NAME"),
    ),
    SharedName(
        what="the same, packed",
        here_words="none",
        platform=(code.PACKED,),
        toolkit=(f"SM_CHANNEL_{code.CHANNEL.upper()}",),
    ),
    SharedName(
        what="the program of the code",
        here_words="`command` of the request",
        there_words="`entrypoint` of the line",
        toolkit=(code.VARIABLE,),
    ),
    SharedName(
        what="data",
        here=(containers.DATA,),
        here_words="empty; the program fetches",
        platform=(f"{containers.DATA}/<name>", f"{CONFIG}/inputdataconfig.json"),
        toolkit=("SM_CHANNELS", "SM_CHANNEL_<NAME>", "SM_INPUT_DIR", "SM_INPUT_DATA_CONFIG"),
    ),
    SharedName(
        what="hyperparameters",
        here_words="`arguments` of the request",
        platform=(f"{CONFIG}/hyperparameters.json",),
        toolkit=("SM_HPS", "SM_HP_<NAME>", "SM_USER_ARGS"),
        there_words="with the toolkit also arguments of the program",
    ),
    SharedName(
        what="arguments",
        here_words="`arguments` of the request",
        there_words="`arguments` of the line; without them the image's entry point gets the word `train` in place of its own command",
    ),
    SharedName(
        what="progress and metric",
        here=(containers.PROGRESS, training.PROGRESS_FILE),
        there_words="printed lines, which the expressions of `metrics` find",
    ),
    SharedName(
        what="why it failed",
        here_words="the exit code and the last lines of the log",
        platform=("/opt/ml/output/failure",),
    ),
    SharedName(what="name of the job", here=(training.JOB_ID,), platform=("TRAINING_JOB_NAME",)),
    SharedName(what="which attempt it is", here=(training.ATTEMPT,), there_words="none"),
    SharedName(
        what="number of machines",
        here=(training.NUM_NODES,),
        platform=(HOSTS,),
        toolkit=("SM_HOSTS",),
        there_words="length of `hosts`",
    ),
    SharedName(
        what="this machine among them",
        here=(training.NODE_RANK,),
        platform=(HOSTS,),
        toolkit=("SM_CURRENT_HOST",),
        there_words="place of `current_host` in `hosts`",
    ),
    SharedName(
        what="address of the first",
        here=(training.MASTER_ADDR,),
        platform=(HOSTS,),
        toolkit=("SM_MASTER_ADDR", "MASTER_ADDR"),
        there_words="first of `hosts`, which is a host name",
    ),
    SharedName(
        what="addresses of all",
        here=(training.TF_CONFIG, training.CLUSTER_SPEC),
        here_words="in a training of several nodes",
        platform=(HOSTS,),
        toolkit=("SM_HOSTS",),
        there_words="`hosts`, which are host names",
    ),
    SharedName(
        what="its role and its place there, and the addresses of each role",
        here=(training.ROLE, training.ROLE_RANK, training.ROLE_ADDRESSES),
        here_words="in a job with roles",
    ),
    SharedName(what="its port", here=(training.MASTER_PORT,), toolkit=("MASTER_PORT",), there_words="any"),
    SharedName(
        what="rank and world of a process",
        here_words="by `launcher`: [its own table](#who-starts-its-processes-here-and-in-sagemaker)",
        there_words="by `distribution`: the same table",
    ),
    SharedName(
        what="what stands for ssh between mpirun and its daemons",
        here=(containers.LAUNCHER,),
        here_words="with the launcher `mpi`",
        there_words="sshd of the image",
    ),
    SharedName(
        what="GPUs and processors",
        here_words="ask PyTorch",
        there_words="ask PyTorch",
        toolkit=("SM_NUM_GPUS", "SM_NUM_CPUS"),
    ),
    SharedName(
        what="the machine's type and network",
        here_words="metadata service",
        platform=(HOSTS,),
        toolkit=("SM_CURRENT_INSTANCE_TYPE", "SM_NETWORK_INTERFACE_NAME", "SM_RESOURCE_CONFIG"),
    ),
    SharedName(what="region", here_words="metadata service", platform=("AWS_REGION",)),
    SharedName(
        what="keys",
        here=(containers.ROLE, training.CONFIG_FILE),
        here_words="with `job_role`; otherwise the node's role, as SDKs find it",
        there_words="the role of trainings, as SDKs find it",
    ),
    SharedName(
        what="where SageMaker's files of settings are; the level of logs",
        here_words="none",
        platform=(CONFIG,),
        toolkit=("SM_INPUT_CONFIG_DIR", "SM_LOG_LEVEL"),
    ),
    SharedName(
        what="output line by line, stacks of a crash",
        here=("PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"),
        there_words="what the image sets",
    ),
)
