"""Public parameters that name deep-learning AMIs; moto only has those of Amazon Linux."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.ec2.models import ec2_backends
from moto.ssm.models import Parameter, SimpleSystemManagerBackend

from localaws.services.ec2_images import named_by

if TYPE_CHECKING:
    from localaws.server import LocalAws

RELEASED = 1789999200.0
"""When the newest images came out, on the rehearsal's clock (UTC epoch seconds)."""


def install(aws: LocalAws) -> None:
    """Makes GetParameter and GetParameters answer for `/aws/service/deeplearning/ami/...` and `/aws/service/neuron/dlami/...`."""

    def get_parameter(original: Any, backend: Any, name: str) -> Any:
        return _public(backend, name) or original(backend, name)

    def get_parameters(original: Any, backend: Any, names: list[str]) -> dict[str, Any]:
        public = {name: found for name in names if (found := _public(backend, name))}
        return {**original(backend, names), **public}

    aws.wrap(SimpleSystemManagerBackend, "get_parameter", get_parameter)
    aws.wrap(SimpleSystemManagerBackend, "get_parameters", get_parameters)


def _public(backend: Any, name: str) -> Any:
    image = named_by(name, ec2_backends[backend.account_id][backend.region_name])
    if image is None:
        return None
    return Parameter(
        account_id=backend.account_id,
        name=name,
        value=image,
        parameter_type="String",
        description="",
        allowed_pattern="",
        keyid=None,
        last_modified_date=RELEASED,
        version=1,
        data_type="text",
    )
