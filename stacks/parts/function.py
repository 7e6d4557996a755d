"""A Lambda function of ours: one archive with its package, the shared rooms that it imports and the contract; its own role and log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from contract.environments import Environment
from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.assembled import CONTRACT, LAMBDA, LAYER, Assembled, existing
from stacks.parts.logs import log_group
from stacks.parts.right import Right, grant
from stacks.parts.shipped import shipped

RUNTIME = lambda_.Runtime.PYTHON_3_14
WHOLE_CPU_MB = 1769
"""From this much memory on, a function has a whole processor."""
ACKNOWLEDGED = {
    "CKV_AWS_115": "A new account runs ten functions at once in all, and refuses to reserve any; reserved_concurrency does it in others.",
    "CKV_AWS_116": "What invokes it repeats what fails, comes again with the next tick, or has dead letters of its own.",
    "CKV_AWS_117": "Calls nothing but AWS's public endpoints; a network would add a NAT gateway and no safety.",
    "CKV_AWS_173": "The variables are names and numbers that the template shows too; Lambda encrypts them with its own key.",
    "W3005": "CDK writes a dependency that a reference makes already.",
}


class Layer(lambda_.LayerVersion):
    """The pinned libraries of all functions (boto3, dulwich, Jinja2, pydantic, Powertools): Lambda's own boto3 is months behind. `folder`
    names other libraries, with their `description`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        folder: Path = LAYER,
        description: str = "Pinned boto3, dulwich, Jinja2, pydantic and Powertools",
    ) -> None:
        super().__init__(
            scope,
            name,
            code=lambda_.Code.from_asset(
                str(existing(folder)),
                asset_hash_type=cdk.AssetHashType.OUTPUT,
                bundling=Assembled({"python": folder / "python"}).options(),
            ),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[lambda_.Architecture.X86_64],
            description=description,
        )


@dataclass(frozen=True, slots=True)
class FunctionNetwork:
    """Where a function is that reaches what has no public address. Its role needs the rights with which Lambda makes interfaces."""

    vpc: ec2.IVpc
    subnets: tuple[ec2.ISubnet, ...]
    group: ec2.SecurityGroup


class Function(lambda_.Function):
    """`package` is a folder of lambda/ whose handler.py has `handler`. Editing it redeploys this function; editing a shared
    room redeploys the functions that import it. `reserved` is how many invocations at once Lambda keeps for it, which is also its most."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        package: str,
        description: str,
        environment: Environment,
        layer: lambda_.ILayerVersion,
        timeout: cdk.Duration,
        log_retention_days: int,
        rights: Sequence[Right],
        memory_mb: int = 512,
        more_layers: Sequence[lambda_.ILayerVersion] = (),
        reserved: int = 0,
        files: Mapping[str, Path | bytes] | None = None,
        network: FunctionNetwork | None = None,
        physical_name: str | None = None,
    ) -> None:
        packages = {one: LAMBDA / one for one in shipped(package, LAMBDA)}
        contents = packages | {"contract": CONTRACT} | dict(files or {})
        role = iam.Role(
            scope,
            f"{name}Role",
            assumed_by=interfaces.principal(iam.ServicePrincipal("lambda.amazonaws.com")),
            description=f"{name}: {description}",
        )
        super().__init__(
            scope,
            name,
            runtime=RUNTIME,
            architecture=lambda_.Architecture.X86_64,
            handler=f"{package}.handler.handler",
            code=lambda_.Code.from_asset(
                str(LAMBDA / package),
                asset_hash_type=cdk.AssetHashType.OUTPUT,
                bundling=Assembled(contents).options(),
            ),
            description=description,
            environment=environment.write(),
            layers=[layer, *more_layers],
            memory_size=memory_mb,
            reserved_concurrent_executions=reserved or None,
            timeout=timeout,
            role=interfaces.role(role),
            log_group=log_group(scope, f"{name}Log", days=log_retention_days),
            function_name=physical_name,
            vpc=network.vpc if network else None,
            vpc_subnets=ec2.SubnetSelection(subnets=list(network.subnets)) if network else None,
            security_groups=[interfaces.security_group(network.group)] if network else None,
        )
        self.log_group.grant_write(role)
        for finding, reason in ACKNOWLEDGED.items():
            acknowledge(self, reason, finding)
        grant(role, *rights)
        self._role = self.own_role = role
        self.package = package

    def may_invoke_itself(self) -> None:
        """Uses a policy of its own: the function waits for the policy of its other rights, so that one cannot name the function."""
        invoking = iam.PolicyStatement(
            sid="InvokeItself", actions=["lambda:InvokeFunction"], resources=[self.function_arn]
        )
        iam.Policy(self, "Itself", statements=[invoking], roles=[interfaces.role(self._role)])
