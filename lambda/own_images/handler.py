"""The function of own images: handles CloudFormation's custom resource, a deploy's look, the answer at its end, and both ends of a
build: `check` orders it, `collect` reads which images exist."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws import builds, executions, pinned, registry
from aws.cloudformation import REQUEST, send
from aws.s3 import Bucket
from contract import keys, names
from contract.codec import decode
from contract.errors import BuildFailed
from contract.image_environments import OwnImagesEnvironment
from contract.images import Base
from own_images.policy import Facts, WantedImage, execution, judge, missing, plan

logger = Logger(service="own-images")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any] | None:
    """Handles every action; each may be requested twice. Answers CloudFormation at once if its request fails here."""
    env = OwnImagesEnvironment.read()
    match event.get("action"):
        case "build":
            _follow_build(env, event["request"]["RequestId"], event["image"], event["since"])
        case "answer":
            send(event["request"], _physical(env), _reason(event["problem"]))
        case "check":
            return _check(env, WantedImage(**event["request"]))
        case "collect":
            return _collect(env, event["plan"], event.get("build"), event.get("problem"))
        case _:
            _handle_request(env, event)
    return None


def _handle_request(env: OwnImagesEnvironment, event: Mapping[str, Any]) -> None:
    """Starts the machine in which Create and Update wait. Does nothing for Delete: the images go with their repositories."""
    logger.info("asked", request=event["RequestType"])
    problem = None
    try:
        if event["RequestType"] != "Delete":
            machine = env.build_machine.rpartition(":")[0] + ":" + names.image_machine(env.deployment)
            image = {name: event["ResourceProperties"][name] for name in ("Tag", "Base", "Bucket", "Key")}
            given = {"request": {name: event[name] for name in REQUEST}, "image": image, "since": time.time()}
            executions.start(machine, f"images-{event['RequestId']}", given)
            return
    except Exception as error:
        logger.exception("the request failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    send(event, _physical(env), problem)


def _follow_build(env: OwnImagesEnvironment, request_id: str, image: Mapping[str, str], since: float) -> None:
    """Starts the build if it does not exist. Raises StillBuilding or BuildFailed."""
    tag = image["Tag"]
    name = execution(tag, request_id)
    status = executions.status(executions.name_arn(env.build_machine, name))
    if missing(status):
        home, context = Bucket(env.bucket), keys.own_context(tag)
        source = Bucket(image["Bucket"]).head(image["Key"])
        if source is None:
            raise BuildFailed(f"s3://{image['Bucket']}/{image['Key']} is gone: deploy again, which uploads it")
        home.copy(source, context)
        executions.start(env.build_machine, name, {"tag": tag, "base": image["Base"]})
        logger.info("build started", execution=name)
    patience = env.timing.image_patience_s
    judge(tag, status, now=time.time(), since=since, patience_s=patience)


def _check(env: OwnImagesEnvironment, image: WantedImage) -> dict[str, Any]:
    """Only reads. The context's key follows from the tag, so a caller cannot name another."""
    home = Bucket(env.bucket)
    found, without = registry.everywhere(names.repository(env.deployment, names.PLATFORM), image.tag, env.regions)
    standing = {region: digest for region, digest in found.items() if digest}
    recorded = home.get(keys.own_base(image.base))
    facts = Facts(
        standing=standing,
        no_repository=tuple(without),
        ours=[one for one in set(standing.values()) if home.head(keys.own_provenance(image.tag, one))],
        context=pinned.head(env.bucket, keys.own_context(image.tag)),
        base=decode(Base, recorded) if recorded else None,
    )
    how, order = plan(image, facts, env)
    logger.info("checked", tag=image.tag, how=how.value)
    return {"tag": image.tag, "how": how.value, "order": order.text() if order else ""}


def _collect(env: OwnImagesEnvironment, planned: Mapping[str, Any], build: str | None, problem: Any) -> dict[str, Any]:
    """Raises BuildFailed unless every region has the same image, and a build of ours recorded it."""
    if problem is not None:
        raise builds.failure(problem)
    repository, tag = names.repository(env.deployment, names.PLATFORM), planned["tag"]
    digest = registry.same_everywhere(repository, tag, env.regions)
    provenance = keys.own_provenance(tag, digest)
    if Bucket(env.bucket).head(provenance) is None:
        raise BuildFailed(f"{repository}:{tag} is {digest}, which no build of the platform recorded.")
    logger.info("collected", tag=tag, digest=digest, build=build or "")
    return {
        "repository": repository,
        "tag": tag,
        "digest": digest,
        "how": planned["how"],
        "build": build or "",
        "provenance": f"s3://{env.bucket}/{provenance}",
        "parts": f"s3://{env.bucket}/{keys.own_parts(tag, digest)}",
    }


def _physical(env: OwnImagesEnvironment) -> str:
    """Returns a constant, so that an update replaces nothing and therefore deletes nothing."""
    return names.image_machine(env.deployment)


def _reason(problem: Mapping[str, str] | None) -> str | None:
    """Returns the reason in words for the person who reads the stack's events."""
    if problem is None:
        return None
    return problem["cause"] if problem["error"] == BuildFailed.__name__ else f"{problem['error']}: {problem['cause']}"
