"""JSONata for moto's interpreter: parses each expression once, and binds variables as values, never as text."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import random
import threading
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonata import Jsonata
from jsonata.utils import Utils
from moto.stepfunctions.parser.api import EvaluationFailedEventDetails, HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent, FailureEventException
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.common.query_language import QueryLanguageMode
from moto.stepfunctions.parser.asl.component.common.string import string_expression
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.eval.variable_store import VariableStore
from moto.stepfunctions.parser.backend.execution import Execution

if TYPE_CHECKING:
    from localaws.server import LocalAws

_TURN = threading.Lock()
"""A parsed expression keeps state during an evaluation, so only one runs at a time."""


class QueryFailed(ValueError):
    """An expression has no value, has no JSON value, or fails."""


def install(aws: LocalAws) -> None:
    """Replaces the interpreter's own evaluation, which needs a Java machine and fails on quotes in values."""
    aws.patch(string_expression.StringJSONata, "_eval_body", _evaluate_expression)
    aws.patch(string_expression.StringVariableSample, "_eval_body", _evaluate_sample)
    aws.patch(VariableStore, "get_assigned_variables", _assigned)
    aws.wrap(Execution, "get_start_execution_details", _details_with_start_time)


def evaluate(expression: str, variables: dict[str, Any]) -> Any:
    """Returns the value of `expression`; raises QueryFailed. Names in `variables` have no `$`."""
    bindings = {name: _to_jsonata(value) for name, value in variables.items()}
    with _TURN:
        try:
            parsed = _parsed(expression)
            Jsonata.CURRENT.jsonata = parsed
            value = parsed.evaluate(None, {**_functions(), **bindings})
        except Exception as problem:
            raise QueryFailed(str(problem)) from problem
    if value is None:
        raise QueryFailed(f"The JSONata expression '{expression}' returned nothing (undefined).")
    try:
        return json.loads(json.dumps(_from_jsonata(value), allow_nan=False))
    except (TypeError, ValueError):
        raise QueryFailed(f"The JSONata expression '{expression}' returned an unsupported result type.") from None


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> Any:
    parsed = Jsonata(expression)
    # Without this, null and "nothing" could not be told apart.
    parsed.set_output_convert_nulls(False)
    return parsed


def _to_jsonata(value: Any) -> Any:
    """Makes a private copy, because expressions may change their input, with JSONata's own null."""
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, dict):
        return {str(key): _to_jsonata(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_jsonata(one) for one in value]
    if isinstance(value, datetime.datetime):
        return _iso(value)
    return copy.copy(value)


def _from_jsonata(value: Any) -> Any:
    if value is Utils.NULL_VALUE:
        return None
    if isinstance(value, dict):
        return {key: _from_jsonata(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_from_jsonata(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _functions() -> dict[str, Any]:
    """Returns the functions that Step Functions adds to JSONata."""
    return {
        "parse": Jsonata.JLambda(lambda text: _to_jsonata(json.loads(text))),
        "uuid": Jsonata.JLambda(lambda *_: str(uuid.uuid4())),
        "partition": Jsonata.JLambda(
            lambda items, size: [items[i : i + int(size)] for i in range(0, len(items), int(size))]
        ),
        "range": Jsonata.JLambda(_range),
        "hash": Jsonata.JLambda(_hash),
        "random": Jsonata.JLambda(lambda *seed: random.Random(*seed).random()),
    }


def _range(first: float, last: float, step: float) -> list[float]:
    """Returns numbers from first to last, including last if a step meets it."""
    if not step:
        raise ValueError("$range: the step must not be 0")
    return [first + place * step for place in range(max(int((last - first) / step) + 1, 0))]


def _hash(content: Any, algorithm: str) -> str:
    names = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}
    text = content if isinstance(content, str) else json.dumps(content)
    return hashlib.new(names[algorithm], text.encode()).hexdigest()


def _variables(env: Any) -> dict[str, Any]:
    store = env.variable_store
    return {**store._outer_scope, **store._inner_scope}


def _evaluate_expression(self: Any, env: Any) -> None:
    env.stack.append(_or_fail(env, self.expression, with_states=True))


def _evaluate_sample(self: Any, env: Any) -> None:
    env.stack.append(_or_fail(env, self.expression, with_states=self.query_language_mode == QueryLanguageMode.JSONata))


def _or_fail(env: Any, expression: str, *, with_states: bool) -> Any:
    """Returns the value, or raises the failure that AWS calls States.QueryEvaluationError."""
    variables = _variables(env)
    if with_states:
        variables["states"] = {
            name: value for name, value in env.states._states_data.items() if value is not None or name == "input"
        }
    try:
        return evaluate(expression, variables)
    except QueryFailed as problem:
        kind = StatesErrorNameType.StatesQueryEvaluationError
        details = EvaluationFailedEventDetails(error=kind.to_name(), cause=str(problem))
        failure = FailureEvent(
            env=env,
            error_name=StatesErrorName(typ=kind),
            event_type=HistoryEventType.EvaluationFailed,
            event_details=EventDetails(evaluationFailedEventDetails=details),
        )
        raise FailureEventException(failure_event=failure) from problem


def _assigned(self: Any) -> dict[str, str]:
    """Returns variables for the history: as JSON text, with quotes escaped."""
    return {name: json.dumps(self.get(name)) for name in self._declaration_tracing}


def _iso(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _details_with_start_time(original: Any, execution: Any) -> Any:
    """Writes `$states.context.Execution.StartTime` as AWS does."""
    found = original(execution)
    found.start_time = _iso(execution.start_date)
    return found
