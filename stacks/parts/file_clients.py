"""The way from nodes to a file system: a security group of its clients, and the rules of both sides that name it."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from contract.mounts import Kind


class FileClients(Construct):
    """`id` of a security group. Its members reach the file system's security group on the ports of its kind, and nothing else; they do
    not reach each other."""

    def __init__(
        self, scope: Construct, name: str, *, vpc: ec2.IVpc, kind: Kind, file_system: str, security_group: str
    ) -> None:
        """`file_system` is what people call it; `security_group` is that of its network interfaces, which the account has already."""
        super().__init__(scope, name)
        clients = ec2.SecurityGroup(
            self,
            "Clients",
            vpc=vpc,
            description=f"Nodes of jobs that mount {kind.value}:{file_system}",
            allow_all_outbound=False,
        )
        servers = ec2.SecurityGroup.from_security_group_id(self, "Servers", security_group)
        for first, last in kind.ports:
            ports = ec2.Port.tcp_range(first, last) if last > first else ec2.Port.tcp(first)
            clients.add_egress_rule(servers, ports, "To the file system")
            # Trainyard owns no more of the other side than this rule, which goes with the stack.
            servers.add_ingress_rule(clients, ports, "From nodes that mount it")
            if kind.calls_back:
                clients.add_ingress_rule(servers, ports, "Lustre's servers open connections too")
        self.id = clients.security_group_id
