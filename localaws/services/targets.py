"""The targets of rules and schedules: who is reached, whose policy denies, and what happens to an event that reaches nobody."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.awslambda.exceptions import UnknownFunctionException
from moto.core.exceptions import ServiceException
from moto.utilities.arns import parse_arn

from localaws.services.lambda_functions import find_function
from localaws.services.permits import lets

if TYPE_CHECKING:
    from localaws.server import LocalAws

RULES = "events.amazonaws.com"
"""The service that delivers for rules; schedules have a role of their own."""


class Undelivered(Exception):
    """The target does not exist, or its policy denies. AWS does not retry: only the target's dead-letter queue is left."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Targets:
    """Delivers bodies to targets. A body that cannot be delivered goes to the target's dead-letter queue, or is lost without one."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws

    def by_policy(self, target: Mapping[str, Any], body: str, rule: str) -> None:
        """Delivers as a rule does, by the target's own policy. Never raises."""
        try:
            self._to(target, body)
        except (ServiceException, Undelivered) as problem:
            if letters := target.get("DeadLetterConfig", {}).get("Arn"):
                with suppress(ServiceException, Undelivered):
                    self._to_queue(letters, body, attributes=_about(problem, RULE_ARN=rule, TARGET_ARN=target["Arn"]))

    def to_bus(self, target: Mapping[str, Any], event: Mapping[str, Any], rule: str) -> bool:
        """Sends an event to the bus that is the target, of any region, with the role that the target names; uses the API, so that the
        call is recorded and can be judged. Never raises; returns whether the bus has the event."""
        bus, role = parse_arn(target["Arn"]), str(target.get("RoleArn", ""))
        entry = {
            "EventBusName": target["Arn"],
            "Source": event["source"],
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"]),
            "Resources": event["resources"],
        }
        try:
            _check_trust(self._aws.account, role)
            # AWS's own call, as the session says: its sources are refused to everybody else.
            events = self._aws.client("events", bus.region, role=role, throttled=False, session=RULES)
            events.put_events(Entries=[entry])
        except (ClientError, Undelivered) as problem:
            if letters := target.get("DeadLetterConfig", {}).get("Arn"):
                about = _about(problem, RULE_ARN=rule, TARGET_ARN=target["Arn"])
                with suppress(ServiceException, Undelivered):
                    self._to_queue(letters, json.dumps(event), attributes=about)
            return False
        return True

    def by_role(self, target: Mapping[str, Any], body: str, schedule: str) -> None:
        """Delivers as a schedule does, with the role that the target names; uses the API, so that its calls are recorded.
        Never raises."""
        arn, role = parse_arn(target["Arn"]), str(target["RoleArn"])
        if arn.service != "lambda":
            raise NotImplementedError(f"a schedule's target {target['Arn']}: the rehearsal invokes functions only")
        try:
            function = self._aws.client("lambda", arn.region, role=role, throttled=False)
            function.invoke(FunctionName=target["Arn"], InvocationType="Event", Payload=body.encode())
        except ClientError as problem:
            if letters := target.get("DeadLetterConfig", {}).get("Arn"):
                about = _about(problem, SCHEDULE_ARN=schedule, TARGET_ARN=target["Arn"])
                self._aws.send_message(role, letters, body, about)

    def _to(self, target: Mapping[str, Any], body: str) -> None:
        arn = parse_arn(target["Arn"])
        if arn.service == "lambda":
            self._to_function(target["Arn"], body)
        elif arn.service == "states":
            from moto.stepfunctions.parser.models import stepfunctions_parser_backends

            stepfunctions_parser_backends[arn.account][arn.region].start_execution(target["Arn"], None, body)
        elif arn.service == "sqs":
            group = target.get("SqsParameters", {}).get("MessageGroupId")
            self._to_queue(target["Arn"], body, group=group)
        elif arn.service == "sns":
            from moto.sns.models import sns_backends

            sns_backends[arn.account][arn.region].publish(arn=target["Arn"], message=body)
        elif arn.service == "logs":
            self._to_log_group(arn.region, arn.resource_id, body)
        else:
            raise NotImplementedError(f"a rule's target {target['Arn']}: the rehearsal delivers to no {arn.service}")

    def _to_function(self, arn: str, body: str) -> None:
        from moto.awslambda_simple.models import lambda_simple_backends

        where = parse_arn(arn)
        try:
            function = find_function(lambda_simple_backends[where.account][where.region], arn)
        except UnknownFunctionException as problem:
            raise Undelivered("RESOURCE_NOT_FOUND", f"there is no function {arn}") from problem
        self._aws.workers.invoke_later(function, body.encode())

    def _to_queue(
        self, arn: str, body: str, *, attributes: Mapping[str, Any] | None = None, group: str | None = None
    ) -> None:
        from moto.sqs.models import sqs_backends

        where = parse_arn(arn)
        backend = sqs_backends[where.account][where.region]
        if not lets(backend.get_queue(where.resource_id).policy, RULES, "sqs:SendMessage"):
            raise Undelivered("NO_PERMISSIONS", f"the policy of {arn} does not let {RULES} send messages")
        backend.send_message(where.resource_id, body, message_attributes=dict(attributes or {}), group_id=group)

    def _to_log_group(self, region: str, group: str, body: str) -> None:
        from moto.logs.models import logs_backends

        backend, stream = logs_backends[self._aws.account][region], str(uuid.uuid4())
        backend.create_log_stream(group, stream)
        backend.put_log_events(group, stream, [{"timestamp": int(time.time() * 1000), "message": body}])


def _check_trust(account: str, role: str) -> None:
    """Raises Undelivered unless there is such a role, and EventBridge may take it."""
    from moto.iam.models import iam_backends

    found = [one for one in iam_backends[account]["aws"].roles.values() if one.arn == role]
    if not found or not lets(found[0].assume_role_policy_document, RULES, "sts:AssumeRole"):
        raise Undelivered("NO_PERMISSIONS", f"{RULES} may not take the role {role or 'that the target lacks'}")


def _about(problem: ClientError | ServiceException | Undelivered, **told: str) -> dict[str, Any]:
    """Returns the attributes of a dead letter."""
    code = problem.response["Error"]["Code"] if isinstance(problem, ClientError) else problem.code
    values = {**told, "ERROR_CODE": str(code), "ERROR_MESSAGE": str(problem)}
    return {key: {"StringValue": value, "DataType": "String"} for key, value in values.items()}
