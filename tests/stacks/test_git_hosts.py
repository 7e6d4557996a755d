"""Who reads the tokens with which code is fetched: what fetches code, those of the settings alone."""

from __future__ import annotations

import json

from contract.environments import AdmissionEnvironment
from contract.image_environments import ImageBuildEnvironment
from tests.stacks.synth import every, rights
from tools.configurations import GIT_HOSTS
from tools.synthesis import Synthesised


def readers(deployment: Synthesised) -> dict[str, list[str]]:
    """By the stack: which secrets its functions may read the values of, but a job's own."""
    found = [one for stack, template in deployment.stacks.items() for one in rights(template, stack=stack)]
    return {
        one.stack.removeprefix("trainyard-"): [*map(str, one.resources)]
        for one in found
        if "secretsmanager:GetSecretValue" in one.actions and one.name != "ReadSecrets"
    }


def test_what_fetches_code_reads_each_secret_of_the_settings_and_no_other(varied: Synthesised) -> None:
    found = readers(varied)
    assert found.keys() == {"builds", "workflow"}
    for resources in found.values():
        (resource,) = resources
        assert resource.endswith(":secretsmanager:eu-central-1:111122223333:secret:github-token-??????")


def test_nobody_reads_a_secret_where_no_host_has_one(deployment: Synthesised) -> None:
    assert readers(deployment) == {}


def test_what_fetches_code_knows_the_hosts_and_the_names_of_their_secrets(varied: Synthesised) -> None:
    wanted = f"TRAINYARD_{'git_hosts'.upper()}"
    for environment in (AdmissionEnvironment, ImageBuildEnvironment):
        assert "git_hosts" in environment.__dataclass_fields__
    told = [
        json.loads(one["Environment"]["Variables"][wanted])
        for _, one in every(varied, "AWS::Lambda::Function")
        if wanted in one["Environment"]["Variables"]
    ]
    assert told == [GIT_HOSTS, GIT_HOSTS]
