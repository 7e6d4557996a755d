"""DynamoDB's reads of several items: a query's pages, and batches that may come back in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localaws.services.dynamodb_language import check_used
from localaws.services.dynamodb_state import DynamoDbState
from localaws.services.dynamodb_table import Schema, place
from localaws.services.dynamodb_values import Item, invalid, order, read_units

PAGE_BYTES = 1024**2
BATCH_BYTES = 16 * 1024**2
BATCH_KEYS = 100
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
OF_TABLE = frozenset({"Keys", "ConsistentRead"})


def query(model: DynamoDbState, schema: Schema, params: Mapping[str, Any]) -> dict[str, Any]:
    """A page ends after `Limit` items or 1 MB, before any filter. One that ends with the last item may name another, which is empty."""
    names, values = params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {})
    if "KeyConditionExpression" not in params:
        raise invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
    keys = model.language.key_condition(params["KeyConditionExpression"], names, values, schema.keys)
    text = params.get("FilterExpression")
    kept = model.language.condition(text, names, values, "FilterExpression") if text else None
    used = frozenset({keys.partition, *keys.sorts}) | (kept.values if kept else frozenset())
    check_used(values, used, "ExpressionAttributeValues")
    for kind, group in zip(schema.kinds, ((keys.partition,), keys.sorts), strict=False):
        if any(kind not in values[name] for name in group):
            raise invalid(
                "One or more parameter values were invalid: Condition parameter type does not match schema type"
            )
    consistent, forward = params.get("ConsistentRead", False), params.get("ScanIndexForward", True)
    fits, first = keys.range(values)
    where = order(values[keys.partition])
    partition = model.table(schema).partition(where)
    sorts = partition.between(first, fits)
    if not forward:
        sorts.reverse()
    if "ExclusiveStartKey" in params:
        whose, after = place(schema, params["ExclusiveStartKey"], alone=True)
        if whose != where or not fits(after):
            raise invalid(OUTSIDE)
        sorts = [sort for sort in sorts if (sort > after if forward else sort < after)]
    most = params.get("Limit", len(sorts) + 1)
    if sorts and model.knobs.short_pages and model.chance.random() < model.knobs.short_pages:
        most = min(most, model.chance.randint(1, len(sorts)))
    sight, page, size, following = model.sight(consistent), list[Item](), 0, None
    for sort in sorts:
        state = partition.rows[sort].at(sight)
        if state.item is None:
            continue
        if page and size + state.size > PAGE_BYTES:
            following = page[-1]
            break
        page.append(state.item)
        size += state.size
        if len(page) >= most:
            following = state.item
            break
    units = read_units(size, consistent=consistent)
    model.spend("Query", where, partition, read=units)
    shown = page if kept is None else [item for item in page if kept.holds(item, values)]
    answer: dict[str, Any] = {"Items": shown, "Count": len(shown), "ScannedCount": len(page)}
    if following is not None:
        answer["LastEvaluatedKey"] = {name: following[name] for name in schema.keys}
    return answer | model.consumed(schema, params, units)


def batch_get(model: DynamoDbState, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answers in any order, leaves out what is not there, and leaves some keys for another call."""
    wanted = [
        (model.found(name), given, key, place(model.found(name), key, alone=True))
        for name, given in params["RequestItems"].items()
        for key in _keys(given)
    ]
    if len(wanted) > BATCH_KEYS:
        raise invalid("Too many items requested for the BatchGetItem call")
    if len({(schema.name, where) for schema, _, _, where in wanted}) < len(wanted):
        raise invalid("Provided list of item keys contains duplicates")
    model.chance.shuffle(wanted)
    answers: dict[str, list[Item]] = {schema.name: [] for schema, *_ in wanted}
    left: dict[str, dict[str, Any]] = {}
    sights = {flag: model.sight(flag) for flag in (False, True)}
    total = 0
    for number, (schema, given, key, where) in enumerate(wanted):
        consistent = given.get("ConsistentRead", False)
        table = model.table(schema)
        state = table.row(where).at(sights[consistent])
        total += state.size
        if total > BATCH_BYTES or (number and model.chance.random() < model.knobs.unprocessed):
            left.setdefault(schema.name, {**given, "Keys": []})["Keys"].append(key)
            continue
        units = read_units(state.size, consistent=consistent)
        model.spend("BatchGetItem", where[0], table.partition(where[0]), read=units)
        if state.item is not None:
            answers[schema.name].append(state.item)
    return {"Responses": answers, "UnprocessedKeys": left}


def _keys(given: Mapping[str, Any]) -> list[Any]:
    if extra := given.keys() - OF_TABLE:
        raise invalid(f"The model's BatchGetItem has no {', '.join(sorted(extra))}")
    return list(given["Keys"])
