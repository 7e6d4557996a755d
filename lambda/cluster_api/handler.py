"""The function in the cluster's network: finds, lists and ends MPIJobs for functions that are in none,
and counts machines for the alarm."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws import figures
from aws.kubernetes import open_cluster
from cluster_api.policy import count_idle, describe_job, list_ended, order_jobs, shrink_job, shrink_pod
from contract import metrics, names
from contract.cluster_calls import ClusterApiEnvironment, PodCall, PodVerb
from contract.codec import build, encode
from contract.kubernetes_api import ClusterGone, KubernetesApi
from contract.mpi_job_facts import is_live
from contract.mpi_job_labels import ENDED, select, select_expired, select_open, write_day

logger = Logger(service="cluster_api")
IDLE = "machines of the cluster run and no MPIJob needs them"


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """Does what the event says (`PodCall`). Raises ClusterProblem, ClientError or BotoCoreError."""
    env, call = ClusterApiEnvironment.read(), build(PodCall, dict(event), "event")
    try:
        cluster = open_cluster(env.cluster, env.home_region, names.pod_namespace(env.deployment))
    except ClusterGone as problem:
        if call.verb is PodVerb.WATCH:
            raise  # the alarm of a watch that is silent says so
        logger.warning("the cluster is gone, and its MPIJobs with it", problem=str(problem))
        return {"job": None, "pods": []} if call.verb is PodVerb.FIND else {"jobs": []}
    match call.verb:
        case PodVerb.FIND:
            job = cluster.find(call.name)
            return {
                "job": job,
                "pods": [] if job is None else [shrink_pod(one) for one in cluster.list_pods(call.name)],
            }
        case PodVerb.END:
            logger.info("ends an MPIJob", job=call.name, why=call.why)
            cluster.end(call.name, call.why)
            return {}
        case PodVerb.DELETE:
            logger.info("deletes an MPIJob", job=call.name)
            cluster.delete(call.name)
            return {}
        case PodVerb.WATCH:
            return _watch(cluster, env)
    wanted = select_open(env.deployment) if call.verb is PodVerb.LIST_OPEN else select(env.deployment)
    jobs = order_jobs([describe_job(one) for one in cluster.list_jobs(wanted)])
    return {"jobs": [json.loads(encode(one)) for one in jobs]}


def _watch(cluster: KubernetesApi, env: ClusterApiEnvironment) -> dict[str, Any]:
    now, machines = time.time(), cluster.list_nodes(select(env.deployment))
    jobs = [shrink_job(one) for one in cluster.list_jobs(select_open(env.deployment))]
    for name in list_ended(jobs):
        cluster.label(name, {ENDED: write_day(now)})
    old = [shrink_job(one) for one in cluster.list_jobs(select_expired(env.deployment, now))]
    for one in old:
        if not is_live(one):
            cluster.delete(one["metadata"]["name"])
    idle = count_idle(machines, jobs)
    if idle:
        logger.info(IDLE, machines=[one["metadata"]["name"] for one in machines], idle=idle)
    figures.count(env.deployment, {metrics.IDLE_MACHINES: idle})
    return {"idle": idle}
