"""Finds the field that a person means by another word: what other tools call it first, then what is spelt alike."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

ALIKE = 0.75
"""The least likeness of two spellings: at 0.6, difflib's own, `timeout` is like `mounts`."""
SYNONYMS = {
    "code": "source source_code source_dir code_uri code_path git git_repo repo repository workdir working_dir archive",
    "command": "cmd run script entrypoint entry_point program main hyperparameters hparams params parameters args flags",
    "arguments": "hyperparameters hparams params parameters args flags",
    "environment": "env envs env_vars envvars environment_variables variables hyperparameters hparams",
    "launcher": "torchrun mpi distributed distribution distributed_backend backend",
    "processes_per_node": "nproc nproc_per_node procs_per_node gpus_per_node ppn slots_per_node",
    "image": "container docker docker_image image_uri container_image",
    "instance_types": "gpu gpus gpu_type machine machines machine_type vm vm_type instance instance_type resources node_type",
    "accelerators": "gpu gpus gpu_type accelerator resources",
    "regions": "locations",
    "region": "location aws_region",
    "nodes": "instances instance_count num_nodes node_count n_nodes nnodes num_instances workers num_workers replicas world_size",
    "market": "marketplace spot use_spot managed_spot preemptible capacity_type purchase_option",
    "reservation": "capacity_reservation capacity_block reservation_id",
    "max_hours": "timeout time_limit timelimit max_runtime max_run max_time max_duration duration deadline walltime hours",
    "max_wait_hours": "wait max_wait wait_hours",
    "max_cost_usd": "budget cost max_cost max_price price_cap cost_limit",
    "checkpoint_minutes": "checkpoint checkpoints checkpoint_interval checkpoint_every save_every save_interval",
    "resume_from": "resume restore restore_from checkpoint_path from_checkpoint",
    "retries": "retry max_retries attempts max_attempts restarts max_restarts",
    "stall": "hang hang_timeout watchdog stall_minutes",
    "notify": "email emails mail notifications notification alerts",
    "secrets": "secret secret_arn secrets_manager",
    "data": "inputs input_data dataset datasets data_uri channels",
    "volume_gb": "disk disk_gb disk_size volume volume_size storage storage_gb ebs",
    "machine_image": "ami ami_id image_id",
    "job_role": "role role_arn iam_role execution_role",
    "mounts": "fsx efs lustre nfs file_systems filesystems volumes",
    "owner": "user team contact created_by",
    "template": "job line task trial_template training_job_definition defaults",
    "search": "space search_space param_space parameter_space parameters params parameter_ranges hyperparameter_ranges hyperparameters "
    "hparams config_space distributions param_distributions param_grid",
    "objective": "metric goal target optimize direction mode objective_metric objective_metric_name tuning_objective",
    "trials": "n_trials num_trials max_trials max_trial_count max_num_trials total_trials num_samples n_iter iterations max_evals run_cap "
    "max_jobs max_number_of_training_jobs",
    "parallel": "parallelism parallel_trials parallel_trial_count max_parallel max_parallel_trials max_parallel_jobs concurrency n_jobs "
    "max_parallel_training_jobs max_concurrent max_concurrent_trials",
    "sampler": "algorithm algo method search_alg search_algorithm strategy",
    "seed": "random_seed random_state rng",
    "begin_with": "points_to_evaluate enqueue enqueue_trial enqueued initial_points initial first start_with",
    "warm_start": "warm_start_config study",
    "patience": "early_stop early_stopping early_stopping_rounds",
    "resume": "continue load_if_exists",
}
"""Field to what the same is called elsewhere, or by whoever guesses: of a job, and of a search. Fields that a request does not have suggest
nothing."""
ELSEWHERE = {
    "requirement": "the code's requirements.txt is installed by itself",
    "requirements": "the code's requirements.txt is installed by itself",
    "pip": "the code's requirements.txt is installed by itself",
    "packages": "the code's requirements.txt is installed by itself",
    "dependencies": "the code's requirements.txt is installed by itself",
    "name": "the execution's name is the job's",
    "job_name": "the execution's name is the job's",
}
"""What a job says in no field, and where it is instead."""
OF_A_JOB = frozenset({"code", "command"})
"""Fields by which a request is known as that of a job."""


def suggest(field: str, fields: Iterable[str]) -> str:
    """Returns a hint in parentheses, with a space before it: which of the fields is meant. Empty where nothing is near."""
    known = list(fields)
    word = normalise(field)
    if set(known) >= OF_A_JOB and word in ELSEWHERE:
        return f" ({ELSEWHERE[word]})"
    meant = [one for one in known if word == one or word in _words(one)]
    near = meant or [one for one in [find_near(word, known)] if one]
    return f" (did you mean {_either(near)}?)" if near else ""


def find_near(word: str, known: Iterable[str], least: float = ALIKE) -> str:
    """Returns the one that is spelt most alike; empty where none is near. `least` is the likeness that it needs, from 0 to 1."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=least)), "")


def _words(field: str) -> list[str]:
    return SYNONYMS.get(field, "").split()


def normalise(field: str) -> str:
    """Returns a word as fields are written: maxHours and max-hours are max_hours."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field).replace("-", "_").lower()


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
