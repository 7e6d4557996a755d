"""Query definitions of CloudWatch Logs Insights, which moto lacks: the calls for them, and their type in stacks."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import botocore.session
from moto.logs.exceptions import InvalidParameterException, ResourceNotFoundException
from moto.logs.responses import LogsResponse

from localaws import limits
from localaws.services import cloudformation

if TYPE_CHECKING:
    from localaws.server import LocalAws

MOST_GROUPS = 50
_saved: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
"""Account and region to queries by id."""


def install(aws: LocalAws) -> None:
    _saved.clear()
    cloudformation.forget_models()
    for name, call in (
        ("put_query_definition", _put),
        ("describe_query_definitions", _describe),
        ("delete_query_definition", _delete),
    ):
        aws.patch(LogsResponse, name, call)


def _of(response: Any) -> dict[str, dict[str, Any]]:
    return _saved.setdefault((response.current_account, response.region), {})


def _put(response: Any) -> str:
    given = json.loads(response.body)
    shape = botocore.session.get_session().get_service_model("logs").operation_model("PutQueryDefinition").input_shape
    if problem := limits.beyond(shape, given):
        raise InvalidParameterException(problem)
    if len(given.get("logGroupNames", ())) > MOST_GROUPS:
        raise InvalidParameterException(f"a query reads at most {MOST_GROUPS} log groups")
    queries, identity = _of(response), given.get("queryDefinitionId") or str(uuid.uuid4())
    if given.get("queryDefinitionId") and identity not in queries:
        raise ResourceNotFoundException
    queries[identity] = {
        "queryDefinitionId": identity,
        "name": given["name"],
        "queryString": given["queryString"],
        "logGroupNames": given.get("logGroupNames", []),
        "lastModified": int(time.time() * 1000),
    }
    return json.dumps({"queryDefinitionId": identity})


def _describe(response: Any) -> str:
    prefix = response._get_param("queryDefinitionNamePrefix") or ""
    return json.dumps({"queryDefinitions": [one for one in _of(response).values() if one["name"].startswith(prefix)]})


def _delete(response: Any) -> str:
    found = _of(response).pop(response._get_param("queryDefinitionId"), None)
    return json.dumps({"success": found is not None})


def _create(client: cloudformation.Client, _: str, properties: Mapping[str, Any]) -> str:
    given = cloudformation.as_the_api_has_it(properties)
    return str(client("logs").put_query_definition(**given)["queryDefinitionId"])


def _change(client: cloudformation.Client, identity: str, _: object, properties: Mapping[str, Any]) -> None:
    given = cloudformation.as_the_api_has_it(properties)
    client("logs").put_query_definition(queryDefinitionId=identity, **given)


MODELS = cloudformation.models(
    {
        "AWS::Logs::QueryDefinition": cloudformation.Kind(
            _create,
            lambda client, identity, _: client("logs").delete_query_definition(queryDefinitionId=identity),
            lambda identity, _account, _region: {"QueryDefinitionId": identity},
            _change,
        )
    }
)
