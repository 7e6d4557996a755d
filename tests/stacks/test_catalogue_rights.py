"""Rights of queries: the Data API on one cluster, as one role, and nothing that commits."""

from __future__ import annotations

from contract.catalogue import CatalogueAccess
from stacks.parts.catalogue_rights import query_as_reader

CLUSTER = "arn:aws:rds:eu-central-1:123456789012:cluster:yard-catalogue"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:yard/catalogue/reader-a1b2c3"


def test_queries_reach_one_cluster_as_one_role() -> None:
    statements, secret = query_as_reader(CatalogueAccess(cluster=CLUSTER, secret=SECRET))
    assert (statements.resources, secret.resources) == ([CLUSTER], [SECRET])
    assert secret.actions == ["secretsmanager:GetSecretValue"]


def test_queries_may_not_commit() -> None:
    actions = [
        action for right in query_as_reader(CatalogueAccess(cluster=CLUSTER, secret=SECRET)) for action in right.actions
    ]
    assert [one for one in actions if "Commit" in one or "Batch" in one or "*" in one] == []


def test_a_secret_by_its_name_is_that_secret_alone_and_says_why_there_is_a_wildcard() -> None:
    _, secret = query_as_reader(CatalogueAccess(cluster=CLUSTER, secret="yard/catalogue/reader"))
    assert [one.rpartition(":")[2] for one in secret.resources] == ["yard/catalogue/reader-??????"]
    assert secret.wildcards
