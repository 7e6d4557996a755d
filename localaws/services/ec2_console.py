"""GetConsoleOutput as EC2 has it: the newest lines of a machine on Nitro that has not ended, of all others what EC2 kept itself."""

from __future__ import annotations

import base64
from datetime import datetime, timezone
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError
from moto.ec2.responses.general import General

from localaws.services.ec2_machines import Aws, Function, Machines, replace

KEPT_BYTES = 64 * 1024
WITHOUT_NITRO = ("p2.", "p3.", "g3.", "g3s.", "m4.", "c4.", "r4.", "t2.", "x1.", "i3.")
"""Families on Xen. p3dn is not one of them."""


def install(aws: Aws, machines: Machines) -> None:
    replace(aws, General, "get_console_output", lambda _: _console(machines))


def _console(machines: Machines) -> Function:
    def get_console_output(self: Any) -> Any:
        instance, newest = self._get_param("InstanceId"), self._get_param("Latest") in (True, "true")
        machine = machines.get(instance)
        if machine is None or machines.hidden(instance):
            raise InvalidInstanceIdError(instance)
        if newest and machine.record.instance_type.startswith(WITHOUT_NITRO):
            raise EC2ClientError(
                "UnsupportedOperation", "This instance type does not support retrieving the latest console logs."
            )
        live = newest and machine.state != "terminated"
        said = (machines.host.said(machine) if live else machine.kept)[-KEPT_BYTES:]
        answer = {"InstanceId": instance, "Timestamp": datetime.now(timezone.utc)}
        return ActionResult(answer | ({"Output": base64.b64encode(said).decode()} if said else {}))

    return get_console_output
