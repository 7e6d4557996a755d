"""Creates the service-linked roles that Batch on Fargate needs: a new account may lack them, and then the first use fails."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from contract.environments import ServiceRolesEnvironment
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.function import Function, Layer
from stacks.parts.right import Right

ROLES = {"batch.amazonaws.com": "AWSServiceRoleForBatch", "ecs.amazonaws.com": "AWSServiceRoleForECS"}
"""Role by service. CloudFormation's own type for these roles fails if the role exists."""
CLOUDFORMATION_WAITS = cdk.Duration.minutes(5)


class ServiceRoles(Construct):
    """Is deployed early: other services see a new role after seconds, and the stacks in between take minutes."""

    def __init__(self, scope: Construct, name: str, *, deployment: str, log_retention_days: int) -> None:
        super().__init__(scope, name)
        function = Function(
            scope,
            "ServiceRoles",
            package="service_roles",
            description="Makes the roles of AWS's own services that an account lacks",
            environment=ServiceRolesEnvironment(deployment=deployment),
            layer=Layer(scope, "Libraries"),
            timeout=cdk.Duration.minutes(2),
            log_retention_days=log_retention_days,
            rights=service_rights(ROLES),
        )
        add_custom_resource(
            self,
            "Roles",
            kind="ServiceRoles",
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            properties={"Roles": ROLES},
            after=(function,),
        )


def service_rights(roles: Mapping[str, str]) -> list[Right]:
    """Allows to read and create service-linked roles; `roles` has the name of each service's role."""
    arns = {service: service_role(service, role) for service, role in roles.items()}
    return [
        Right("ReadServiceRoles", ["iam:GetRole"], list(arns.values())),
        *(
            Right(
                f"MakeTheRoleOf{service.partition('.')[0].title()}",
                ["iam:CreateServiceLinkedRole"],
                [arn],
                conditions={"StringEquals": {"iam:AWSServiceName": service}},
            )
            for service, arn in arns.items()
        ),
    ]


def service_role(service: str, role: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/aws-service-role/{service}/{role}"
