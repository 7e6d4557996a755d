"""A job's container: which image, where nodes pull it from, and where in it the job's folders lie."""

from __future__ import annotations

from dataclasses import dataclass

from contract.images import PRIVATE_REGISTRY

FOLDERS = "/opt/ml"
"""Where a container finds the job's folders: SageMaker's own place, so that one image runs in both."""
CHECKPOINTS = f"{FOLDERS}/checkpoints"
ARTIFACTS = f"{FOLDERS}/model"
CODE = f"{FOLDERS}/code"
DATA = f"{FOLDERS}/input/data"
"""An empty folder on the node's largest disk, for what the training fetches."""
PROGRESS = f"{FOLDERS}/output/progress"
ROLE = f"{FOLDERS}/role"
"""The config file and the keys of the request's `job_role`, read only."""
LAUNCHER = f"{FOLDERS}/launcher"
"""The scripts of the request's `launcher`, and what they write."""
ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}
"""What registries call a processor, and what EC2 calls it."""
UNPACKED = 3
"""How much disk an image takes for each byte that is pulled: what is packed, and what becomes of it while and after it is unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The image that every attempt and every node of a job runs: a digest, whatever becomes of its tag."""

    source: str
    """As the request names it."""
    digest: str
    repositories: dict[str, str]
    """Region of the nodes to the registry and repository from which they pull."""
    size: int = 0
    """Bytes that a node pulls."""
    arguments: tuple[str, ...] = ()
    """Of the command, or of the image's entry point where the job has no command."""

    def address(self, region: str) -> str:
        """Returns what nodes in the region pull and run. Raises KeyError for a region in which the job has no place."""
        return f"{self.repositories[region]}@{self.digest}"

    def arns(self, partition: str) -> tuple[str, ...]:
        """Returns the ARNs of the repositories, in whatever region each lies."""
        return tuple(dict.fromkeys(repository_arn(one, partition) for one in self.repositories.values()))

    @property
    def room(self) -> int:
        """Bytes of disk that the image takes."""
        return self.size * UNPACKED


def repository_arn(repository: str, partition: str) -> str:
    """Returns the ARN of a repository (registry and name) of a private ECR registry, with any region."""
    host, _, name = repository.partition("/")
    found = PRIVATE_REGISTRY.fullmatch(host)
    assert found, f"{host} is not a private registry"
    return f"arn:{partition}:ecr:*:{found['account']}:repository/{name}"
