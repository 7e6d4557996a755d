"""What is wrong with the role that a request names for its training."""

from __future__ import annotations

from admission.request import JobRequest
from contract import training
from contract.environments import AdmissionEnvironment
from refusals.wording import plain


def problems(request: JobRequest, env: AdmissionEnvironment) -> list[str]:
    """Whether the role can be assumed, the attendant learns, which alone is trusted by it."""
    name = request.job_role
    if name is None:
        return []
    if name not in env.job_roles:
        may_be = ", ".join(sorted(env.job_roles)) or "none, because there are no job_roles"
        return [f"job_role: {plain(name)} is not a role of this deployment; allowed: {may_be} (job_roles in cdk.json)"]
    return [
        f"{where}.{variable}: leads the training to other keys than those of its job_role; allowed: either of the two"
        for where, given in (("environment", request.environment), ("secrets", request.secrets))
        for variable in sorted(given.keys() & training.OTHER_CREDENTIALS)
    ]
