"""Opens a cluster of EKS for the one function that is in its network."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from aws.clients import BRISK, client
from contract.aws_errors import code_of
from contract.kubernetes_api import CLUSTER_HEADER, LASTS_S, ClusterGone, KubernetesApi, make_token


def open_cluster(name: str, region: str, namespace: str) -> KubernetesApi:
    """Returns the API of one namespace, in which each call shows a token of its own. Raises ClusterGone where there is no such cluster,
    ClusterProblem where it has no address, otherwise ClientError or BotoCoreError."""
    try:
        cluster = client("eks", region, BRISK).describe_cluster(name=name)["cluster"]
    except ClientError as problem:
        if code_of(problem) == ClusterGone.CODE:
            raise ClusterGone(name, region) from None
        raise
    return KubernetesApi.of(cluster, namespace, lambda: make_token(_presign(name, region)))


def _presign(cluster: str, region: str) -> str:
    """Returns an address by which STS says who this function is, for one cluster alone."""
    sts: Any = client("sts", region, BRISK)

    def name_cluster(**given: Any) -> None:
        given["request"].headers[CLUSTER_HEADER] = cluster

    moment = "before-sign.sts.GetCallerIdentity"
    sts.meta.events.register(moment, name_cluster)
    try:
        return str(sts.generate_presigned_url("get_caller_identity", ExpiresIn=LASTS_S, HttpMethod="GET"))
    finally:
        sts.meta.events.unregister(moment, name_cluster)
