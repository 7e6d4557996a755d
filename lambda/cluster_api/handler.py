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
from cluster_api.policy import count_idle, describe_job, list_expired, order_jobs, shrink_job, shrink_pod
from contract import metrics, names
from contract.cluster_calls import ClusterApiEnvironment, PodCall, PodVerb
from contract.codec import build, encode
from contract.kubernetes_api import KubernetesApi
from contract.mpi_job import select

logger = Logger(service="cluster_api")
IDLE = "machines of the cluster run and no MPIJob needs them"


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    """Does what the event says (`PodCall`). Raises ClusterProblem, ClientError or BotoCoreError."""
    env, call = ClusterApiEnvironment.read(), build(PodCall, dict(event), "event")
    cluster = open_cluster(env.cluster, env.home_region, names.pod_namespace(env.deployment))
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
    jobs = order_jobs([describe_job(one) for one in cluster.list_jobs(select(env.deployment))])
    return {"jobs": [json.loads(encode(one)) for one in jobs]}


def _watch(cluster: KubernetesApi, env: ClusterApiEnvironment) -> dict[str, Any]:
    ours = select(env.deployment)
    machines, jobs = cluster.list_nodes(ours), [shrink_job(one) for one in cluster.list_jobs(ours)]
    for old in list_expired(jobs, time.time()):
        cluster.delete(old)
    idle = count_idle(machines, jobs)
    if idle:
        logger.info(IDLE, machines=[one["metadata"]["name"] for one in machines], idle=idle)
    figures.count(env.deployment, {metrics.IDLE_MACHINES: idle})
    return {"idle": idle}
